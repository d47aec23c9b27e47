//go:build !js

package share_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	wire "tideline/protocol/share"
)

// conform holds a host to what every host of the service does. It speaks HTTP
// alone, so that it knows nothing of the host.
func conform(t *testing.T, base string) {
	t.Helper()
	h := &host{base: base, client: &http.Client{}}
	t.Run("limits", h.tellsLimits)
	t.Run("upload and download", h.roundTrip)
	t.Run("resume", h.resumes)
	t.Run("ranges", h.ranges)
	t.Run("refuses", h.refuses)
	t.Run("wrong chunks", h.wrongChunks)
	t.Run("owner", h.owner)
	t.Run("incomplete", h.incomplete)
	t.Run("delete", h.deletes)
	t.Run("expiry", h.expires)
	t.Run("headers", h.headers)
}

type host struct {
	base   string
	client *http.Client
}

// file is content and what is needed to upload it.
type file struct {
	content  []byte
	manifest wire.Manifest
	owner    string
}

func newFile(size int, seed uint64) *file {
	f := &file{content: make([]byte, size), owner: rand.Text() + rand.Text()}
	r := mathrand.NewChaCha8([32]byte{byte(seed)})
	_, _ = r.Read(f.content) // never fails
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	f.manifest = wire.Manifest{Size: int64(size), ChunkSize: 256 << 10, Salt: hex.EncodeToString(salt)}
	for i := range f.manifest.Count() {
		sum := sha256.Sum256(f.chunk(i))
		f.manifest.Chunks = append(f.manifest.Chunks, hex.EncodeToString(sum[:]))
	}
	return f
}

func (f *file) chunk(i int64) []byte {
	at := i * f.manifest.ChunkSize
	return f.content[at : at+f.manifest.Length(i)]
}

func (f *file) path(parts ...any) string {
	p := wire.Root + f.manifest.ID()
	for _, part := range parts {
		p += fmt.Sprintf("/%v", part)
	}
	return p
}

type answered struct {
	status int
	header http.Header
	body   []byte
}

// ask sends one request; headers are name, value, name, value.
func (h *host) ask(t *testing.T, method, path string, body []byte, headers ...string) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.base+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := h.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: read the answer: %v", method, path, err)
	}
	return answered{resp.StatusCode, resp.Header, b}
}

func (h *host) create(t *testing.T, f *file, expiresIn int64) answered {
	t.Helper()
	b, err := json.Marshal(wire.Create{Manifest: f.manifest, ExpiresIn: expiresIn})
	if err != nil {
		t.Fatal(err)
	}
	return h.ask(t, "PUT", f.path(), b, "Content-Type", "application/json", wire.HeaderOwner, f.owner)
}

func (h *host) put(t *testing.T, f *file, i int64, body []byte) answered {
	t.Helper()
	return h.ask(t, "PUT", f.path("chunks", i), body, wire.HeaderOwner, f.owner)
}

func (h *host) finish(t *testing.T, f *file) answered {
	t.Helper()
	return h.ask(t, "POST", f.path("finish"), nil, wire.HeaderOwner, f.owner)
}

func (h *host) upload(t *testing.T, f *file, expiresIn int64) wire.Status {
	t.Helper()
	want(t, h.create(t, f, expiresIn), 200, "")
	for i := range f.manifest.Count() {
		want(t, h.put(t, f, i, f.chunk(i)), 204, "")
	}
	a := h.finish(t, f)
	want(t, a, 200, "")
	return decode[wire.Status](t, a)
}

func decode[T any](t *testing.T, a answered) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%q is not JSON: %v", a.body, err)
	}
	return v
}

// want checks status and, of a failure, its code and that it tells people
// what happened and what to do.
func want(t *testing.T, a answered, status int, code wire.Code) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d instead of %d: %s", a.status, status, a.body)
	}
	if code == "" {
		return
	}
	f := decode[wire.Failure](t, a)
	if f.Error == nil || f.Error.Code != code || f.Error.Message == "" || f.Error.Do == "" {
		t.Fatalf("the answer is %s instead of %s with message and advice", a.body, code)
	}
}

func (h *host) tellsLimits(t *testing.T) {
	a := h.ask(t, "GET", wire.Root, nil)
	want(t, a, 200, "")
	l := decode[wire.Limits](t, a)
	if l.MaxSize != testMaxSize || l.MaxChunk < 1<<20 || l.MaxExpiry <= 0 || l.DefaultExpiry <= 0 || l.UploadTime <= 0 || l.UploadKey {
		t.Errorf("limits are %+v", l)
	}
}

func (h *host) roundTrip(t *testing.T) {
	f := newFile(1_000_000, 1)
	st := h.upload(t, f, 3600)
	if st.State != wire.Complete || st.ID != f.manifest.ID() || time.Until(st.Expires) < 50*time.Minute || time.Until(st.Expires) > 70*time.Minute {
		t.Errorf("the finished share is %+v", st)
	}
	a := h.ask(t, "GET", f.path(), nil)
	want(t, a, 200, "")
	got := decode[wire.Status](t, a)
	if got.Manifest == nil || got.Manifest.ID() != f.manifest.ID() {
		t.Fatalf("the manifest came back as %+v", got)
	}
	for i := range f.manifest.Count() {
		a := h.ask(t, "GET", f.path("chunks", i), nil)
		want(t, a, 200, "")
		if err := got.Manifest.Verify(i, a.body); err != nil || a.header.Get("Content-Length") != strconv.Itoa(len(f.chunk(i))) {
			t.Errorf("chunk %d: %v; Content-Length %q", i, err, a.header.Get("Content-Length"))
		}
	}
	a = h.ask(t, "GET", f.path("content"), nil)
	want(t, a, 200, "")
	if !bytes.Equal(a.body, f.content) {
		t.Errorf("the content came back as %d other bytes", len(a.body))
	}
	want(t, h.ask(t, "GET", f.path("content"), nil, "If-None-Match", a.header.Get("ETag")), 304, "")
	// Everything may be repeated: an answer may have been lost.
	want(t, h.create(t, f, 3600), 200, "")
	want(t, h.put(t, f, 0, f.chunk(0)), 204, "")
	want(t, h.finish(t, f), 200, "")
}

func (h *host) resumes(t *testing.T) {
	f := newFile(900_000, 2)
	want(t, h.create(t, f, 0), 200, "")
	for _, i := range []int64{2, 0} {
		want(t, h.put(t, f, i, f.chunk(i)), 204, "")
	}
	for _, a := range []answered{h.create(t, f, 0), h.ask(t, "GET", f.path(), nil, wire.HeaderOwner, f.owner)} {
		want(t, a, 200, "")
		if st := decode[wire.Status](t, a); st.State != wire.Uploading || fmt.Sprint(st.Missing) != "[1 3]" {
			t.Fatalf("resuming is told %+v", st)
		}
	}
	a := h.finish(t, f)
	want(t, a, 409, wire.Incomplete)
	if !strings.Contains(string(a.body), "2 of 4 chunks are missing, the first is 1") {
		t.Errorf("finishing early: %s", a.body)
	}
	want(t, h.put(t, f, 1, f.chunk(1)), 204, "")
	want(t, h.put(t, f, 3, f.chunk(3)), 204, "")
	want(t, h.finish(t, f), 200, "")
}

func (h *host) ranges(t *testing.T) {
	f := newFile(700_000, 3)
	h.upload(t, f, 0)
	size := len(f.content)
	for _, c := range []struct {
		header   string
		from, to int // half open; to 0: not satisfiable
		status   int
	}{
		{"bytes=0-9", 0, 10, 206},
		{"bytes=262140-262149", 262140, 262150, 206}, // over the border of two chunks
		{"bytes=100-", 100, size, 206},
		{"bytes=100-99999999", 100, size, 206},
		{"bytes=-7", size - 7, size, 206},
		{"bytes=524288-699999", 524288, size, 206},
		{"bytes=0-", 0, size, 200},
		{"bytes=-9999999", 0, size, 200},
		{"bytes=5-3", 0, size, 200},     // not a range: the whole
		{"bytes=0-1,5-6", 0, size, 200}, // several: the whole
		{"lines=1-2", 0, size, 200},
		{"bytes=700000-", 0, 0, 416},
		{"bytes=-0", 0, 0, 416},
	} {
		a := h.ask(t, "GET", f.path("content"), nil, "Range", c.header)
		if c.to == 0 {
			want(t, a, 416, wire.BadRange)
			if a.header.Get("Content-Range") != "bytes */700000" {
				t.Errorf("%s: Content-Range %q", c.header, a.header.Get("Content-Range"))
			}
			continue
		}
		want(t, a, c.status, "")
		if !bytes.Equal(a.body, f.content[c.from:c.to]) {
			t.Errorf("%s: %d bytes, not those from %d to %d", c.header, len(a.body), c.from, c.to)
		}
		if r := fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, size); c.status == 206 && a.header.Get("Content-Range") != r {
			t.Errorf("%s: Content-Range %q instead of %q", c.header, a.header.Get("Content-Range"), r)
		}
	}
	a := h.ask(t, "GET", f.path("content"), nil, "Range", "bytes=0-9", "If-Range", `"other"`)
	want(t, a, 200, "")
}

func (h *host) refuses(t *testing.T) {
	f := newFile(600_000, 4)
	good, _ := json.Marshal(wire.Create{Manifest: f.manifest})
	other := newFile(600_000, 5)
	huge := newFile(600_000, 6)
	huge.manifest.Size = testMaxSize + 1
	huge.manifest.ChunkSize = 1 << 20
	huge.manifest.Chunks = slicesRepeat(huge.manifest.Chunks[0], int(huge.manifest.Count()))
	hugeBody, _ := json.Marshal(wire.Create{Manifest: huge.manifest})
	late, _ := json.Marshal(wire.Create{Manifest: f.manifest, ExpiresIn: 1 << 40})
	for _, c := range []struct {
		name, path, kind, owner string
		body                    []byte
		status                  int
		code                    wire.Code
	}{
		{"another type", f.path(), "text/plain", f.owner, good, 400, wire.BadRequest},
		{"no owner", f.path(), "application/json", "", good, 400, wire.BadRequest},
		{"a short owner", f.path(), "application/json", "secret", good, 400, wire.BadRequest},
		{"another id", other.path(), "application/json", f.owner, good, 400, wire.BadRequest},
		{"no JSON", f.path(), "application/json", f.owner, []byte("{"), 400, wire.BadRequest},
		{"no chunks", f.path(), "application/json", f.owner, []byte(`{"manifest":{"size":5,"chunk_size":262144}}`), 400, wire.BadRequest},
		{"too large", huge.path(), "application/json", f.owner, hugeBody, 413, wire.TooLarge},
		{"a long body", f.path(), "application/json", f.owner, bytes.Repeat([]byte(" "), 600<<10), 413, wire.TooLarge},
		{"kept for ever", f.path(), "application/json", f.owner, late, 400, wire.BadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			want(t, h.ask(t, "PUT", c.path, c.body, "Content-Type", c.kind, wire.HeaderOwner, c.owner), c.status, c.code)
		})
	}
	want(t, h.ask(t, "GET", f.path(), nil), 404, wire.Unknown)
	want(t, h.ask(t, "GET", f.path("content"), nil), 404, wire.Unknown)
	want(t, h.ask(t, "GET", wire.Root+"tooshort", nil), 400, wire.BadLink)
	want(t, h.ask(t, "GET", wire.Root+strings.Repeat("%2e", 32)+"/content", nil), 400, wire.BadLink)
	want(t, h.ask(t, "PATCH", f.path(), nil), 405, wire.NoMethod)
	want(t, h.ask(t, "GET", "/share/v1/a/b/c/d", nil), 405, wire.NoMethod)
	want(t, h.ask(t, "PUT", f.path(), good, "Content-Type", "application/json", wire.HeaderOwner, f.owner, "Origin", "https://elsewhere.example"), 403, wire.CrossOrigin)
	want(t, h.ask(t, "PUT", f.path(), good, "Content-Type", "application/json", wire.HeaderOwner, f.owner, "Sec-Fetch-Site", "cross-site"), 403, wire.CrossOrigin)
	want(t, h.ask(t, "PUT", f.path(), good, "Content-Type", "application/json", wire.HeaderOwner, f.owner, "Origin", h.base), 200, "")
}

func slicesRepeat(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

func (h *host) wrongChunks(t *testing.T) {
	f := newFile(600_000, 7)
	want(t, h.create(t, f, 0), 200, "")
	flipped := bytes.Clone(f.chunk(0))
	flipped[1000] ^= 1
	want(t, h.put(t, f, 0, flipped), 422, wire.WrongChunk)
	want(t, h.put(t, f, 0, f.chunk(1)), 422, wire.WrongChunk)
	want(t, h.put(t, f, 0, f.chunk(0)[:1000]), 400, wire.BadRequest)
	want(t, h.put(t, f, 0, nil), 400, wire.BadRequest)
	want(t, h.put(t, f, 0, append(bytes.Clone(f.chunk(0)), 0)), 413, wire.TooLarge)
	want(t, h.put(t, f, 3, f.chunk(0)), 400, wire.BadRequest)
	want(t, h.put(t, f, -1, f.chunk(0)), 400, wire.BadRequest)
	if st := decode[wire.Status](t, h.create(t, f, 0)); fmt.Sprint(st.Missing) != "[0 1 2]" {
		t.Errorf("after wrong chunks alone %v are missing", st.Missing)
	}
}

func (h *host) owner(t *testing.T) {
	f := newFile(300_000, 8)
	h.upload(t, f, 0)
	thief := *f
	thief.owner = rand.Text() + rand.Text()
	want(t, h.create(t, &thief, 0), 403, wire.WrongOwner)
	want(t, h.put(t, &thief, 0, f.chunk(0)), 403, wire.WrongOwner)
	want(t, h.finish(t, &thief), 403, wire.WrongOwner)
	want(t, h.ask(t, "DELETE", f.path(), nil, wire.HeaderOwner, thief.owner), 403, wire.WrongOwner)
	want(t, h.ask(t, "DELETE", f.path(), nil), 403, wire.WrongOwner)
	want(t, h.ask(t, "GET", f.path("content"), nil), 200, "")
}

func (h *host) incomplete(t *testing.T) {
	f := newFile(300_000, 9)
	want(t, h.create(t, f, 0), 200, "")
	want(t, h.put(t, f, 0, f.chunk(0)), 204, "")
	want(t, h.ask(t, "GET", f.path(), nil), 409, wire.Incomplete)
	want(t, h.ask(t, "GET", f.path("content"), nil), 409, wire.Incomplete)
	want(t, h.ask(t, "GET", f.path("chunks", 0), nil), 409, wire.Incomplete)
}

func (h *host) deletes(t *testing.T) {
	f := newFile(600_000, 10)
	h.upload(t, f, 0)
	want(t, h.ask(t, "GET", f.path(), nil), 200, "")
	for range 2 { // it may be repeated
		want(t, h.ask(t, "DELETE", f.path(), nil, wire.HeaderOwner, f.owner), 204, "")
	}
	for _, path := range []string{f.path(), f.path("content"), f.path("chunks", 0)} {
		want(t, h.ask(t, "GET", path, nil), 410, wire.Deleted)
	}
	want(t, h.create(t, f, 0), 410, wire.Deleted)
	want(t, h.put(t, f, 0, f.chunk(0)), 410, wire.Deleted)
	unknown := newFile(10, 11)
	want(t, h.ask(t, "DELETE", unknown.path(), nil, wire.HeaderOwner, f.owner), 404, wire.Unknown)
}

// expires waits for the end of a share that lives for a second.
func (h *host) expires(t *testing.T) {
	f := newFile(300_000, 12)
	st := h.upload(t, f, 1)
	for {
		a := h.ask(t, "GET", f.path("content"), nil)
		if a.status != 200 {
			want(t, a, 410, wire.Expired)
			if time.Now().Before(st.Expires) {
				t.Errorf("it ended before its time, %v", st.Expires)
			}
			break
		}
		if time.Since(st.Expires) > 30*time.Second {
			t.Fatal("it did not expire")
		}
		time.Sleep(100 * time.Millisecond)
	}
	want(t, h.ask(t, "GET", f.path(), nil), 410, wire.Expired)
	want(t, h.ask(t, "GET", f.path("chunks", 0), nil), 410, wire.Expired)
	want(t, h.create(t, f, 0), 410, wire.Expired)
	want(t, h.ask(t, "DELETE", f.path(), nil, wire.HeaderOwner, f.owner), 204, "")
	want(t, h.ask(t, "GET", f.path(), nil), 410, wire.Deleted)
}

// headers: content of strangers must never become a page of this origin.
func (h *host) headers(t *testing.T) {
	f := newFile(300_000, 13)
	h.upload(t, f, 0)
	for path, cache := range map[string]string{f.path(): "no-store", f.path("content"): "private, no-cache", f.path("chunks", 0): "private, no-cache", wire.Root + "short": "no-store"} {
		a := h.ask(t, "GET", path, nil, "Origin", h.base)
		for name, value := range map[string]string{
			"Cache-Control": cache, "X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'", "Referrer-Policy": "no-referrer",
			"Access-Control-Allow-Origin": "",
		} {
			if got := a.header.Get(name); got != value {
				t.Errorf("%s: %s is %q instead of %q", path, name, got, value)
			}
		}
	}
	if a := h.ask(t, "GET", f.path("content"), nil); a.header.Get("Content-Disposition") != "attachment" || a.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("content is sent as %v", a.header)
	}
	want(t, h.ask(t, "OPTIONS", f.path(), nil, "Origin", "https://elsewhere.example", "Access-Control-Request-Method", "PUT"), 405, wire.NoMethod)
}
