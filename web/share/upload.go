package share

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	wire "tideline/protocol/share"
)

// maxManifest bounds the body of a request to create a share.
const maxManifest = 512 << 10

// create begins an upload or, of a share that is there, says what it lacks.
func (s *Service) create(w http.ResponseWriter, r *http.Request) error {
	c, err := s.readCreate(r)
	if err != nil {
		return err
	}
	owner := r.Header.Get(wire.HeaderOwner)
	if len(owner) < wire.MinOwner || len(owner) > wire.MaxOwner {
		return bad("the owner's token has %d characters", len(owner))("send %d to %d random characters in the header %s", wire.MinOwner, wire.MaxOwner, wire.HeaderOwner)
	}
	if key := r.Header.Get(wire.HeaderUpload); s.opts.UploadKey != "" && subtle.ConstantTimeCompare([]byte(key), []byte(s.opts.UploadKey)) != 1 {
		return &wire.Problem{Status: 401, Code: wire.NeedsKey, Message: "this service wants a key from those who upload, and got none or another one", Do: "ask who runs it, and give the key to tideline share"}
	}
	id := r.PathValue("id")
	rec, err := s.find(r.Context(), id, false)
	var p *wire.Problem
	switch {
	case err == nil && !rec.ownedBy(owner):
		return wrongOwner()
	case err == nil:
		return s.tellMissing(w, r, rec)
	case !errors.As(err, &p) || p.Code != wire.Unknown:
		return err
	}
	if err := s.wait(r, true); err != nil {
		return err
	}
	rec = &record{
		ID: id, State: wire.Uploading, Manifest: c.Manifest, Owner: hashOwner(owner), ExpiresIn: c.ExpiresIn,
		Expires: s.opts.Now().Add(time.Duration(s.opts.Limits.UploadTime) * time.Second).UTC(),
	}
	if err := s.save(r.Context(), rec); err != nil {
		return err
	}
	return s.tellMissing(w, r, rec)
}

// readCreate reads and checks what does not need the store.
func (s *Service) readCreate(r *http.Request) (*wire.Create, error) {
	// A form of another origin can send other types without being asked; and
	// no form can send this one.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, bad("the request's Content-Type is %q", r.Header.Get("Content-Type"))("send application/json")
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxManifest+1))
	if err != nil {
		return nil, bad("the request broke off after %d bytes", len(b))("send it again")
	}
	if len(b) > maxManifest {
		return nil, tooLarge("the manifest is longer than %d bytes", maxManifest)("take larger chunks")
	}
	c := new(wire.Create)
	if err := json.Unmarshal(b, c); err != nil {
		return nil, bad("the request is not the JSON of a manifest: %v", err)("see docs/guide/share.md")
	}
	if err := c.Manifest.Validate(); err != nil {
		return nil, bad("the manifest is not sound: %v", err)("see docs/guide/share.md")
	}
	l := s.opts.Limits
	switch {
	case c.Manifest.Size > l.MaxSize:
		return nil, tooLarge("the file has %d bytes; this service takes up to %d", c.Manifest.Size, l.MaxSize)("share a shorter run, or use a service with more room")
	case c.Manifest.ChunkSize > l.MaxChunk:
		return nil, tooLarge("chunks of %d bytes; this service takes up to %d", c.Manifest.ChunkSize, l.MaxChunk)("cut the file into smaller chunks")
	case c.Manifest.ID() != r.PathValue("id"):
		return nil, bad("the id in the path is not that of the manifest, %s", c.Manifest.ID())("the id is a hash of the manifest: see docs/guide/share.md")
	case c.ExpiresIn < 0 || c.ExpiresIn > l.MaxExpiry:
		return nil, bad("expires_in is %d seconds; up to %d are possible", c.ExpiresIn, l.MaxExpiry)("ask for a shorter time")
	case c.ExpiresIn == 0:
		c.ExpiresIn = l.DefaultExpiry
	}
	return c, nil
}

func (s *Service) tellMissing(w http.ResponseWriter, r *http.Request, rec *record) error {
	st := wire.Status{ID: rec.ID, State: rec.State, Expires: rec.Expires}
	if rec.State == wire.Uploading {
		var err error
		if st.Missing, err = s.missing(r.Context(), rec); err != nil {
			return err
		}
	}
	return answer(w, http.StatusOK, st)
}

// owned finds a share for a request that changes it.
func (s *Service) owned(r *http.Request) (*record, error) {
	rec, err := s.find(r.Context(), r.PathValue("id"), false)
	if err != nil {
		return nil, err
	}
	if !rec.ownedBy(r.Header.Get(wire.HeaderOwner)) {
		return nil, wrongOwner()
	}
	return rec, nil
}

func (s *Service) putChunk(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.owned(r)
	if err != nil {
		return err
	}
	i, err := chunkNumber(r, rec)
	if err != nil {
		return err
	}
	if rec.State == wire.Complete { // repeated after its answer was lost
		drain(r, s.opts.Limits.MaxChunk)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if want := rec.Manifest.Length(i); r.ContentLength > want {
		return tooLarge("chunk %d has %d bytes instead of %d", i, r.ContentLength, want)("send the chunks that the manifest lists")
	}
	if err := s.take(r, rec, i); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// take checks a chunk and stores it.
func (s *Service) take(r *http.Request, rec *record, i int64) error {
	want, sum := rec.Manifest.Length(i), rec.Manifest.Chunks[i]
	if taker, ok := s.opts.Store.(Taker); ok && r.ContentLength == want {
		err := taker.Take(r.Context(), rec.chunkName(i), r.Body, want, sum)
		r.Body = http.NoBody // a stream of JavaScript's cannot be read twice
		if errors.Is(err, ErrMismatch) {
			return wrongChunk(fmt.Sprintf("chunk %d has another SHA-256 than %s", i, sum))
		}
		return err
	}
	body, err := readChunk(r.Body, want)
	if err != nil {
		return bad("chunk %d broke off after %d of %d bytes", i, len(body), want)("send it again")
	}
	if err := rec.Manifest.Verify(i, body); err != nil {
		return wrongChunk(err.Error())
	}
	if err := s.opts.Store.Put(r.Context(), rec.chunkName(i), body); err != nil {
		return fmt.Errorf("write chunk %d of %s: %w", i, rec.ID, err)
	}
	return nil
}

func wrongChunk(message string) error {
	return problem(422, wire.WrongChunk, message)("send it again; if that does not help, the file changed: share it anew")
}

// readChunk reads up to one byte more than there should be, so that a body
// that is too long is seen; its buffer never grows.
func readChunk(body io.Reader, want int64) ([]byte, error) {
	b := make([]byte, want+1)
	n, err := io.ReadFull(body, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		if int64(n) == want {
			err = nil
		}
	}
	return b[:n], err
}

func (s *Service) finish(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.owned(r)
	if err != nil {
		return err
	}
	if rec.State == wire.Complete {
		return s.tellMissing(w, r, rec)
	}
	missing, err := s.missing(r.Context(), rec)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return &wire.Problem{Status: 409, Code: wire.Incomplete, Message: fmt.Sprintf("%d of %d chunks are missing, the first is %d", len(missing), rec.Manifest.Count(), missing[0]), Do: "send them, then finish"}
	}
	rec.State = wire.Complete
	rec.Expires = s.opts.Now().Add(time.Duration(rec.ExpiresIn) * time.Second).UTC()
	if err := s.save(r.Context(), rec); err != nil {
		return err
	}
	return s.tellMissing(w, r, rec)
}

func chunkNumber(r *http.Request, rec *record) (int64, error) {
	i, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil || i < 0 || i >= rec.Manifest.Count() {
		return 0, bad("there is no chunk %q", r.PathValue("n"))("this share has the chunks 0 to %d", rec.Manifest.Count()-1)
	}
	return i, nil
}

func wrongOwner() error {
	return &wire.Problem{Status: 403, Code: wire.WrongOwner, Message: "this share belongs to somebody else", Do: "send the token with which it was made in the header " + wire.HeaderOwner}
}

// bad and tooLarge make Problems from two sentences: what happened, what to do.
func bad(format string, args ...any) func(string, ...any) error {
	return problem(400, wire.BadRequest, fmt.Sprintf(format, args...))
}

func tooLarge(format string, args ...any) func(string, ...any) error {
	return problem(413, wire.TooLarge, fmt.Sprintf(format, args...))
}

func problem(status int, code wire.Code, message string) func(string, ...any) error {
	return func(format string, args ...any) error {
		return &wire.Problem{Status: status, Code: code, Message: message, Do: fmt.Sprintf(format, args...)}
	}
}
