package sharing

import (
	"bytes"
	"context"
	"errors"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tideline/protocol/seal"
	wire "tideline/protocol/share"
	"tideline/web/share"
)

// place is a service and what a test needs around it.
type place struct {
	t      *testing.T
	url    string
	clock  atomic.Int64 // seconds to add to the service's clock
	chunks atomic.Int64 // chunks that the service was sent
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	dir    string
}

func newPlace(t *testing.T, change func(*share.Options)) *place {
	t.Helper()
	disk, err := share.OpenDisk(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: t.TempDir()}
	o := share.Options{Store: disk, Now: func() time.Time { return time.Now().Add(time.Duration(p.clock.Load()) * time.Second) }}
	if change != nil {
		change(&o)
	}
	service := share.New(o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := p.before.Load(); f != nil && (*f)(w, r) {
			return
		}
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/chunks/") {
			p.chunks.Add(1)
		}
		service.ServeHTTP(w, r)
	}))
	p.url = server.URL
	t.Cleanup(func() { server.Close(); _ = disk.Close() })
	return p
}

func (p *place) client() *Client {
	return &Client{
		Folder: filepath.Join(p.dir, "shares"), HTTP: &http.Client{Transport: &http.Transport{}},
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

// file writes n pseudorandom bytes.
func (p *place) file(name string, n int) (path string, content []byte) {
	p.t.Helper()
	content = make([]byte, n)
	_, _ = mathrand.NewChaCha8([32]byte{1}).Read(content) // never fails
	path = filepath.Join(p.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path, content
}

// share shares a small file and returns the receipt.
func (p *place) share(expires time.Duration) (*Receipt, []byte) {
	p.t.Helper()
	path, content := p.file("small", 200_000)
	r, err := p.client().Share(p.t.Context(), path, p.url, expires)
	if err != nil {
		p.t.Fatal(err)
	}
	return r, content
}

func (p *place) open(link string) ([]byte, error) {
	p.t.Helper()
	out := filepath.Join(p.dir, "opened")
	f, err := p.client().Open(p.t.Context(), link, out)
	if err != nil {
		if _, statErr := os.Stat(out); statErr == nil {
			p.t.Errorf("%v, and yet a file was left", err)
		}
		return nil, err
	}
	b, err := os.ReadFile(f.Path)
	if err != nil || int64(len(b)) != f.Bytes {
		p.t.Fatalf("%d bytes announced, %d there: %v", f.Bytes, len(b), err)
	}
	return b, os.Remove(out)
}

// leftovers are temporary files that should be gone.
func (p *place) leftovers() []string {
	var out []string
	for _, pattern := range []string{".tideline-*", "shares/pending/*", "shares/.new-*"} {
		found, _ := filepath.Glob(filepath.Join(p.dir, pattern)) // the patterns are good
		out = append(out, found...)
	}
	return out
}

// cutter is a TCP proxy that breaks every connection when so many bytes have
// passed in either direction, and lets the next two in only to drop them.
type cutter struct {
	listener net.Listener
	to       string
	cuts     []int64

	mu     sync.Mutex
	passed int64
	drop   int
	broken int
	open   map[net.Conn]bool
}

func newCutter(t *testing.T, to string, cuts ...int64) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{listener: l, to: to, cuts: cuts, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { c.relay(conn) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.mu.Lock()
		c.breakAll()
		c.mu.Unlock()
		all.Wait()
	})
	return c
}

func (c *cutter) url() string { return "http://" + c.listener.Addr().String() }

func (c *cutter) relay(in net.Conn) {
	out, err := net.Dial("tcp", c.to)
	if err != nil {
		_ = in.Close()
		return
	}
	c.mu.Lock()
	c.open[in], c.open[out] = true, true
	if c.drop > 0 {
		c.drop--
		c.breakAll()
	}
	c.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { c.pass(out, in) })
	both.Go(func() { c.pass(in, out) })
	both.Wait()
	c.mu.Lock()
	delete(c.open, in)
	delete(c.open, out)
	c.mu.Unlock()
}

func (c *cutter) pass(to, from net.Conn) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && c.allow(int64(n)) {
			_, err = to.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

func (c *cutter) allow(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += n
	if len(c.cuts) > 0 && c.passed >= c.cuts[0] {
		c.cuts = c.cuts[1:]
		c.drop = 2
		c.broken++
		c.breakAll()
		return false
	}
	return true
}

func (c *cutter) breakAll() {
	for conn := range c.open {
		_ = conn.Close()
	}
}

// TestSixtyMegabytesThroughABreakingConnection: up and down, each way broken
// twice in the middle of a chunk, bit for bit.
func TestSixtyMegabytesThroughABreakingConnection(t *testing.T) {
	p := newPlace(t, nil)
	path, content := p.file("big", 60<<20)
	target := strings.TrimPrefix(p.url, "http://")
	up := newCutter(t, target, 10<<20+12345, 37<<20)
	c := p.client()
	var last, total int64
	c.Progress = func(done, all int64) {
		if done < last {
			t.Errorf("progress went back from %d to %d", last, done)
		}
		last, total = done, all
	}
	r, err := c.Share(t.Context(), path, up.url(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if up.broken != 2 || last != total || total != seal.Size(60<<20) {
		t.Errorf("broken %d times, progress %d of %d", up.broken, last, total)
	}
	down := newCutter(t, target, 8<<20+999, 41<<20)
	got, err := p.open(strings.Replace(r.Link, up.url(), down.url(), 1))
	if err != nil {
		t.Fatal(err)
	}
	if down.broken != 2 || !bytes.Equal(got, content) {
		t.Errorf("broken %d times, equal: %v", down.broken, bytes.Equal(got, content))
	}
	if left := p.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestSharingAgainGoesOn: what a process sent before it ended is not sent again.
func TestSharingAgainGoesOn(t *testing.T) {
	p := newPlace(t, nil)
	path, content := p.file("medium", 20<<20) // five chunks and a bit
	ctx, cancel := context.WithCancel(t.Context())
	c := p.client()
	c.Progress = func(done, _ int64) {
		if done >= 12<<20 {
			cancel()
		}
	}
	if _, err := c.Share(ctx, path, p.url, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("the broken upload: %v", err)
	}
	before := p.chunks.Load()
	r, err := p.client().Share(t.Context(), path, p.url, 0)
	if err != nil || !r.Resumed {
		t.Fatalf("resumed: %+v, %v", r, err)
	}
	if sent := p.chunks.Load(); before != 3 || sent != 6 {
		t.Errorf("%d chunks before and %d in all", before, sent)
	}
	if got, err := p.open(r.Link); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestAnotherFormGoesOn: the form is written once, is not taken for the file as it
// is, and leaves nothing of itself on the disk.
func TestAnotherFormGoesOn(t *testing.T) {
	p := newPlace(t, nil)
	path, content := p.file("formed", 9<<20)
	other, written := bytes.ToUpper(content[:8<<20+5]), 0
	form := &Form{Name: "other", Write: func(w io.Writer) error {
		written++
		_, err := w.Write(other)
		return err
	}}
	ctx, cancel := context.WithCancel(t.Context())
	c := p.client()
	c.Progress = func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	}
	if _, err := c.ShareForm(ctx, path, p.url, form, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("the broken upload: %v", err)
	}
	plain, err := p.client().Share(t.Context(), path, p.url, 0)
	if err != nil || plain.Resumed || plain.Form != "" || plain.Bytes != int64(len(content)) {
		t.Fatalf("the file as it is: %+v, %v", plain, err)
	}
	r, err := p.client().ShareForm(t.Context(), path, p.url, form, 0)
	if err != nil || !r.Resumed || written != 1 || r.Form != "other" || r.Bytes != int64(len(other)) {
		t.Fatalf("written %d times: %+v, %v", written, r, err)
	}
	for link, want := range map[string][]byte{plain.Link: content, r.Link: other} {
		if got, err := p.open(link); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	}
	fails := errors.New("it cannot be written")
	if _, err := p.client().ShareForm(t.Context(), path, p.url, &Form{Name: "third", Write: func(io.Writer) error { return fails }}, 0); !errors.Is(err, fails) {
		t.Errorf("a form that cannot be written: %v", err)
	}
	if left := p.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestAChangedFileIsSealedAnew: the same key and salt never see two contents.
func TestAChangedFileIsSealedAnew(t *testing.T) {
	p := newPlace(t, nil)
	path, content := p.file("changing", 9<<20)
	ctx, cancel := context.WithCancel(t.Context())
	c := p.client()
	c.Progress = func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	}
	if _, err := c.Share(ctx, path, p.url, 0); err == nil {
		t.Fatal("the upload was not broken off")
	}
	content[5]++
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	r, err := p.client().Share(t.Context(), path, p.url, 0)
	if err != nil || r.Resumed {
		t.Fatalf("%+v, %v", r, err)
	}
	if got, err := p.open(r.Link); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestAnUploadThatWasGivenUpBeginsAnew(t *testing.T) {
	p := newPlace(t, nil)
	path, content := p.file("late", 9<<20)
	ctx, cancel := context.WithCancel(t.Context())
	c := p.client()
	c.Progress = func(done, _ int64) {
		if done > 0 {
			cancel()
		}
	}
	if _, err := c.Share(ctx, path, p.url, 0); err == nil {
		t.Fatal("the upload was not broken off")
	}
	p.clock.Store(25 * 3600)
	r, err := p.client().Share(t.Context(), path, p.url, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.open(r.Link); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestLinksThatDoNotOpenSayWhy(t *testing.T) {
	p := newPlace(t, nil)
	r, _ := p.share(0)
	l, err := wire.ParseLink(r.Link)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := p.share(0)
	otherKey, _ := wire.ParseLink(other.Link)
	short, _ := p.share(time.Minute)
	gone, _ := p.share(0)
	if err := p.client().Delete(t.Context(), gone.Link); err != nil {
		t.Fatal(err)
	}
	p.clock.Store(3600)
	for _, c := range []struct {
		name, link string
		want       error
		code       wire.Code
		says       string
	}{
		{"a key of another share", wire.Link{Base: l.Base, ID: l.ID, Key: otherKey.Key}.String(), seal.ErrWrongKey, "", "does not fit"},
		{"a key cut short", r.Link[:len(r.Link)-4], seal.ErrBadKey, "", "39 characters instead of 43"},
		{"no key", l.Public(), nil, "", "ends before its key"},
		{"an id cut short", l.Public()[:len(l.Public())-5], nil, "", "27 characters instead of 32"},
		{"only the address", p.url, nil, "", "ends before its share"},
		{"expired", short.Link, nil, wire.Expired, "expired on"},
		{"deleted", gone.Link, nil, wire.Deleted, "deleted by its owner"},
		{"unknown", wire.Link{Base: l.Base, ID: strings.Repeat("A", 32), Key: l.Key}.String(), nil, wire.Unknown, "no share has this id"},
	} {
		_, err := p.open(c.link)
		var problem *wire.Problem
		switch {
		case err == nil || !strings.Contains(err.Error(), c.says):
			t.Errorf("%s: %v", c.name, err)
		case c.want != nil && !errors.Is(err, c.want):
			t.Errorf("%s: %v is not %v", c.name, err, c.want)
		case c.code != "" && (!errors.As(err, &problem) || problem.Code != c.code):
			t.Errorf("%s: %v is not %s", c.name, err, c.code)
		case strings.Contains(err.Error(), l.Key):
			t.Errorf("%s: the message shows the key: %v", c.name, err)
		}
	}
	if _, err := p.open(r.Link); err != nil {
		t.Errorf("the good link: %v", err)
	}
	if left := p.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestDamageOnTheWayIsLoadedAgain: a byte changed once is asked for once more;
// one that stays wrong is an error and no file.
func TestDamageOnTheWayIsLoadedAgain(t *testing.T) {
	p := newPlace(t, nil)
	r, content := p.share(0)
	damaged := 0
	times := 2
	damage := func(w http.ResponseWriter, req *http.Request) bool {
		if !strings.Contains(req.URL.Path, "/chunks/") || damaged >= times {
			return false
		}
		damaged++
		_, _ = io.WriteString(w, "something else")
		return true
	}
	p.before.Store(&damage)
	if got, err := p.open(r.Link); err != nil || !bytes.Equal(got, content) || damaged != 2 {
		t.Errorf("after %d damaged answers: %d bytes, %v", damaged, len(got), err)
	}
	times = 1000
	if _, err := p.open(r.Link); err == nil || !strings.Contains(err.Error(), "arrived damaged") || !strings.Contains(err.Error(), "8 attempts") {
		t.Errorf("always damaged: %v", err)
	}
}

func TestABusyServiceIsWaitedFor(t *testing.T) {
	var n atomic.Int64
	p := newPlace(t, func(o *share.Options) {
		o.Allow = func(*http.Request, bool) time.Duration {
			if n.Add(1)%3 == 1 {
				return 2 * time.Second
			}
			return 0
		}
	})
	path, content := p.file("small", 100_000)
	c := p.client()
	var waited time.Duration
	c.Wait = func(_ context.Context, d time.Duration) error { waited += d; return nil }
	r, err := c.Share(t.Context(), path, p.url, 0)
	if err != nil || waited < 2*time.Second || waited%(2*time.Second) != 0 {
		t.Fatalf("%v after %v", err, waited)
	}
	if got, err := p.open(r.Link); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestServicesThatRefuse(t *testing.T) {
	p := newPlace(t, func(o *share.Options) { o.Limits.MaxSize = 100_000; o.UploadKey = "open sesame" })
	path, _ := p.file("large", 200_000)
	small, _ := p.file("fits", 50_000)
	c := p.client()
	if _, err := c.Share(t.Context(), small, p.url, 0); err == nil || !strings.Contains(err.Error(), "wants a key") {
		t.Errorf("without the upload key: %v", err)
	}
	c.UploadKey = "open sesame"
	if r, err := c.Share(t.Context(), small, p.url, 0); err != nil || !r.Resumed {
		t.Errorf("with it: %+v, %v", r, err)
	}
	if _, err := c.Share(t.Context(), path, p.url, 0); err == nil || !strings.Contains(err.Error(), "takes up to 100000") {
		t.Errorf("too large: %v", err)
	}
	if _, err := c.Share(t.Context(), p.dir, p.url, 0); err == nil || !strings.Contains(err.Error(), "not a file") {
		t.Errorf("a folder: %v", err)
	}
	if left := p.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if _, err := c.Share(t.Context(), small, other.URL, 0); err == nil || !strings.Contains(err.Error(), "no share service") {
		t.Errorf("another server: %v", err)
	}
}

func TestReceipts(t *testing.T) {
	p := newPlace(t, nil)
	a, _ := p.share(time.Hour)
	b, _ := p.share(2 * time.Hour)
	c := p.client()
	got, err := c.Receipts()
	if err != nil || len(got) != 2 || got[0].Link != b.Link || got[1].Link != a.Link {
		t.Fatalf("%+v, %v", got, err)
	}
	files, _ := filepath.Glob(filepath.Join(c.Folder, "*.json")) // the pattern is good
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %v, %v", f, info.Mode(), err)
		}
	}
	if err := c.Delete(t.Context(), a.Link); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), a.Link); !errors.Is(err, ErrNotOurs) {
		t.Errorf("deleting what is deleted: %v", err)
	}
	if got, err := c.Receipts(); err != nil || len(got) != 1 {
		t.Errorf("%d receipts, %v", len(got), err)
	}
}

func TestService(t *testing.T) {
	for in, want := range map[string]string{
		"share.example.org": "https://share.example.org", "https://x.org/": "https://x.org", "http://127.0.0.1:4000/a/": "http://127.0.0.1:4000/a",
		"": "", "ftp://x": "", "https://": "",
	} {
		got, err := Service(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Service(%q) = %q, %v", in, got, err)
		}
	}
}

// TestNobodyThereIsSaidAtOnce: what cannot be reached at all is not tried again
// and again, and nothing is left of the attempt.
func TestNobodyThereIsSaidAtOnce(t *testing.T) {
	p := newPlace(t, nil)
	path, _ := p.file("run", 1000)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	c := p.client()
	c.Wait = func(context.Context, time.Duration) error { t.Error("it waits"); return nil }
	_, err := c.Share(t.Context(), path, gone.URL, 0)
	if _, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(err.Error(), "look at the address") {
		t.Errorf("%v", err)
	}
	if left := p.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTooLongALife: the service's limit is told in hours, before anything is sealed.
func TestTooLongALife(t *testing.T) {
	p := newPlace(t, func(o *share.Options) { o.Limits.MaxExpiry = 5400 })
	path, _ := p.file("run", 1000)
	_, err := p.client().Share(t.Context(), path, p.url, 99*time.Hour)
	if long, ok := errors.AsType[*ExpiryError](err); !ok || long.Most != 90*time.Minute || err.Error() != "a link cannot live for 99h there: 1h30m at most" {
		t.Errorf("%v", err)
	}
	if left := p.leftovers(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
