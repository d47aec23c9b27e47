//go:build !js

package share

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	wire "tideline/protocol/share"
)

// world is a service on a disk with a clock of its own.
type world struct {
	t     *testing.T
	now   time.Time
	disk  *Disk
	index *laggard
	*Service
}

func newWorld(t *testing.T, change func(*Options)) *world {
	t.Helper()
	disk, err := OpenDisk(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, now: time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC), disk: disk}
	w.index = &laggard{w: w, random: mathrand.New(mathrand.NewPCG(5, 6)), history: map[string][]version{}}
	o := Options{Store: disk, Index: w.index, Now: func() time.Time { return w.now }, Log: func(line string) { t.Log(line) }}
	if change != nil {
		change(&o)
	}
	w.Service = New(o)
	return w
}

// laggard is an Index as stale as KV may be: any answer of the last minute,
// that nothing is there included.
type laggard struct {
	w       *world
	mu      sync.Mutex
	random  *mathrand.Rand
	history map[string][]version
}

type version struct {
	at    time.Time
	value []byte // nil: not there
}

func (l *laggard) Get(_ context.Context, id string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	possible := []version{{}}
	for _, v := range l.history[id] {
		if l.w.now.Sub(v.at) > time.Minute {
			possible = nil
		}
		possible = append(possible, v)
	}
	v := possible[l.random.IntN(len(possible))]
	if v.value == nil {
		return nil, ErrNotExist
	}
	return v.value, nil
}

func (l *laggard) Put(_ context.Context, id string, record []byte, _ time.Time) error {
	l.set(id, record)
	return nil
}

func (l *laggard) Delete(_ context.Context, id string) error {
	l.set(id, nil)
	return nil
}

func (l *laggard) set(id string, value []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.history[id] = append(l.history[id], version{l.w.now, bytes.Clone(value)})
}

const token = "a token of more than thirty-two characters"

func (w *world) ask(method, path string, body []byte) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(wire.HeaderOwner, token)
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	return rec
}

func (w *world) must(status int, method, path string, body []byte) *httptest.ResponseRecorder {
	w.t.Helper()
	rec := w.ask(method, path, body)
	if rec.Code != status {
		w.t.Fatalf("%s %s: %d instead of %d: %s", method, path, rec.Code, status, rec.Body)
	}
	return rec
}

// begin creates a share of two chunks and returns its path and chunks.
func (w *world) begin(expiresIn int64) (path string, chunks [][]byte) {
	w.t.Helper()
	content := make([]byte, 100_000)
	_, _ = rand.Read(content) // never fails
	m := wire.Manifest{Size: int64(len(content)), ChunkSize: wire.MinChunk, Salt: hex.EncodeToString(content[:16])}
	for i := range m.Count() {
		chunk := content[i*m.ChunkSize:][:m.Length(i)]
		sum := sha256.Sum256(chunk)
		m.Chunks = append(m.Chunks, hex.EncodeToString(sum[:]))
		chunks = append(chunks, chunk)
	}
	body, err := json.Marshal(wire.Create{Manifest: m, ExpiresIn: expiresIn})
	if err != nil {
		w.t.Fatal(err)
	}
	path = wire.Root + m.ID()
	w.must(200, "PUT", path, body)
	return path, chunks
}

func (w *world) upload(expiresIn int64) (path string) {
	w.t.Helper()
	path, chunks := w.begin(expiresIn)
	for i, c := range chunks {
		w.must(204, "PUT", fmt.Sprintf("%s/chunks/%d", path, i), c)
	}
	w.must(200, "POST", path+"/finish", nil)
	return path
}

// TestAStaleIndexNeverLies: whatever KV answers from the last minute, a share
// reads whole while it is there and is told as deleted or expired after.
func TestAStaleIndexNeverLies(t *testing.T) {
	w := newWorld(t, nil)
	for round := range 40 {
		path, chunks := w.begin(3600)
		w.must(409, "GET", path+"/content", nil) // a look too early
		for i, c := range chunks {
			w.must(204, "PUT", fmt.Sprintf("%s/chunks/%d", path, i), c)
		}
		w.must(200, "POST", path+"/finish", nil)
		for range 10 {
			w.now = w.now.Add(15 * time.Second)
			if got := w.must(200, "GET", path+"/content", nil).Body; got.Len() != 100_000 {
				t.Fatalf("%d bytes", got.Len())
			}
		}
		end, says := 410, "expired"
		if round%2 == 0 {
			w.must(204, "DELETE", path, nil)
			says = "deleted"
		} else {
			w.now = w.now.Add(time.Hour)
		}
		for range 5 {
			w.now = w.now.Add(15 * time.Second)
			for _, p := range []string{"/content", "/chunks/1"} {
				if got := w.must(end, "GET", path+p, nil).Body.String(); !strings.Contains(got, says) {
					t.Fatalf("round %d: %s", round, got)
				}
			}
		}
	}
}

func (w *world) sweep() int {
	w.t.Helper()
	n, err := w.Sweep(w.t.Context(), 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) objects(prefix string) int {
	w.t.Helper()
	o, err := w.disk.List(w.t.Context(), prefix, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(o)
}

func TestSweepTakesWhatIsOver(t *testing.T) {
	w := newWorld(t, nil)
	lasting := w.upload(20 * 24 * 3600)
	w.upload(3600)
	w.begin(0) // never finished
	gone := w.upload(20 * 24 * 3600)
	w.must(204, "DELETE", gone, nil)
	for _, step := range []struct {
		after                time.Duration
		chunks, meta, status int
		of                   string
	}{
		{0, 4, 4, 200, lasting},
		{3 * time.Hour, 2, 4, 200, lasting}, // the one of an hour
		{26 * time.Hour, 2, 4, 200, lasting},
		{19 * 24 * time.Hour, 2, 4, 410, gone},
		{35 * 24 * time.Hour, 0, 1, 410, lasting},
		{80 * 24 * time.Hour, 0, 0, 404, lasting},
	} {
		w.now = time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC).Add(step.after)
		w.sweep()
		if c, m := w.objects("chunk/"), w.objects("meta/"); c != step.chunks || m != step.meta {
			t.Errorf("after %v: %d chunks and %d records instead of %d and %d", step.after, c, m, step.chunks, step.meta)
		}
		w.must(step.status, "GET", step.of, nil)
	}
	if w.objects(markers) != 0 || w.disk.Used() != 0 {
		t.Errorf("%d markers and %d bytes stay", w.objects(markers), w.disk.Used())
	}
}

func TestSweepIsBoundedAndGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	for range 5 {
		w.upload(60)
	}
	w.now = w.now.Add(3 * time.Hour)
	for w.objects("chunk/") > 0 {
		n, err := w.Sweep(t.Context(), 2)
		if err != nil || n == 0 || n > 2 {
			t.Fatalf("%d, %v", n, err)
		}
	}
}

func TestUploadKey(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.UploadKey = "the key" })
	m := wire.Manifest{Size: 1, ChunkSize: wire.MinChunk, Salt: strings.Repeat("ab", 16), Chunks: []string{strings.Repeat("cd", 32)}}
	body, _ := json.Marshal(wire.Create{Manifest: m})
	for key, status := range map[string]int{"": 401, "the kez": 401, "the key": 200} {
		r := httptest.NewRequestWithContext(t.Context(), "PUT", wire.Root+m.ID(), bytes.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(wire.HeaderOwner, token)
		r.Header.Set(wire.HeaderUpload, key)
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		if rec.Code != status {
			t.Errorf("with the key %q: %d %s", key, rec.Code, rec.Body)
		}
	}
}

func TestAFullDiskSaysSo(t *testing.T) {
	disk, err := OpenDisk(t.TempDir(), 80_000)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	w := newWorld(t, func(o *Options) { o.Store, o.Index = disk, nil })
	path, chunks := w.begin(0)
	w.must(204, "PUT", path+"/chunks/0", chunks[0])
	if got := w.must(507, "PUT", path+"/chunks/1", chunks[1]).Body.String(); !strings.Contains(got, "no room") {
		t.Error(got)
	}
	w.must(204, "DELETE", path, nil)
}

// TestTroubleInsideIsNotTold: paths of the host stay in its log.
func TestTroubleInsideIsNotTold(t *testing.T) {
	var log []string
	w := newWorld(t, func(o *Options) { o.Log = func(line string) { log = append(log, line) }; o.Index = nil })
	path := w.upload(0)
	if err := w.disk.Close(); err != nil {
		t.Fatal(err)
	}
	body := w.must(500, "GET", path+"/content", nil).Body.String()
	if strings.Contains(body, "closed") || !strings.Contains(body, "storage") || len(log) != 1 || !strings.Contains(log[0], "closed") {
		t.Errorf("told %q, noted %q", body, log)
	}
	disk, err := OpenDisk(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	w.disk = disk // for the clean-up
}

func TestDiskKeepsWhatItHadAfterAKill(t *testing.T) {
	dir := t.TempDir()
	d, err := OpenDisk(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for name, body := range map[string]string{"chunk/x/0001": "one", "chunk/x/0000": "zero", "meta/x": "m", "tmp/half": "written in part"} {
		if err := d.Put(ctx, name, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if d, err = OpenDisk(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, err := d.List(ctx, "chunk/", 10)
	if err != nil || fmt.Sprint(got) != "[{chunk/x/0000 4} {chunk/x/0001 3}]" || d.Used() != 8 {
		t.Errorf("%v, %v, %d bytes", got, err, d.Used())
	}
	if _, err := d.Get(ctx, "tmp/half"); !errors.Is(err, ErrNotExist) {
		t.Errorf("what was half written is still there: %v", err)
	}
	if _, err := d.Get(ctx, "../"+"escape"); err == nil || errors.Is(err, ErrNotExist) {
		t.Errorf("a name that leaves the folder: %v", err)
	}
}

func TestLimiter(t *testing.T) {
	now := time.Unix(0, 0)
	l := NewLimiter(func() time.Time { return now })
	from := func(addr string) *http.Request { return &http.Request{RemoteAddr: addr} }
	count := func(addr string, create bool) (n int, wait time.Duration) {
		for n < 1000 {
			if wait = l.Allow(from(addr), create); wait > 0 {
				return n, wait
			}
			n++
		}
		return n, 0
	}
	if n, wait := count("10.0.0.1:4000", false); n != anyRequest.burst || wait != anyRequest.period {
		t.Errorf("%d requests at once, then a wait of %v", n, wait)
	}
	if n, _ := count("10.0.0.1:4001", true); n != newShare.burst {
		t.Errorf("%d shares at once", n)
	}
	if n, _ := count("10.0.0.2:4000", false); n != anyRequest.burst {
		t.Errorf("another address is let in %d times", n)
	}
	now = now.Add(10 * anyRequest.period)
	if n, _ := count("10.0.0.1:4002", false); n != 10 {
		t.Errorf("after ten periods: %d", n)
	}
	count("[2001:db8:1:2::1]:1", false)
	if n, _ := count("[2001:db8:1:2::ffff]:1", false); n != 0 {
		t.Errorf("a neighbour in the same IPv6 network: %d", n)
	}
	for i := range maxSeats + 10 {
		l.Allow(from(fmt.Sprintf("10.%d.%d.%d:1", 1+i>>16, i>>8&255, i&255)), false)
	}
	if len(l.seats) > maxSeats {
		t.Errorf("%d seats", len(l.seats))
	}
}

func TestTooManyRequestsSayWhenToComeBack(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Allow = func(*http.Request, bool) time.Duration { return 1500 * time.Millisecond }
	})
	rec := w.must(429, "GET", wire.Root, nil)
	if rec.Header().Get("Retry-After") != "2" || !strings.Contains(rec.Body.String(), "too_many") {
		t.Errorf("%v %s", rec.Header(), rec.Body)
	}
}

func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"bytes=0-9", "bytes=-5", "bytes=3-", "bytes=-", "bytes= 1-2 ", "bytes=--1", ""} {
		f.Add(s, int64(100))
	}
	f.Fuzz(func(t *testing.T, header string, size int64) {
		size = max(1, size)
		p, ok := parseRange(header, size)
		if ok && (p.start < 0 || p.length <= 0 || p.start > size-p.length) {
			t.Errorf("%q of %d: %+v", header, size, p)
		}
	})
}
