package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const artifacts = "artifacts"

var agentBinary string // built once by TestMain

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tideline-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	agentBinary = filepath.Join(dir, "tideline")
	if out, err := exec.Command("go", "build", "-o", agentBinary, "tideline/native/cmd/tideline").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the agent: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// agent is a running tideline serve.
type agent struct {
	cmd  *exec.Cmd
	url  string // with the token, as printed
	data string

	mu  sync.Mutex
	log strings.Builder
}

var printedURL = regexp.MustCompile(`http://\S+token=\S+`)

// startAgent serves on a free port with an empty data folder; files are
// opened as they would be from the command line.
func startAgent(t *testing.T, args ...string) *agent {
	t.Helper()
	return startVerb(t, "serve", args...)
}

// startVerb starts another verb that serves the page.
func startVerb(t *testing.T, verb string, args ...string) *agent {
	t.Helper()
	a := &agent{data: t.TempDir()}
	a.cmd = exec.Command(agentBinary, append([]string{verb, "--addr", "127.0.0.1:0", "--data", a.data}, args...)...)
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.cmd.Stderr = a.cmd.Stdout
	if err := a.cmd.Start(); err != nil {
		t.Fatalf("start the agent: %v", err)
	}
	found := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		a.readLog(out, found)
	}()
	t.Cleanup(func() {
		_ = a.cmd.Process.Signal(os.Interrupt)
		<-read
		_ = a.cmd.Wait()
		if t.Failed() {
			t.Logf("the agent's log:\n%s", a.logText())
		}
	})
	select {
	case a.url = <-found:
	case <-read:
		t.Fatalf("the agent ended before it printed its address:\n%s", a.logText())
	case <-time.After(30 * time.Second):
		t.Fatalf("the agent printed no address:\n%s", a.logText())
	}
	return a
}

func (a *agent) readLog(r io.Reader, found chan<- string) {
	in := bufio.NewScanner(r)
	for in.Scan() {
		a.mu.Lock()
		a.log.WriteString(in.Text() + "\n")
		a.mu.Unlock()
		if u := printedURL.FindString(in.Text()); u != "" {
			select {
			case found <- u:
			default:
			}
		}
	}
}

func (a *agent) logText() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.String()
}

// page is a tab of the browser, watched.
type page struct {
	t    *testing.T
	ctx  context.Context
	name string

	mu       sync.Mutex
	problems []string
}

// browserPath finds the browser, or skips; CI must have one.
func browserPath(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no Chromium in CI: the browser tests would check nothing")
	}
	t.Skip("no Chromium found: install it, or run `go run ./build test`, which says how")
	return ""
}

// openPage starts a browser of the given size; nothing is loaded yet.
func openPage(t *testing.T, width, height int) *page {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(browserPath(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.WindowSize(width, height))
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() { cancel(); cancelAlloc() })
	// The browser lives as long as the context of the first call: no deadline there.
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), int64(height))); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	p := &page{t: t, ctx: ctx, name: strings.ReplaceAll(t.Name(), "/", "-")}
	go p.watch(chromedp.Console(ctx))
	t.Cleanup(func() {
		if t.Failed() {
			p.screenshot("failed")
		}
	})
	return p
}

// watch collects what the console says of errors.
func (p *page) watch(messages func(func(chromedp.ConsoleMessage, error) bool)) {
	for m, err := range messages {
		if err != nil {
			return
		}
		if m.IsException() || strings.HasPrefix(m.String(), "error") || strings.Contains(strings.ToLower(m.String()), "error") {
			p.mu.Lock()
			p.problems = append(p.problems, m.String())
			p.mu.Unlock()
		}
	}
}

// listen notes what the page itself tells of failures.
func (p *page) listen() {
	p.t.Helper()
	p.do("listen to the page's messages", chromedp.Evaluate[chromedp.Void](`(() => {
		globalThis.told = [];
		const toast = document.querySelector("#toast");
		new MutationObserver(() => { if (toast.classList.contains("bad")) told.push(toast.textContent); }).observe(toast, {attributes: true});
	})()`))
}

// reload loads the page anew and waits until the new one is ready: what the old
// one still answers while it goes is not taken for the new one's.
func (p *page) reload() {
	p.t.Helper()
	p.do("reload", chromedp.Evaluate[chromedp.Void](`globalThis.before = true; location.reload()`))
	p.wait("the page anew", `!globalThis.before && document.documentElement.hasAttribute("data-ready")`)
	p.listen()
}

// pictured takes a screenshot and fails the test unless the lanes hold a
// picture: several colours, none of them nearly everywhere.
func (p *page) pictured(name string) []byte {
	p.t.Helper()
	box := eval[[]float64](p, `(() => { const r = document.querySelector("#lanes canvas").getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })()`)
	shot := p.screenshot(name)
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		p.t.Fatalf("the screenshot %s: %v", name, err)
	}
	area := image.Rect(int(box[0])+2, int(box[1])+2, int(box[2])-2, int(box[3])-2).Intersect(img.Bounds())
	colours := map[color.Color]int{}
	most := 0
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := img.At(x, y)
			colours[c]++
			most = max(most, colours[c])
		}
	}
	total := area.Dx() * area.Dy()
	if len(colours) < 4 || most > total*99/100 {
		p.t.Errorf("%s: the first lane, %v, shows %d colours, one of them on %d of %d pixels: no picture", name, area, len(colours), most, total)
	}
	return shot
}

// quiet fails the test when the console or the page has spoken of errors.
func (p *page) quiet() {
	p.t.Helper()
	for _, told := range eval[[]string](p, `globalThis.told ?? ["nobody listened"]`) {
		p.t.Errorf("the page says: %s", told)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.problems {
		p.t.Errorf("the console says: %s", m)
	}
}

// forgive drops complaints that a test expects.
func (p *page) forgive(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = slices.DeleteFunc(p.problems, func(m string) bool { return strings.Contains(m, words) })
}

// do runs steps that must each end within a minute.
func (p *page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v\nstatus: %s\nproblems: %v", what, err, p.tryText("#status"), p.problems)
	}
}

// eval evaluates a JavaScript expression.
func eval[T any](p *page, js string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js))
	if err != nil {
		p.t.Fatalf("evaluate %s: %v", js, err)
	}
	return v
}

func (p *page) tryText(css string) string {
	ctx, cancel := context.WithTimeout(p.ctx, 2*time.Second)
	defer cancel()
	s, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`(document.querySelector(%q)||{}).textContent||""`, css)))
	if err != nil {
		return err.Error()
	}
	return s
}

// wait waits until a JavaScript expression is true.
func (p *page) wait(what, js string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+js+")"))
		if err == nil && ok {
			return
		}
		select {
		case <-ctx.Done():
			p.t.Fatalf("waited a minute for %s (%s): %v; status: %q; problems: %v", what, js, err, p.tryText("#status"), p.problems)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// idle waits until the page says that nothing is pending.
func (p *page) idle() {
	p.t.Helper()
	p.wait("the page to be idle", `document.documentElement.dataset.idle === "true"`)
}

// screenshot keeps a picture of the whole window as an artefact.
func (p *page) screenshot(name string) []byte {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 20*time.Second)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Logf("screenshot %s: %v", name, err)
		return nil
	}
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(artifacts, p.name+"-"+name+".png"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
	return png
}

// dark makes the page believe that the system prefers dark colours.
func (p *page) dark() {
	p.t.Helper()
	p.do("prefer dark", chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
		})
		return err
	}))
}
