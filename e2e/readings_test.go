package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"tideline/shared/golden"
)

// says waits until the page says what a file means, and returns it.
func (p *page) says(what string) string {
	p.t.Helper()
	p.wait(what, `tideline.details.tab === "reading" && document.querySelector("#pane .reading")`)
	p.settled()
	return p.text("#pane")
}

// TestReadingsTravelWithTheTimeline: what a file means is in the timeline that the
// page saves and shares, and in the one that the command makes: another browser
// that has only that shows the words, and whose they are.
func TestReadingsTravelWithTheTimeline(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	a := startAgent(t)
	for _, c := range []struct {
		file, kind, verdict string
		log                 bool
		ways                string // in which it is opened again
	}{
		{filepath.Join(golden.Cases(t), "18-torch-2024-bigger-than-the-card", "input.txt"), "pytorch-oom-message", "The request is larger than the device", true, "by link, saved, made by convert, served"},
		{filepath.Join(golden.Cases(t), "31-smi-2026-left-over-workers", "apps.csv"), "nvidia-smi", "", true, "by link"},
		{example("small-model.pickle"), "pytorch-snapshot", "", false, "saved"},
	} {
		p := openPage(t, 1280, 800)
		p.open(a.url)
		p.opened(c.file)
		p.wait("the trials", `!tideline.reader.busy`)
		first := p.says("what it says")
		link := p.share("")
		p.do("close", chromedp.Evaluate[chromedp.Void](`document.querySelector("#share-dialog").close()`))
		saved := filepath.Join(t.TempDir(), "saved.tideline")
		p.do("read what Save writes", chromedp.Evaluate[chromedp.Void](`{ const r = new FileReader(); r.onload = () => (window.saved = r.result); r.readAsDataURL(tideline.blob) }`))
		p.wait("what Save writes", `window.saved`)
		b, err := base64.StdEncoding.DecodeString(eval[string](p, `window.saved.split(",")[1]`))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(saved, b, 0o600); err != nil {
			t.Fatal(err)
		}
		p.quiet()

		made := filepath.Join(t.TempDir(), "made.tideline")
		command(t, "convert", c.file, made)
		for how, open := range map[string]func(*page){
			"by link":         func(p *page) { p.opensLink(link) },
			"saved":           func(p *page) { p.open(a.url); p.opened(saved) },
			"made by convert": func(p *page) { p.open(a.url); p.opened(made) },
			"served":          func(p *page) { p.open(startAgent(t, made).url) },
		} {
			if !strings.Contains(c.ways, how) {
				continue
			}
			p := openPage(t, 1280, 800)
			open(p)
			again := p.says(how)
			p.screenshot(how)
			note, rest, ok := strings.Cut(again, "keeps what that said.")
			if !ok || !strings.Contains(note, "Saved readings") || !strings.Contains(note, c.kind) || !strings.Contains(rest, c.verdict) {
				t.Errorf("%s, %s: %q", c.kind, how, again)
			}
			if words := strings.Join(strings.Fields(rest), " "); words != strings.Join(strings.Fields(first), " ") {
				t.Errorf("%s, %s: says\n%s\nat first\n%s", c.kind, how, words, first)
			}
			if log := eval[string](p, `tideline.current.origin`) == "log"; log != c.log {
				t.Errorf("%s, %s: shown as a log: %v", c.kind, how, log)
			}
			p.quiet()
		}
	}
}
