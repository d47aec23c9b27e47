package ui

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"tideline/protocol/api"
	"tideline/web/assets"
	"tideline/web/share/browser"
)

func get(t *testing.T, h http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var built = fstest.MapFS{
	"tideline.wasm":    {Data: []byte("\x00asm plain")},
	"tideline.wasm.br": {Data: []byte("brotli")},
	"tideline.wasm.gz": {Data: []byte("gzip")},
	"rerun.wasm":       {Data: []byte("\x00asm second")},
	"reader.wasm":      {Data: []byte("\x00asm third")},
	"wasm_exec.js":     {Data: []byte("// loader")},
}

func page(t *testing.T, o Options) string {
	t.Helper()
	return body(t, get(t, Handler(o), "/"))
}

func TestThePageObeysItsPolicy(t *testing.T) {
	html := page(t, Options{Agent: true, Dist: built})
	for _, bad := range []string{" style=", "<style", "javascript:", " onclick=", " onload=", "http://", "https://"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`<script[^>]*>`).FindAllString(html, -1) {
		if !strings.Contains(m, " src=\"/assets/") {
			t.Errorf("inline script: %s", m)
		}
	}
	r := get(t, Handler(Options{Dist: built}), "/")
	for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"} {
		if r.Header.Get(h) == "" {
			t.Errorf("no %s", h)
		}
	}
}

// TestEveryReferenceExists checks that ids that the page and the scripts speak
// of are there, and that each is there once.
func TestEveryReferenceExists(t *testing.T) {
	html := page(t, Options{Agent: true, Dist: built})
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		ids[m[1]]++
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("id %s is there %d times", id, n)
		}
	}
	for _, m := range regexp.MustCompile(` (?:for|aria-labelledby|aria-controls|aria-describedby|list)="([^"]+)"`).FindAllStringSubmatch(html, -1) {
		if ids[m[1]] == 0 {
			t.Errorf("the page speaks of #%s, which it lacks", m[1])
		}
	}
	scripts, err := assets.Static.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range scripts {
		if !strings.HasSuffix(f.Name(), ".js") {
			continue
		}
		b, err := assets.Static.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\$\("([^"]+)"\)`).FindAllStringSubmatch(string(b), -1) {
			if ids[m[1]] == 0 {
				t.Errorf("%s speaks of #%s, which the page lacks", f.Name(), m[1])
			}
		}
		for _, m := range regexp.MustCompile(`from "\./([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
			_, err := assets.Static.ReadFile(m[1])
			if _, other := browser.Files.ReadFile(m[1]); err != nil && other != nil {
				t.Errorf("%s imports %s, which is not there", f.Name(), m[1])
			}
		}
	}
}

// TestEveryFieldIsAKnob holds the form to the workload: a field without a
// control can only be reached by a file.
func TestEveryFieldIsAKnob(t *testing.T) {
	html := page(t, Options{Agent: true, Dist: built})
	// Fields that stand behind a control of several, or of another name.
	behind := map[string]string{
		"name": "", "train": "train.optimizer", "precision": "k-precision", "train.precision": "k-precision",
		"devices.N.kind": "devices.0.preset", "devices.N.growth": "memory", "devices.N.memory_limit": "k-limit",
		"devices.N.logical": "k-logical", "devices.N.held": "k-held",
		"placement.rules.N.match": "add-rule", "placement.rules.N.device": "add-rule",
	}
	for _, path := range api.Paths() {
		name, other := behind[path]
		switch {
		case other && name == "":
			continue // a rerun is named by what was changed
		case !other:
			name = strings.Replace(path, ".N.", ".0.", 1)
		}
		if !strings.Contains(html, ` name="`+name+`"`) && !strings.Contains(html, ` id="`+name+`"`) {
			t.Errorf("no control for %s", path)
		}
	}
}

func TestEveryControlHasAName(t *testing.T) {
	html := page(t, Options{Agent: true, Dist: built})
	for _, m := range regexp.MustCompile(`(?s)<button([^>]*)>(.*?)</button>`).FindAllStringSubmatch(html, -1) {
		text := regexp.MustCompile(`(?s)<svg.*?</svg>|<[^>]*>|\s+`).ReplaceAllString(m[2], "")
		if text == "" && !strings.Contains(m[1], "aria-label=") {
			t.Errorf("a button without a name: <button%s>", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`<(?:input|select|textarea)([^>]*)>`).FindAllStringSubmatch(html, -1) {
		id := regexp.MustCompile(` id="([^"]+)"`).FindStringSubmatch(m[1])
		labelled := strings.Contains(m[1], "aria-") || strings.Contains(m[1], `type="radio"`) || strings.Contains(m[1], `type="checkbox"`) ||
			id != nil && strings.Contains(html, `for="`+id[1]+`"`)
		if !labelled {
			t.Errorf("a field without a label: %s", m[1])
		}
	}
}

func TestAMissingModuleIsSaidWithItsRemedy(t *testing.T) {
	html := page(t, Options{Dist: fstest.MapFS{"README": {Data: []byte("note")}}})
	if !strings.Contains(html, "go run ./build wasm") || !strings.Contains(html, `data-module="no"`) {
		t.Error("the page does not say that the module is missing")
	}
	if html = page(t, Options{Dist: built}); strings.Contains(html, "go run ./build wasm") {
		t.Error("the page says that the module is missing, which is there")
	}
}

func TestWithoutAnAgentThePageOffersNoRunOnIt(t *testing.T) {
	with, without := page(t, Options{Agent: true, Dist: built}), page(t, Options{Dist: built})
	hidden := regexp.MustCompile(`id="run-agent"[^>]* hidden`)
	if hidden.MatchString(with) || !hidden.MatchString(without) {
		t.Error("the button to run on the agent is shown wrongly")
	}
}

func TestThePageKnowsWhetherItMayShare(t *testing.T) {
	for share, want := range map[Share]string{ShareNo: "no", ShareYes: "yes", ShareAsk: "ask"} {
		if html := page(t, Options{Share: share, Dist: built}); !strings.Contains(html, `data-share="`+want+`"`) {
			t.Errorf("%q: the page does not say %s", share, want)
		}
	}
	const word = "without the agent’s token"
	if strings.Contains(page(t, Options{Agent: true, Dist: built}), word) || !strings.Contains(page(t, Options{Guest: true, Dist: built}), word) {
		t.Error("a guest is told what is missing, and nobody else")
	}
}

func TestTheModuleComesInTheBestEncoding(t *testing.T) {
	h := Handler(Options{Dist: built})
	for _, c := range []struct{ accept, coding, body string }{
		{"gzip, deflate, br", "br", "brotli"},
		{"gzip", "gzip", "gzip"},
		{"br;q=0, gzip;q=0.5", "gzip", "gzip"},
		{"identity", "", "\x00asm plain"},
		{"", "", "\x00asm plain"},
	} {
		r := get(t, h, "/assets/tideline.wasm", "Accept-Encoding", c.accept)
		if got := body(t, r); r.StatusCode != http.StatusOK || r.Header.Get("Content-Encoding") != c.coding || got != c.body {
			t.Errorf("%q: %d %q %q", c.accept, r.StatusCode, r.Header.Get("Content-Encoding"), got)
		}
		if r.Header.Get("Content-Type") != "application/wasm" || r.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: type %q, vary %q", c.accept, r.Header.Get("Content-Type"), r.Header.Get("Vary"))
		}
		if r.Header.Get("Content-Security-Policy") == "" {
			t.Error("an asset comes without the policy, which a worker obeys")
		}
		again := get(t, h, "/assets/tideline.wasm", "Accept-Encoding", c.accept, "If-None-Match", r.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%q: asked again with its tag: %d", c.accept, again.StatusCode)
		}
	}
}

func TestOnlyAssetsAreServed(t *testing.T) {
	h := Handler(Options{Dist: built})
	for path, want := range map[string]int{
		"/assets/app.js": 200, "/assets/page.css": 200, "/assets/icon.svg": 200, "/assets/wasm_exec.js": 200, "/assets/share.js": 200, "/assets/seal.js": 200, "/favicon.ico": 200,
		"/assets/embed.go": 404, "/assets/README": 404, "/assets/none.js": 404, "/assets/..%2fui%2fdoc.go": 404, "/other": 404,
	} {
		if r := get(t, h, path); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, r.StatusCode, want)
		}
	}
}
