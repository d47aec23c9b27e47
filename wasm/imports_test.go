package main_test

import (
	"go/build"
	"slices"
	"strings"
	"testing"
)

// unwanted would each cost the module more than all of what it does: net/http
// alone triples it.
var unwanted = []string{
	"net", "net/http", "net/url", "encoding/json", "encoding/xml", "encoding/gob", "text/template", "html/template",
	"regexp", "crypto/tls", "log", "log/slog", "math/big", "testing", "flag", "go.yaml.in/yaml/v3", "google.golang.org/protobuf",
	"github.com/klauspost/compress", "nhooyr.io/websocket", "gonum.org/v1/gonum",
}

// TestTheModuleCarriesNoHeavyPackage walks the imports of the browser module
// by reading them, for js/wasm.
func TestTheModuleCarriesNoHeavyPackage(t *testing.T) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "js", "wasm", false
	seen := map[string]bool{}
	var walk func(path, from string)
	walk = func(path, from string) {
		if seen[path] || path == "unsafe" || path == "C" {
			return
		}
		seen[path] = true
		for _, u := range unwanted {
			if path == u || strings.HasPrefix(path, u+"/") && u != "net" && u != "log" && u != "testing" {
				t.Errorf("%s is imported by %s", path, from)
			}
		}
		if strings.HasPrefix(path, "tideline/native") || strings.HasPrefix(path, "tideline/web") {
			t.Errorf("%s is imported by %s: the module knows no host", path, from)
		}
		dir := ""
		if rest, ours := strings.CutPrefix(path, "tideline/"); ours {
			dir = "../" + rest
		}
		var p *build.Package
		var err error
		if dir != "" {
			p, err = ctx.ImportDir(dir, 0)
		} else {
			p, err = ctx.Import(path, ".", 0)
		}
		if err != nil {
			if strings.Contains(path, ".") || strings.HasPrefix(path, "vendor/") || strings.HasPrefix(from, "vendor/") {
				return // a package of the toolchain's own vendor tree
			}
			t.Fatalf("read the imports of %s: %v", path, err)
		}
		for _, i := range p.Imports {
			walk(i, path)
		}
	}
	walk("tideline/wasm", "the viewer")
	if seen["tideline/shared/launch"] || seen["tideline/shared/program"] {
		t.Error("the viewer carries what only reruns need: that is the second module's")
	}
	walk("tideline/wasm/rerun/module", "the rerun module")
	walk("tideline/wasm/reader/module", "the reader module")
	if !seen["tideline/wasm/bridge"] || !seen["tideline/shared/store"] {
		var list []string
		for p := range seen {
			list = append(list, p)
		}
		slices.Sort(list)
		t.Fatalf("the walk is broken, it saw only %v", list)
	}
}
