//go:build !js

package browser_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/seal"
	wire "tideline/protocol/share"
	"tideline/web/share"
	"tideline/web/share/browser"
)

// sizes lie around the borders of segments.
var sizes = []int{0, 1, 5000, 65439, 65440, 65441, 130960, 130961, 1 << 20}

// TestBrowserAndGoUnderstandEachOther runs the modules under Node, whose
// WebCrypto and fetch are those of browsers.
func TestBrowserAndGoUnderstandEachOther(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") == "" {
		t.Skip("node is not installed: the page's modules are not tested")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plains := map[int][]byte{}
	for _, n := range sizes {
		plains[n] = sealFor(t, dir, n)
	}
	out, err := exec.CommandContext(t.Context(), node, "browser_test.mjs", dir, serve(t)).Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		t.Fatalf("node: %v\n%s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Opened int
		Faults map[string]string
		Shares struct {
			Link    string
			Minutes int
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if report.Opened != len(sizes) || report.Shares.Minutes < 55 || report.Shares.Minutes > 61 {
		t.Errorf("the report is %+v", report)
	}
	if l, err := wire.ParseLink(report.Shares.Link); err != nil || len(l.Key) != seal.KeyTextSize {
		t.Errorf("the page's link %q: %v", report.Shares.Link, err)
	}
	checkFaults(t, report.Faults)
	for n, plain := range plains {
		openFrom(t, dir, n, plain)
	}
}

func serve(t *testing.T) string {
	t.Helper()
	disk, err := share.OpenDisk(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(share.New(share.Options{Store: disk}))
	t.Cleanup(func() { server.Close(); _ = disk.Close() })
	return server.URL
}

func sealFor(t *testing.T, dir string, n int) []byte {
	t.Helper()
	plain := make([]byte, n)
	_, _ = rand.Read(plain) // never fails
	key, err := seal.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	if err := seal.Seal(&sealed, bytes.NewReader(plain), int64(n), key, rand.Reader); err != nil {
		t.Fatal(err)
	}
	for suffix, b := range map[string][]byte{"plain": plain, "sealed": sealed.Bytes(), "key": []byte(key.Text())} {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.%s", n, suffix)), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return plain
}

func openFrom(t *testing.T, dir string, n int, plain []byte) {
	t.Helper()
	sealed, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.js-sealed", n)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.js-key", n)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := seal.ParseKey(string(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := seal.Open(bytes.NewReader(sealed), int64(len(sealed)), key)
	if err != nil {
		t.Fatalf("%d bytes sealed by the page: %v", n, err)
	}
	var got bytes.Buffer
	if _, err := f.WriteTo(&got); err != nil || !bytes.Equal(got.Bytes(), plain) {
		t.Errorf("%d bytes sealed by the page opened to %d, %v", n, got.Len(), err)
	}
}

func checkFaults(t *testing.T, faults map[string]string) {
	t.Helper()
	want := map[string]string{
		"another key":             "wrong_key: ",
		"a cut key":               "bad_key: The key in the link is not whole",
		"a cut file":              "cut: The file is cut short: 200000 of",
		"cut in the header":       "cut: ",
		"a changed segment":       "damaged: The file is damaged: segment 1 at byte 65536",
		"a changed header":        "damaged: The file's header",
		"a changed salt":          "damaged: The file is damaged: segment 0",
		"more behind the end":     "damaged: 1 bytes follow",
		"another file":            "not_sealed: ",
		"a wrong key in the link": "wrong_key: ",
		"an unknown share":        "unknown: No share has this id. Look whether",
		"a cut id":                "bad_link: The link was cut",
		"a link without key":      "bad_link: The link was cut: its key has 0 of 43",
		"a link with half a key":  "bad_link: The link was cut: its key has 38 of 43",
		"somebody else deletes":   "wrong_owner: This share belongs to somebody else.",
		"a deleted share":         "deleted: This share was deleted by its owner. Ask",

		"a checksum that does not fit a new version": "damaged: The file's header",
	}
	for name, says := range want {
		if !strings.HasPrefix(faults[name], says) {
			t.Errorf("%s: %q instead of %q", name, faults[name], says)
		}
	}
	if len(faults) != len(want) {
		t.Errorf("%d faults reported, %d expected", len(faults), len(want))
	}
}

func TestModulesAreCarried(t *testing.T) {
	for _, name := range []string{"seal.js", "share.js"} {
		b, err := browser.Files.ReadFile(name)
		if err != nil || len(b) < 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
}
