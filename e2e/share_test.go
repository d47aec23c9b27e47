package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

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

// share presses Share and returns the link.
func (p *page) share() string {
	p.t.Helper()
	p.wait("the button Share", `!document.querySelector("#share").hidden && !document.querySelector("#share").disabled`)
	p.click("#share")
	p.wait("the dialog", `document.querySelector("#share-dialog").open`)
	p.do("one hour", chromedp.Evaluate[chromedp.Void](`document.querySelector("#k-share-expiry").value = "3600"`))
	p.click("#share-go")
	p.wait("the link", `!document.querySelector("#share-done").hidden || !document.querySelector("#share-problem").hidden`)
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
	p.do("dismiss it", chromedp.Click(chromedp.CSS("#share-dismiss")))
	if !eval[bool](p, `document.querySelector("#share-notice").hidden && document.querySelector("#timeline").hidden`) {
		p.t.Errorf("%s: the notice stays, or something was opened", name)
	}
}

// sharesAndOpens is what both hosts must do: the page shares, another browser
// that never saw the run opens the link, and each way to spoil a link is told.
func sharesAndOpens(t *testing.T, url string) {
	file := record(t)
	p := openPage(t, 1280, 800)
	p.open(url)
	peak := p.shows(file, "recorded")
	link := p.share()
	p.screenshot("shared")
	id, key, _ := strings.Cut(strings.SplitN(link, "#share=", 2)[1], ".")
	base := strings.SplitN(link, "#", 2)[0]

	q := openPage(t, 1280, 800)
	if got := q.opensLink(link); got != peak {
		t.Errorf("peak %s by link, %s where it was shared", got, peak)
	}
	q.screenshot("opened")
	if at := eval[string](q, `location.hash`); !strings.Contains(at, id+"."+key) {
		t.Errorf("the address lost the link: %s", at)
	}
	original, _, _ := hashOf(t, readFile(t, file))
	if hash, _, _ := hashOf(t, q.save()); hash != original {
		t.Errorf("the timeline that came by link is another one")
	}
	q.quiet()

	// By the command as well, bit for bit.
	out := filepath.Join(t.TempDir(), "by-command.tideline")
	command(t, "open", link, "-o", out)
	if string(readFile(t, out)) != string(readFile(t, file)) {
		t.Error("tideline open gave other bytes than were shared on the page")
	}

	other := "A" + key[1:]
	if other == key {
		other = "B" + key[1:]
	}
	unknown := "A" + id[1:]
	if unknown == id {
		unknown = "B" + id[1:]
	}
	r := openPage(t, 390, 844)
	r.refuses("a wrong key", base+"#share="+id+"."+other, "wrong_key", "does not fit")
	r.refuses("a link cut in its key", base+"#share="+id+"."+key[:20], "bad_link", "20 of 43")
	r.refuses("a link cut in its id", base+"#share="+id[:9], "bad_link", "9 of 32")
	r.refuses("an unknown id", base+"#share="+unknown+"."+key, "unknown", "No share has this id")

	p.click("#share-list button")
	p.wait("the list to be empty", `document.querySelector("#share-earlier").hidden`)
	p.click("#share-cancel")
	r.refuses("a deleted share", link, "deleted", "deleted by its owner")
	p.quiet()
}

func TestShareByLinkThroughTheAgent(t *testing.T) { sharesAndOpens(t, startAgent(t).url) }

func TestShareByLinkThroughTheWorker(t *testing.T) { sharesAndOpens(t, startWorker(t, nil).URL+"/") }

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
