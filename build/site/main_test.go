package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

var dist = fstest.MapFS{
	"tideline.wasm":    {Data: []byte("\x00asm one")},
	"tideline.wasm.br": {Data: []byte("compressed")},
	"rerun.wasm":       {Data: []byte("\x00asm two")},
	"reader.wasm":      {Data: []byte("\x00asm three")},
	"wasm_exec.js":     {Data: []byte("// the loader")},
	"README":           {Data: []byte("a note")},
}

func TestSiteHoldsWhatThePageNames(t *testing.T) {
	out := t.TempDir()
	for range 2 { // over an older one
		if err := write(dist, out); err != nil {
			t.Fatal(err)
		}
	}
	page := read(t, out, "index.html")
	if !strings.Contains(page, `data-agent="no"`) || !strings.Contains(page, `data-module="yes"`) {
		t.Error("the page thinks that it has an agent, or no module")
	}
	named := regexp.MustCompile(`(?:src|href)="/([^"#]+)"`).FindAllStringSubmatch(page, -1)
	if len(named) < 4 {
		t.Fatalf("the page names only %v", named)
	}
	for _, m := range named {
		read(t, out, m[1])
	}
	imports(t, out)
	if got := read(t, out, "assets/tideline.wasm"); got != "\x00asm one" {
		t.Errorf("the module is %q", got)
	}
	for _, name := range []string{"assets/tideline.wasm.br", "assets/README"} {
		if _, err := os.Stat(filepath.Join(out, name)); err == nil {
			t.Errorf("%s should not be there", name)
		}
	}
	if h := read(t, out, "_headers"); !strings.HasPrefix(h, "/*\n  Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'") || !strings.Contains(h, "nosniff") {
		t.Errorf("headers:\n%s", h)
	}
}

// imports follows the modules' imports: one that is missing shows only in a browser.
func imports(t *testing.T, out string) {
	t.Helper()
	scripts, err := filepath.Glob(filepath.Join(out, "assets", "*.js"))
	if err != nil || len(scripts) < 8 {
		t.Fatalf("scripts: %v, %v", scripts, err)
	}
	for _, script := range scripts {
		b, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^import .*"\./([^"]+)";$`).FindAllStringSubmatch(string(b), -1) {
			read(t, out, "assets/"+m[1])
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestSiteSparesOtherFolders(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "thesis.txt"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(dist, out); err == nil || !strings.Contains(err.Error(), "other things") {
		t.Errorf("%v", err)
	}
	if got := read(t, out, "thesis.txt"); got != "dear" {
		t.Error("it was emptied")
	}
	if err := write(fstest.MapFS{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "build wasm") {
		t.Errorf("without the module: %v", err)
	}
}
