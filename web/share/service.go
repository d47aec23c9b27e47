package share

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	wire "tideline/protocol/share"
)

// Options is what a host gives the service.
type Options struct {
	Store Store
	Index Index // may be nil

	Limits wire.Limits // a field that is zero takes its value from DefaultLimits

	// UploadKey is asked of those who upload; empty lets everybody.
	UploadKey string

	// Allow says how long a request must wait by the host's rate limits; nil
	// never makes one wait. Creating a share is asked about once more, with
	// create set.
	Allow func(r *http.Request, create bool) time.Duration

	Now func() time.Time  // nil: time.Now
	Log func(line string) // what went wrong inside; nil drops it
}

// DefaultLimits suit a service that people run for themselves.
var DefaultLimits = wire.Limits{
	MaxSize:       1 << 30,
	MaxChunk:      wire.DefaultChunk,
	MaxExpiry:     30 * 24 * 60 * 60,
	DefaultExpiry: 7 * 24 * 60 * 60,
	UploadTime:    24 * 60 * 60,
}

// patience is how long one request may take, at most a chunk of 8 MiB or, of
// the whole content, what a line carries in this time.
const patience = 10 * time.Minute

// Service is the handler; its paths begin with wire.Root.
type Service struct {
	opts   Options
	mux    *http.ServeMux
	origin *http.CrossOriginProtection
}

// New makes the handler. A host mounts it at /share/ beside its page, so that
// both are one origin.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	fill(&o.Limits.MaxSize, DefaultLimits.MaxSize)
	fill(&o.Limits.MaxChunk, DefaultLimits.MaxChunk)
	fill(&o.Limits.MaxExpiry, DefaultLimits.MaxExpiry)
	fill(&o.Limits.DefaultExpiry, min(DefaultLimits.DefaultExpiry, o.Limits.MaxExpiry))
	fill(&o.Limits.UploadTime, DefaultLimits.UploadTime)
	o.Limits.UploadKey = o.UploadKey != ""
	s := &Service{opts: o, mux: http.NewServeMux(), origin: http.NewCrossOriginProtection()}
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET " + wire.Root + "{$}":             s.limits,
		"PUT " + wire.Root + "{id}":            s.create,
		"GET " + wire.Root + "{id}":            s.status,
		"DELETE " + wire.Root + "{id}":         s.remove,
		"PUT " + wire.Root + "{id}/chunks/{n}": s.putChunk,
		"GET " + wire.Root + "{id}/chunks/{n}": s.getChunk,
		"GET " + wire.Root + "{id}/content":    s.content,
		"POST " + wire.Root + "{id}/finish":    s.finish,
		"/":                                    nowhere,
	} {
		s.mux.HandleFunc(pattern, s.answering(h))
	}
	return s
}

func fill(field *int64, value int64) {
	if *field == 0 {
		*field = value
	}
}

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	// A chunk may take long on a slow line, yet not for ever; a host may have
	// set shorter times for its other answers. A Worker has neither deadline.
	c, until := http.NewResponseController(w), time.Now().Add(patience)
	_, _ = c.SetReadDeadline(until), c.SetWriteDeadline(until)
	if err := s.admit(r); err != nil {
		s.fail(w, r, err)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// admit refuses what comes too often, from elsewhere, or with a method that
// would need a body of its own rules (HEAD on a Worker).
func (s *Service) admit(r *http.Request) error {
	if r.Method == http.MethodHead || r.Method == http.MethodOptions {
		return nowhere(nil, r)
	}
	if err := s.origin.Check(r); err != nil {
		return &wire.Problem{Status: 403, Code: wire.CrossOrigin, Message: "the request comes from a page of another origin (" + r.Header.Get("Origin") + ")", Do: "use the page that this service itself serves"}
	}
	return s.wait(r, false)
}

func (s *Service) wait(r *http.Request, create bool) error {
	if s.opts.Allow == nil {
		return nil
	}
	wait := s.opts.Allow(r, create)
	if wait <= 0 {
		return nil
	}
	seconds := int64((wait + time.Second - 1) / time.Second)
	return &tooMany{seconds, &wire.Problem{Status: 429, Code: wire.TooMany, Message: "too many requests from this address", Do: fmt.Sprintf("try again in %d s", seconds)}}
}

// tooMany carries the header Retry-After besides the Problem.
type tooMany struct {
	seconds int64
	*wire.Problem
}

func (e *tooMany) Unwrap() error { return e.Problem }

func nowhere(_ http.ResponseWriter, r *http.Request) error {
	return &wire.Problem{Status: 405, Code: wire.NoMethod, Message: fmt.Sprintf("there is nothing to %s at %s", r.Method, r.URL.Path), Do: "see docs/guide/share.md for what the service answers"}
}

func (s *Service) limits(w http.ResponseWriter, _ *http.Request) error {
	return answer(w, http.StatusOK, s.opts.Limits)
}

func (s *Service) answering(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// fail sends a Problem; what is none is our own trouble, which is noted and
// not told in detail.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	if wait, ok := errors.AsType[*tooMany](err); ok {
		w.Header().Set("Retry-After", strconv.FormatInt(wait.seconds, 10))
	}
	var p *wire.Problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, ErrFull):
		p = &wire.Problem{Status: 507, Code: wire.Full, Message: "the service has no room left", Do: "try again when older shares have expired, or tell who runs it"}
	default:
		s.note("%s %s: %v", r.Method, r.URL.Path, err)
		p = &wire.Problem{Status: 500, Code: wire.Storage, Message: "the service could not reach its storage", Do: "try again; what was uploaded is kept"}
	}
	drain(r, s.opts.Limits.MaxChunk+maxManifest)
	h := w.Header()
	h.Del("ETag")
	h.Del("Content-Length")
	h.Set("Cache-Control", "no-store")
	_ = answer(w, p.Status, wire.Failure{Error: p}) // encoding a Problem cannot fail
}

// drain reads what a client is still sending. workerd resets a connection
// whose request was not read to its end, and the client then sees that
// instead of the answer, or in its next request.
func drain(r *http.Request, limit int64) {
	if r.Body != nil {
		_, _ = io.CopyN(io.Discard, r.Body, limit) // it ends, breaks, or is too long to wait for
	}
}

func answer(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the reader has gone away
	return nil
}

func (s *Service) note(format string, args ...any) {
	if s.opts.Log != nil {
		s.opts.Log(fmt.Sprintf(format, args...))
	}
}
