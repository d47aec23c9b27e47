package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	wire "tideline/protocol/share"
	"tideline/web/share"
)

// served is an agent that runs until the test ends: its address as printed,
// with the token.
func served(t *testing.T, args ...string) string {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	stderr := new(bytes.Buffer)
	go func() {
		done <- execute(ctx, append(args, "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--json"), &console{strings.NewReader(""), w, stderr})
		_ = w.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != exitDone {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	var said struct{ URL string }
	if err := json.NewDecoder(r).Decode(&said); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	return said.URL
}

// configured gives the command a folder for receipts of its own.
func configured(t *testing.T) (folder string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir) // Linux
	t.Setenv("HOME", dir)            // macOS
	t.Setenv("AppData", dir)         // Windows
	return dir
}

func TestShareThroughAnAgentAndOpen(t *testing.T) {
	configured(t)
	line := recorded(t, small)
	address := served(t, "serve")
	base, _, _ := strings.Cut(address, "/?token=")
	code, link, stderr := tideline(t, "share", line, "--to", address, "--expires", "2h")
	if code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	link = strings.TrimSpace(link)
	l, err := wire.ParseLink(link)
	if err != nil || l.Base != base || l.Key == "" {
		t.Fatalf("%q, %v", l.Public(), err)
	}
	if strings.Contains(stderr, l.Key) {
		t.Errorf("the key is among the messages: %s", stderr)
	}
	out := filepath.Join(t.TempDir(), "back.tideline")
	if code, said, stderr := tideline(t, "open", link, "-o", out); code != exitDone || strings.TrimSpace(said) != out || strings.Contains(stderr, l.Key) {
		t.Fatalf("%d %q %s", code, said, stderr)
	}
	sameFiles(t, line, out)

	code, list, _ := tideline(t, "share", "--list", "--json")
	var receipts []map[string]any
	if err := json.Unmarshal([]byte(list), &receipts); code != exitDone || err != nil || len(receipts) != 1 || receipts[0]["link"] != link || receipts[0]["owner"] != nil {
		t.Errorf("%d %s, %v", code, list, err)
	}
	expires, err := time.Parse(time.RFC3339, receipts[0]["expires"].(string))
	if left := time.Until(expires); err != nil || left < 110*time.Minute || left > 130*time.Minute {
		t.Errorf("expires %v, %v", expires, err)
	}
	if code, list, _ := tideline(t, "share", "--list"); code != exitDone || !strings.Contains(list, "x.tideline") {
		t.Errorf("%d %s", code, list)
	}
	if code, _, stderr := tideline(t, "share", "--delete", link); code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	if code, _, stderr := tideline(t, "open", link, "-o", out); code != exitFailed || !strings.Contains(stderr, "deleted") {
		t.Errorf("%d %s", code, stderr)
	}
	if code, list, _ := tideline(t, "share", "--list"); code != exitDone || !strings.Contains(list, "Nothing was shared") {
		t.Errorf("%d %s", code, list)
	}
}

// TestShareRedacted: what is shared has no names, keeps what it means, and is
// listed as what it is; the file itself and nothing beside it stay.
func TestShareRedacted(t *testing.T) {
	folder := configured(t)
	address := served(t, "serve")
	message := file(t, "secret.txt", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 12.00 GiB of which 9.02 GiB is free. Process 4711 has 1.57 GiB memory in use.\n")
	for name, in := range map[string]string{"a message": message, "a run": recorded(t, small)} {
		code, link, stderr := tideline(t, "share", in, "--redact", "--to", address)
		if code != exitDone || !strings.Contains(stderr, "were left out") {
			t.Fatalf("%s: %d %s", name, code, stderr)
		}
		out := filepath.Join(t.TempDir(), "back.tideline")
		if code, _, stderr := tideline(t, "open", strings.TrimSpace(link), "-o", out); code != exitDone {
			t.Fatal(stderr)
		}
		_, text, _ := tideline(t, "convert", out, "-", "--to", "txt")
		_, report, _ := tideline(t, "explain", "--no-reruns", out)
		for _, secret := range []string{"4711", "secret", "Softmax", "torch.OutOfMemoryError"} {
			if strings.Contains(text+report, secret) {
				t.Errorf("%s: %q was shared: %s%s", name, secret, text, report)
			}
		}
		if want := map[string]string{"a message": "The request is larger than the device", "a run": "GPU_0_bfc"}[name]; !strings.Contains(report, want) {
			t.Errorf("%s: the report does not say %q: %s", name, want, report)
		}
	}
	if _, list, _ := tideline(t, "share", "--list"); !strings.Contains(list, "secret.txt, redacted") {
		t.Errorf("listed as %s", list)
	}
	left, _ := filepath.Glob(filepath.Join(folder, "*", "*", "pending", "*"))
	more, _ := filepath.Glob(filepath.Join(folder, "*", "*", "pending", ".form*"))
	if len(left)+len(more) > 0 {
		t.Errorf("left behind: %v %v", left, more)
	}
	if code, _, stderr := tideline(t, "share", "--redact", "--list"); code != exitUsage || !strings.Contains(stderr, "--redact is for a file") {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestOpenServesWhatItLoaded watches a shared timeline at another agent.
func TestOpenServesWhatItLoaded(t *testing.T) {
	configured(t)
	code, link, stderr := tideline(t, "share", recorded(t, small), "--to", served(t, "serve"))
	if code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	address, token, _ := strings.Cut(served(t, "open", strings.TrimSpace(link)), "/?token=")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/api/v1/files", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(b), "shared.tideline") {
		t.Errorf("%s, %v", b, err)
	}
}

func sameFiles(t *testing.T, a, b string) {
	t.Helper()
	x, errX := os.ReadFile(a)
	y, errY := os.ReadFile(b)
	if errX != nil || errY != nil || !bytes.Equal(x, y) {
		t.Errorf("%d bytes became %d: %v, %v", len(x), len(y), errX, errY)
	}
}

func TestSharingSaysWhatIsWrong(t *testing.T) {
	configured(t)
	line := recorded(t, small)
	base, _, _ := strings.Cut(served(t, "serve"), "/?token=")
	whole := base + "/#share=" + strings.Repeat("A", wire.IDTextSize) + "." + strings.Repeat("A", 43)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"share"}, exitUsage, "give a file to share"},
		{[]string{"share", line, "--list"}, exitUsage, "give a file to share"},
		{[]string{"share", line}, exitUsage, "--to URL"},
		{[]string{"share", line, "--to", base, "--expires=99999h"}, exitUsage, "--expires: a link cannot live for 99999h there: 720h at most"},
		{[]string{"share", line, "--to", base, "--expires=-1h"}, exitUsage, "a second at least"},
		{[]string{"share", file(t, "notes.md", "nothing of ours"), "--to", base}, exitFailed, "notes.md"},
		{[]string{"share", "missing.tideline", "--to", base}, exitFailed, "missing.tideline"},
		{[]string{"share", line, "--to", base}, exitFailed, "needs its token"},
		{[]string{"share", line, "--to", base, "--upload-key", "no"}, exitFailed, "--upload-key"},
		{[]string{"share", line, "--to", base + "/?token=no"}, exitFailed, "needs its token"},
		{[]string{"share", line, "--to", "ftp://host"}, exitFailed, "not the address of a share service"},
		{[]string{"share", "--delete", whole}, exitFailed, "not made here"},
		{[]string{"open"}, exitUsage, "link"},
		{[]string{"open", line, "-o", "x"}, exitFailed, "not a link to a share"},
		{[]string{"open", whole[:len(base)+20], "-o", "x"}, exitFailed, "characters instead of 32"},
		{[]string{"open", strings.TrimSuffix(whole, "."+strings.Repeat("A", 43)), "-o", "x"}, exitFailed, "ends before its key"},
		{[]string{"open", whole, "-o", "x"}, exitFailed, "no share has this id"},
	} {
		code, _, stderr := tideline(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: %d %s; want %d and %q", c.args, code, stderr, c.code, c.says)
		}
		if strings.Contains(stderr, strings.Repeat("A", 43)) {
			t.Errorf("%v: the key is among the messages: %s", c.args, stderr)
		}
	}
}

// TestWhoGivesUpServingWaitsForTheSweep: the store is closed only then.
func TestWhoGivesUpServingWaitsForTheSweep(t *testing.T) {
	for range 50 {
		s, err := openShares(t.TempDir(), func(line string) { t.Error(line) })
		if err != nil {
			t.Fatal(err)
		}
		s.sweeping(t.Context())()
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
	configured(t)
	if code, _, stderr := tideline(t, "serve", "no-such-file", "--data", t.TempDir()); code != exitFailed || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%d %s", code, stderr)
	}
}

// TestServingTakesOldSharesAway: 250 markers, so that one look is not enough.
func TestServingTakesOldSharesAway(t *testing.T) {
	folder := t.TempDir()
	disk, err := share.OpenDisk(folder, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		id := fmt.Sprintf("%032d", i)
		for _, name := range []string{"until/2020010100/" + id, "chunk/" + id + "/0"} {
			if err := disk.Put(t.Context(), name, []byte("old")); err != nil {
				t.Fatal(err)
			}
		}
	}
	used := disk.Used()
	if err := disk.Close(); err != nil || used == 0 {
		t.Fatalf("%d bytes, %v", used, err)
	}
	s, err := openShares(folder, func(line string) { t.Error(line) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.sweep(ctx)
	}()
	left := func() (n int) {
		_ = filepath.WalkDir(folder, func(_ string, e fs.DirEntry, err error) error { // what vanishes meanwhile is no error here
			if err == nil && !e.IsDir() {
				n++
			}
			return nil
		})
		return n
	}
	for range 500 {
		if left() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-done
	if err := s.close(); err != nil || left() > 0 {
		t.Errorf("%d files are left, %v", left(), err)
	}
}
