package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	inprocess "tideline/native/agent"
	"tideline/web/ui"
)

// A debugger slows a page down, above all what it receives: where time is
// measured, the page runs a script of the test by itself and answers once, at
// the end.

// visit is a page that is to be opened with a script.
type visit struct {
	agent  *inprocess.Agent
	url    string
	answer chan []byte
}

// visiting runs before the script, which is the body of an async function and
// returns what the page is to answer.
const visiting = `
const soon = (ms = 50) => new Promise((done) => setTimeout(done, ms));
const frame = () => new Promise(requestAnimationFrame);
const until = async (what) => { while (!what()) await soon(); };
const idle = () => until(() => document.documentElement.dataset.idle === "true");
const tell = (path, body) => fetch("/visit/" + path, { method: "POST", body });
const work = async () => {
	await until(() => document.documentElement.dataset.ready === "true");
`

// newVisit serves the page with the script in it, and what it asks for by name.
func newVisit(t *testing.T, script string, asks map[string]http.HandlerFunc) *visit {
	t.Helper()
	v := &visit{answer: make(chan []byte, 1)}
	page := ui.Handler(ui.Options{Agent: true})
	mux := http.NewServeMux()
	mux.Handle("/", page)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		page.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		_, _ = w.Write(bytes.Replace(rec.Body.Bytes(), []byte("</head>"), []byte(`<script type="module" src="/visit.js"></script></head>`), 1))
	})
	mux.HandleFunc("GET /visit.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, visiting+script+`
};
work().then((a) => a, (e) => ({ failed: String(e.stack ?? e) })).then((a) => tell("answer", JSON.stringify(a)));`)
	})
	mux.HandleFunc("POST /visit/answer", func(_ http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			b = []byte(`{"failed":"half an answer"}`)
		}
		v.answer <- b
	})
	for name, f := range asks {
		mux.HandleFunc("POST /visit/"+name, f)
	}
	v.agent, v.url = serveWith(t, mux)
	return v
}

// open opens the page in a browser of its own and waits for its answer.
func (v *visit) open(t *testing.T, patience time.Duration, answer any) {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command(browserPath(t), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-component-update",
		"--disable-background-networking", "--disable-sync", "--no-first-run", "--user-data-dir="+filepath.Join(dir, "profile"), "--window-size=1280,800", v.url)
	var log strings.Builder
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	defer func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the browser says:\n%s", log.String())
		}
	}()
	select {
	case b := <-v.answer:
		var trouble struct{ Failed string }
		if err := json.Unmarshal(b, &trouble); err != nil || trouble.Failed != "" {
			t.Fatalf("the page failed: %s%v", trouble.Failed, err)
		}
		if err := json.Unmarshal(b, answer); err != nil {
			t.Fatalf("the page's answer: %v", err)
		}
	case <-time.After(patience):
		t.Fatalf("the page says nothing within %v", patience)
	}
}

// number is that of an environment variable, or the usual one.
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q, not a number", name, text)
	}
	return n
}
