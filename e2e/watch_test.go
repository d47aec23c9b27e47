package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestWatchingTheCards shows two made-up cards live in the page, and their
// lane as a table.
func TestWatchingTheCards(t *testing.T) {
	dir := t.TempDir()
	smi := filepath.Join(dir, "fake-smi")
	text := "#!/bin/sh\nn=$(cat " + dir + "/n 2>/dev/null || echo 0)\nn=$(( (n + 1) % 16 ))\necho $n > " + dir + "/n\n" +
		"echo \"0, Tesla T4, 00000000:3B:00.0, GPU-1, 15360, $(( 450 + n * 900 )), 1, $(( n * 6 )), 12\"\n" +
		"echo '1, Tesla T4, 00000000:AF:00.0, GPU-2, 15360, 2048, 13312, [N/A], [N/A]'\n"
	if err := os.WriteFile(smi, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	a := startVerb(t, "watch", "--smi", smi, "--every", "60ms", "--for", "4s")
	for _, dark := range []bool{false, true} {
		t.Run(map[bool]string{false: "light", true: "dark"}[dark], func(t *testing.T) {
			p := openPage(t, 1440, 900)
			if dark {
				p.dark()
			}
			p.open(a.url)
			p.wait("the lane", `document.querySelector('.lane[data-kind="sample"]')`)
			p.settled()
			p.pictured("cards")
			if lanes := eval[int](p, `document.querySelectorAll(".lane").length`); lanes != 1 {
				t.Errorf("%d lanes, want that of the cards alone", lanes)
			}
			if now := p.text(".lane-now"); !regexp.MustCompile(`of 15.00? GiB`).MatchString(now) {
				t.Errorf("the lane says %q", now)
			}
			p.do("the table twin", chromedp.KeyEvent("8"))
			p.idle()
			if pane := p.text("#pane"); !strings.Contains(pane, "Tesla T4 #1: card memory used") || !strings.Contains(pane, "2.00 GiB") {
				t.Errorf("the table says %q", pane)
			}
			p.screenshot("twin")
			p.quiet()
		})
	}

	// Another token: a page that says so.
	p := openPage(t, 900, 500)
	p.do("open with another token", chromedp.Navigate(regexp.MustCompile(`token=.*`).ReplaceAllString(a.url, "token=another")))
	if title := p.text("h1"); title != "Another agent's token" {
		t.Errorf("the page is titled %q", title)
	}
	p.screenshot("refused")
}
