package ui

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"tideline/web/assets"
	"tideline/web/share/browser"
)

// Options is what the page has to know of its host.
type Options struct {
	Agent  bool // an agent answers under /api/v1: offer runs, not only files
	Guest  bool // an agent is there, and this visitor brought no token for it
	Module bool // the browser modules are there; Handler finds out by itself
	Share  Share

	// Dist holds tideline.wasm, rerun.wasm, reader.wasm and wasm_exec.js; nil takes what was
	// embedded.
	Dist fs.FS
}

// Share says whether a share service answers under /share/ of the page's
// origin.
type Share string

// The page of plain files does not know what it will stand beside.
const (
	ShareNo  Share = "" // the page never asks
	ShareYes Share = "yes"
	ShareAsk Share = "ask" // the page asks once, when it starts
)

// Policy is the Content-Security-Policy of every answer. A worker obeys the
// policy sent with its own script, so the assets carry it as well.
const Policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; " +
	"img-src 'self' data: blob:; connect-src 'self'; worker-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Handler serves the page at / and its files under /assets/. It answers 404
// for every other path, so a host mounts its API beside it.
func Handler(o Options) http.Handler {
	if o.Dist == nil {
		o.Dist, _ = fs.Sub(assets.Dist, "dist") // cannot fail: the folder is embedded by name
	}
	o.Module = true
	for _, name := range []string{"tideline.wasm", "rerun.wasm", "reader.wasm", "wasm_exec.js"} {
		if _, err := fs.Stat(o.Dist, name); err != nil {
			o.Module = false
		}
	}
	files := &fileServer{static: assets.Static, dist: o.Dist}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { servePage(w, r, o) })
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { files.serve(w, r, "icon.svg") })
	mux.HandleFunc("GET /assets/{name}", func(w http.ResponseWriter, r *http.Request) {
		files.serve(w, r, r.PathValue("name"))
	})
	return mux
}

func servePage(w http.ResponseWriter, r *http.Request, o Options) {
	var b bytes.Buffer
	if err := Page(o).Render(r.Context(), &b); err != nil {
		http.Error(w, "render the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	secure(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	// Nothing is left to do when the reader has gone away.
	_, _ = w.Write(b.Bytes())
}

func secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// contentTypes are set by us: the system's own table may lack or change them,
// and a module sent as anything else is not compiled while it streams.
var contentTypes = map[string]string{
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".wasm": "application/wasm",
}

// fileServer serves the embedded files, in the best encoding that lies beside
// each of them and the client takes.
type fileServer struct {
	static, dist fs.FS
	tags         sync.Map // name -> ETag, made on first use
}

func (s *fileServer) serve(w http.ResponseWriter, r *http.Request, name string) {
	kind, known := contentTypes[path.Ext(name)]
	if !known {
		http.NotFound(w, r)
		return
	}
	body, encoding, err := s.read(name, r.Header.Get("Accept-Encoding"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	secure(w)
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache") // kept, but asked about: the tag answers
	if encoding != "" {
		h.Set("Content-Encoding", encoding)
	}
	tag := s.tag(name+encoding, body)
	h.Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body) // as in servePage
}

// read returns a file, compressed when a copy exists that the client takes.
func (s *fileServer) read(name, accept string) (body []byte, encoding string, err error) {
	for _, c := range []struct{ suffix, coding string }{{".br", "br"}, {".gz", "gzip"}} {
		if !accepts(accept, c.coding) {
			continue
		}
		if b, err := fs.ReadFile(s.dist, name+c.suffix); err == nil {
			return b, c.coding, nil
		}
	}
	if b, err := fs.ReadFile(s.static, name); err == nil {
		return b, "", nil
	}
	if b, err := fs.ReadFile(s.dist, name); err == nil {
		return b, "", nil
	}
	b, err := fs.ReadFile(browser.Files, name) // the share service's modules
	return b, "", err
}

// accepts reads an Accept-Encoding header; a coding with q=0 is refused.
func accepts(header, coding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if strings.TrimSpace(name) != coding {
			continue
		}
		q := strings.TrimSpace(params)
		return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
	}
	return false
}

func (s *fileServer) tag(key string, body []byte) string {
	if t, ok := s.tags.Load(key); ok {
		return t.(string)
	}
	sum := sha256.Sum256(body)
	t := `"` + hex.EncodeToString(sum[:12]) + `"`
	s.tags.Store(key, t)
	return t
}
