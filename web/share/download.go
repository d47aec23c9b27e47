package share

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	wire "tideline/protocol/share"
)

// status tells anyone who has the link what a share holds, and its owner what
// it lacks.
func (s *Service) status(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.find(r.Context(), r.PathValue("id"), true)
	if err != nil {
		return err
	}
	if rec.State == wire.Uploading {
		if rec.ownedBy(r.Header.Get(wire.HeaderOwner)) {
			return s.tellMissing(w, r, rec)
		}
		return incomplete()
	}
	return answer(w, http.StatusOK, wire.Status{ID: rec.ID, State: rec.State, Expires: rec.Expires, Manifest: &rec.Manifest})
}

func incomplete() error {
	return &wire.Problem{Status: 409, Code: wire.Incomplete, Message: "this share is still being uploaded", Do: "try again in a moment"}
}

// readable finds a share for reading.
func (s *Service) readable(r *http.Request) (*record, error) {
	rec, err := s.find(r.Context(), r.PathValue("id"), true)
	if err == nil && rec.State != wire.Complete {
		err = incomplete()
	}
	return rec, err
}

func (s *Service) getChunk(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.readable(r)
	if err != nil {
		return err
	}
	i, err := chunkNumber(r, rec)
	if err != nil {
		return err
	}
	tag := `"` + rec.Manifest.Chunks[i] + `"`
	contentHeaders(w, tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.send(w, r, rec, span{i * rec.Manifest.ChunkSize, rec.Manifest.Length(i)}, http.StatusOK)
}

func (s *Service) content(w http.ResponseWriter, r *http.Request) error {
	rec, err := s.readable(r)
	if err != nil {
		return err
	}
	tag := `"` + rec.ID + `"`
	contentHeaders(w, tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	size := rec.Manifest.Size
	asked := ""
	if values := r.Header.Values("Range"); len(values) == 1 { // a Worker is given several ranges as several values
		asked = values[0]
	}
	if since := r.Header.Get("If-Range"); since != "" && since != tag {
		asked = ""
	}
	part, ok := parseRange(asked, size)
	if !ok {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		return &wire.Problem{Status: 416, Code: wire.BadRange, Message: fmt.Sprintf("the range %q lies outside of the %d bytes", asked, size), Do: "ask for bytes that are there"}
	}
	if part.length == size {
		return s.send(w, r, rec, part, http.StatusOK)
	}
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", part.start, part.start+part.length-1, size))
	return s.send(w, r, rec, part, http.StatusPartialContent)
}

// contentHeaders lets a browser keep what it must ask about again: a share
// that was deleted is gone at the next look.
func contentHeaders(w http.ResponseWriter, tag string) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Accept-Ranges", "bytes")
	h.Set("ETag", tag)
}

type span struct{ start, length int64 }

// parseRange reads a Range header with one range. What is not understood, or
// asks for several, is answered with the whole, as RFC 9110 allows; ok is
// false for a range that lies outside.
func parseRange(header string, size int64) (part span, ok bool) {
	whole := span{0, size}
	spec, found := strings.CutPrefix(header, "bytes=")
	if !found || strings.Contains(spec, ",") {
		return whole, true
	}
	from, to, found := strings.Cut(strings.TrimSpace(spec), "-")
	if !found {
		return whole, true
	}
	if from == "" { // the last bytes
		n, err := strconv.ParseInt(to, 10, 64)
		if err != nil || n < 0 {
			return whole, true
		}
		n = min(n, size)
		return span{size - n, n}, n > 0
	}
	start, err := strconv.ParseInt(from, 10, 64)
	if err != nil || start < 0 {
		return whole, true
	}
	end := size - 1
	if to != "" {
		if end, err = strconv.ParseInt(to, 10, 64); err != nil || end < start {
			return whole, true
		}
		end = min(end, size-1)
	}
	return span{start, end - start + 1}, start < size
}

// send writes a part of the content, chunk after chunk. The first is opened
// before the answer begins; if a later one fails, the answer stays shorter
// than its Content-Length, which every client notices.
func (s *Service) send(w http.ResponseWriter, r *http.Request, rec *record, part span, status int) error {
	parts := rec.parts(part)
	w.Header().Set("Content-Length", strconv.FormatInt(part.length, 10))
	if sender, ok := s.opts.Store.(Sender); ok && len(parts) > 1 {
		if err := sender.Send(r.Context(), w, parts); err != nil {
			return s.explainGap(r.Context(), rec, err)
		}
		w.WriteHeader(status)
		return nil
	}
	body, err := s.opts.Store.Open(r.Context(), parts[0].Name, parts[0].Offset, parts[0].Length)
	if err != nil {
		return s.explainGap(r.Context(), rec, err)
	}
	w.WriteHeader(status)
	for {
		_, err := io.Copy(w, body)
		_ = body.Close() // it was read to its end, or nobody wants the rest
		if parts = parts[1:]; err != nil || len(parts) == 0 {
			return nil //nolint:nilerr // the reader has gone away
		}
		if body, err = s.opts.Store.Open(r.Context(), parts[0].Name, parts[0].Offset, parts[0].Length); err != nil {
			s.note("%s while sending: %v", parts[0].Name, err)
			return nil
		}
	}
}

// parts are the pieces of chunks that a part of the content consists of.
func (r *record) parts(part span) []Part {
	var out []Part
	for part.length > 0 {
		i := part.start / r.Manifest.ChunkSize
		within := part.start - i*r.Manifest.ChunkSize
		n := min(part.length, r.Manifest.Length(i)-within)
		out = append(out, Part{r.chunkName(i), within, n})
		part = span{part.start + n, part.length - n}
	}
	return out
}

// explainGap: a chunk that is not there means that the Index was behind.
func (s *Service) explainGap(ctx context.Context, rec *record, err error) error {
	if !errors.Is(err, ErrNotExist) {
		return fmt.Errorf("open content of %s: %w", rec.ID, err)
	}
	if _, now := s.find(ctx, rec.ID, false); now != nil {
		return now
	}
	return fmt.Errorf("content of %s is missing: %w", rec.ID, err)
}
