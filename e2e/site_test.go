package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

func goRun(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("go", append([]string{"run"}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("go run %v: %v\n%s", args, err, out)
	}
}

// command runs the command and fails the test when it fails.
func command(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(agentBinary, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("tideline %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// serveFiles is a plain server of files that sends what the site's _headers
// ask for, and nothing else of ours; missing is what it was asked for in vain.
func serveFiles(t *testing.T, dir string) (url string, missing func() []string) {
	t.Helper()
	var mu sync.Mutex
	var vain []string
	lines := strings.Split(strings.TrimSpace(string(readFile(t, filepath.Join(dir, "_headers")))), "\n")
	files := http.FileServer(http.Dir(dir))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, line := range lines[1:] { // the first says: for every path
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			w.Header().Set(name, value)
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(r.URL.Path))); err != nil {
			mu.Lock()
			vain = append(vain, r.URL.Path)
			mu.Unlock()
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(vain)
	}
}

// TestTheSiteNeedsNoAgent opens, reruns, compares and saves on plain files
// under the site's own security policy.
func TestTheSiteNeedsNoAgent(t *testing.T) {
	file := record(t)
	p := openPage(t, 1280, 800)
	url, missing := serveFiles(t, siteDir(t))
	p.open(url + "/")
	p.screenshot("start")
	if !eval[bool](p, `document.querySelector("#share").hidden && document.querySelector("#run-agent").hidden`) {
		t.Error("the site offers what only an agent or a share service can do")
	}
	if note := p.text("#start-note"); !strings.Contains(note, "Nothing is uploaded") {
		t.Errorf("the start page says %q", note)
	}
	peak := p.shows(file, "recorded")
	p.click("#rerun")
	p.wait("the rerun", `document.querySelector("#run-state").textContent === "done" && !document.querySelector("#versus").hidden`)
	p.settled()
	if got := p.text("#fact-peak dd"); got != peak {
		t.Errorf("peak of the rerun %s, of the file %s", got, peak)
	}
	want, _, _ := hashOf(t, readFile(t, file))
	if got, _, _ := hashOf(t, p.save()); got != want {
		t.Errorf("the rerun on the site is %016x, the file %016x", got, want)
	}
	p.choose(`input[name="memory"][value="whole"]`)
	p.click("#rerun")
	p.settled()
	p.do("compare", chromedp.KeyEvent("7"))
	p.idle()
	if compare := p.text("#pane"); !strings.Contains(compare, "Reserved") {
		t.Errorf("the comparison says %q", compare)
	}
	p.pictured("compare")
	// The page asks once whether a share service is there, and the browser notes
	// the answer on its console.
	if got := missing(); !slices.Equal(got, []string{"/share/v1/"}) {
		t.Errorf("asked for in vain: %v", got)
	}
	p.forgive("status of 404")
	p.quiet()
}
