package e2e

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/shared/golden"
	"tideline/web/share/workerd"
)

// siteDir is the page as plain files, as `go run ./build site` writes it.
func siteDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	goRun(t, "tideline/build/site", filepath.Join("..", "web", "assets", "dist"), dir)
	return dir
}

// startWorker runs the share Worker and the page under one origin, as they
// are deployed. Only a machine without Node may leave it out, and never in CI.
func startWorker(t *testing.T, vars map[string]string) *workerd.Server {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // Close ends it, after the last request
	err := workerd.Install(ctx)
	if errors.Is(err, workerd.ErrNoNode) && os.Getenv("CI") == "" {
		t.Skipf("the Worker is not tested: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	bundle := t.TempDir()
	if err := workerd.Bundle(ctx, bundle); err != nil {
		t.Fatal(err)
	}
	w, err := workerd.Start(ctx, workerd.Options{Bundle: bundle, Persist: t.TempDir(), Site: siteDir(t), Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// record runs a small workload by the command and returns its file.
func record(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "recorded.tideline")
	command(t, "run", filepath.Join("..", "examples", "demo.yaml"), "--modelled", "-o", out)
	return out
}

// shows opens a file in the page and returns its peak.
func (p *page) shows(file, name string) (peak string) {
	p.t.Helper()
	p.upload(file)
	p.wait("the file "+name, `document.querySelector("#run-picker").selectedOptions[0]?.textContent.includes("`+name+`")`)
	p.settled()
	return p.text("#fact-peak dd")
}

// asksToShare presses Share.
func (p *page) asksToShare() {
	p.t.Helper()
	p.wait("the button Share", `!document.querySelector("#share").hidden && !document.querySelector("#share").disabled`)
	p.click("#share")
	p.wait("the dialog", `document.querySelector("#share-dialog").open`)
}

const shareAnswered = `!document.querySelector("#share-done").hidden || !document.querySelector("#share-problem").hidden`

// share makes a link, with the upload key that the service wants or "".
func (p *page) share(key string) string {
	p.t.Helper()
	p.asksToShare()
	p.do("one hour", chromedp.Evaluate[chromedp.Void](`document.querySelector("#k-share-expiry").value = "3600"`))
	if asked := eval[bool](p, `!document.querySelector("#share-key-row").hidden`); asked != (key != "") {
		p.t.Errorf("the dialog asks for an upload key: %v", asked)
	}
	p.click("#share-go")
	p.wait("an answer", shareAnswered)
	if key != "" {
		if problem := p.text("#share-problem"); !strings.Contains(problem, "wants a key") {
			p.t.Errorf("without its key the service says %q", problem)
		}
		p.forgive("401")
		p.do("the key", chromedp.Evaluate[chromedp.Void](`document.querySelector("#k-share-key").value = `+quoted(key)))
		p.click("#share-go")
		p.wait("an answer", shareAnswered)
	}
	if problem := p.text("#share-problem"); problem != "" {
		p.t.Fatalf("sharing: %s", problem)
	}
	return eval[string](p, `document.querySelector("#share-link").value`)
}

// opensLink loads a link in a page that has nothing yet, and returns the peak.
func (p *page) opensLink(link string) string {
	p.t.Helper()
	p.open(link)
	p.wait("the timeline or a notice", `!document.querySelector("#timeline").hidden || document.querySelector("#share-notice").dataset.code`)
	p.settled()
	if code := eval[string](p, `document.querySelector("#share-notice").dataset.code || ""`); code != "" {
		p.t.Fatalf("the link does not open: %s", p.text("#share-notice"))
	}
	return p.text("#fact-peak dd")
}

// refuses loads a link and expects a code and words.
func (p *page) refuses(name, link, code, says string) {
	p.t.Helper()
	p.do("leave the page", chromedp.Navigate("about:blank")) // or only the fragment would change
	p.open(link)
	p.wait(name, `document.querySelector("#share-notice").dataset.code`)
	p.idle()
	if got := eval[string](p, `document.querySelector("#share-notice").dataset.code`); got != code || !strings.Contains(p.text("#share-notice"), says) {
		p.t.Errorf("%s: %s, %q; want %s and %q", name, got, p.text("#share-notice"), code, says)
	}
	p.screenshot(code)
	p.do("dismiss it", chromedp.Click(chromedp.CSS("#share-dismiss")))
	if !eval[bool](p, `document.querySelector("#share-notice").hidden && document.querySelector("#timeline").hidden`) {
		p.t.Errorf("%s: the notice stays, or something was opened", name)
	}
}

// sharesAndOpens is what both hosts must do: the page shares, another browser
// that never saw the run opens the link, and each way to spoil a link is told.
func sharesAndOpens(t *testing.T, url, key string) {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir()) // for receipts of the command
	t.Setenv("TIDELINE_UPLOAD_KEY", key)
	file := record(t)
	p := openPage(t, 1280, 800)
	p.open(url)
	peak := p.shows(file, "recorded")
	link := p.share(key)
	p.screenshot("shared")
	id, secret, _ := strings.Cut(strings.SplitN(link, "#share=", 2)[1], ".")
	base, _, _ := strings.Cut(link, "#")

	q := openPage(t, 1280, 800)
	if got := q.opensLink(link); got != peak {
		t.Errorf("peak %s by link, %s where it was shared", got, peak)
	}
	q.screenshot("opened")
	if at := eval[string](q, `location.hash`); !strings.Contains(at, id+"."+secret) {
		t.Errorf("the address lost the link: %s", at)
	}
	original, _, _ := hashOf(t, readFile(t, file))
	if hash, _, _ := hashOf(t, q.save()); hash != original {
		t.Errorf("the timeline that came by link is another one")
	}
	q.quiet()

	// By the command as well, bit for bit.
	if string(openedByCommand(t, link)) != string(readFile(t, file)) {
		t.Error("tideline open gave other bytes than were shared on the page")
	}

	other := "A" + secret[1:]
	if other == secret {
		other = "B" + secret[1:]
	}
	unknown := "A" + id[1:]
	if unknown == id {
		unknown = "B" + id[1:]
	}
	r := openPage(t, 390, 844)
	r.refuses("a wrong key", base+"#share="+id+"."+other, "wrong_key", "does not fit")
	r.refuses("a link cut in its key", base+"#share="+id+"."+secret[:20], "bad_link", "20 of 43")
	r.refuses("a link cut in its id", base+"#share="+id[:9], "bad_link", "9 of 32")
	r.refuses("an unknown id", base+"#share="+unknown+"."+secret, "unknown", "No share has this id")

	brief := sharedByCommand(t, file, url, "1s")
	briefID, _, _ := strings.Cut(strings.SplitN(brief, "#share=", 2)[1], ".")
	gone(t, base, briefID)
	r.refuses("an expired share", brief, "expired", "expired on")

	p.click("#share-list button")
	p.wait("the list to be empty", `document.querySelector("#share-earlier").hidden`)
	p.click("#share-cancel")
	r.refuses("a deleted share", link, "deleted", "deleted by its owner")
	p.quiet()
}

func TestShareByLinkThroughTheAgent(t *testing.T) { sharesAndOpens(t, startAgent(t).url, "") }

func TestShareByLinkThroughTheWorker(t *testing.T) {
	const key = "sesame-sesame"
	sharesAndOpens(t, startWorker(t, map[string]string{"UPLOAD_KEY": key}).URL+"/", key)
}

// TestALinkWithoutItsService opens links where no service is, and where it has
// gone away.
func TestALinkWithoutItsService(t *testing.T) {
	link := "#share=" + strings.Repeat("A", 32) + "." + strings.Repeat("A", 43)
	url, _ := serveFiles(t, siteDir(t))
	p := openPage(t, 1280, 800)
	p.refuses("a site without a service", url+"/"+link, "not_a_service", "Look where the link leads")

	a := startAgent(t)
	p.open(a.url)
	if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	// Its eight attempts without the half minute that they take.
	p.do("hurry, and follow a link", chromedp.Evaluate[chromedp.Void](
		`{const s = setTimeout; window.setTimeout = (f, ms) => s(f, Math.min(ms, 20)); location.hash = `+quoted(link)+`}`))
	p.wait("the notice", `document.querySelector("#share-notice").dataset.code`)
	if got := p.text("#share-notice"); !strings.Contains(got, "The share service does not answer.") || !strings.Contains(got, "Look at the connection") {
		t.Errorf("%q", got)
	}
	if eval[bool](p, `document.querySelector("#share-retry").hidden`) {
		t.Error("it cannot be tried again")
	}
}

// TestAGuestOpensLinksAndRunsNothing: a browser without the agent's token.
func TestAGuestOpensLinksAndRunsNothing(t *testing.T) {
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	p.open(strings.SplitN(a.url, "?", 2)[0])
	if !eval[bool](p, `document.querySelector("#run-agent").hidden && document.documentElement.dataset.agent === "no"`) {
		t.Error("a guest is offered the agent")
	}
	if start := p.text("#start"); !strings.Contains(start, "without the agent’s token") {
		t.Errorf("the start page says %q", start)
	}
	p.shows(record(t), "recorded")
	if !eval[bool](p, `document.querySelector("#share").hidden`) {
		t.Error("a guest is offered to share, which takes the agent's token")
	}
	p.screenshot("opened")
	p.quiet()
}

// TestTheShareDialogByKeyboard shares and ends a share without a mouse, and
// keeps how the dialog looks.
func TestTheShareDialogByKeyboard(t *testing.T) {
	a := startAgent(t)
	file := record(t)
	for _, look := range []struct {
		name          string
		width, height int
		dark          bool
	}{{"wide", 1440, 900, false}, {"dark", 1280, 800, true}, {"phone", 390, 844, false}} {
		t.Run(look.name, func(t *testing.T) {
			p := openPage(t, look.width, look.height)
			if look.dark {
				p.dark()
			}
			p.open(a.url)
			p.shows(file, "recorded")
			p.wait("the button Share", `!document.querySelector("#share").hidden && !document.querySelector("#share").disabled`)
			p.do("reach Share and press it", chromedp.Evaluate[chromedp.Void](`document.querySelector("#share").focus()`), chromedp.KeyEvent("\r"))
			p.wait("the dialog, at its first field", `document.activeElement.id === "k-share-expiry"`)
			p.screenshot("1-ask")
			if wider := eval[bool](p, `document.documentElement.scrollWidth > document.documentElement.clientWidth`); wider {
				t.Errorf("the page is wider than its window of %d pixels", look.width)
			}
			p.do("to Create link", chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"))
			p.do("press it", chromedp.KeyEvent("\r"))
			p.wait("the link, selected", `document.activeElement.id === "share-link" && document.activeElement.selectionEnd > 40`)
			p.screenshot("2-made")
			p.do("to Copy, to Delete, and press it", chromedp.KeyEvent("\t"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
			p.wait("it to be deleted", `document.querySelector("#share-earlier").hidden && !document.querySelector("#share-ask").hidden`)
			p.do("leave", chromedp.KeyEvent("\x1b"))
			p.wait("the button again", `!document.querySelector("#share-dialog").open && document.activeElement.id === "share"`)
			p.quiet()
		})
	}
}

// TestALogByLink opens a shared log, which is text and no timeline.
func TestALogByLink(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	log := filepath.Join(golden.Cases(t), "05-tf-bfc-2023-cifar-fragmented", "input.log")
	a := startAgent(t)
	link := sharedByCommand(t, log, a.url, "1h")
	p := openPage(t, 1280, 800)
	p.open(link)
	p.wait("the verdict", `document.querySelector("#run-state").textContent === "out of memory"`)
	p.settled()
	if pane := p.text("#pane"); !strings.Contains(pane, "532.88 MiB") {
		t.Errorf("the page says %q", pane)
	}
	if at := eval[string](p, `location.hash`); !strings.Contains(at, strings.SplitN(link, "#", 2)[1]) {
		t.Errorf("the address lost the link: %s", at)
	}
	p.shows(record(t), "recorded")
	p.wait("the address to let the link go", `!location.hash.includes("share=")`)
	p.quiet()
}

// TestALongTimelineByLink shares a file of many chunks and opens it elsewhere.
func TestALongTimelineByLink(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "long.tideline")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := timeline.NewWriter(out, timeline.Options{})
	synthetic.Generate(synthetic.Options{Events: 3_000_000, Seed: 5}, w.Strings(), w)
	if err := errors.Join(w.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	a := startAgent(t)
	p := openPage(t, 1280, 800)
	link := sharedByCommand(t, file, a.url, "1h")
	p.open(a.url) // with the token, so that it may share; the link is followed within the page
	began := time.Now()
	peak := p.opensLink(link)
	t.Logf("%d bytes by link and on screen in %v, peak %s", len(readFile(t, file)), time.Since(began).Round(time.Millisecond), peak)
	again := p.share("")
	if string(openedByCommand(t, again)) != string(readFile(t, file)) {
		t.Error("what the page shared again is not what was shared first")
	}
	p.quiet()
}

// gone waits until the service says that a share is over.
func gone(t *testing.T, base, id string) {
	t.Helper()
	for range 100 {
		resp, err := http.Get(strings.TrimSuffix(base, "/") + "/share/v1/" + id)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusGone {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the share does not expire")
}

func openedByCommand(t *testing.T, link string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "by-command.tideline")
	command(t, "open", link, "-o", out)
	return readFile(t, out)
}

// sharedByCommand returns the link, which is the first line of what is printed.
func sharedByCommand(t *testing.T, file, to, expires string) string {
	t.Helper()
	for line := range strings.Lines(command(t, "share", file, "--to", to, "--expires", expires)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "http") {
			return line
		}
	}
	t.Fatal("the command printed no link")
	return ""
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
