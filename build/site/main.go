// Command site writes the page as plain files, to be served by anything that
// serves files: it opens timelines and logs, reruns and compares without an
// agent. It asks package ui's handler for each file, so the site is what an
// agent serves; the policy goes into _headers, which Cloudflare and Netlify
// send with every file.
//
// It is a program of its own, so that the build starts even when the page does
// not compile.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tideline/web/assets"
	"tideline/web/share/browser"
	"tideline/web/ui"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: site DIST OUT")
		os.Exit(2)
	}
	if err := write(os.DirFS(os.Args[1]), os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// write puts the site into the folder out, in place of what is there.
func write(dist fs.FS, out string) error {
	if _, err := fs.Stat(dist, "tideline.wasm"); err != nil {
		return fmt.Errorf("the browser module is not built (go run ./build wasm): %w", err)
	}
	if err := empty(out); err != nil {
		return err
	}
	page := ui.Handler(ui.Options{Dist: dist, Share: ui.ShareAsk})
	header, body, err := get(page, "/")
	if err != nil {
		return err
	}
	files := map[string][]byte{"index.html": body, "_headers": headers(header)}
	for _, from := range []fs.FS{assets.Static, dist} {
		if err := take(page, from, files); err != nil {
			return err
		}
	}
	if err := carry(browser.Files, files); err != nil {
		return err
	}
	for name, b := range files {
		file := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("   site: %d files in %s\n", len(files), out)
	return nil
}

// empty clears a folder that an earlier run made, and no other: a path
// mistyped must not cost somebody their files.
func empty(out string) error {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, "_headers")); err != nil {
		return fmt.Errorf("%s holds other things than a site: give another folder, or empty it", out)
	}
	return os.RemoveAll(out)
}

// take asks the handler for every asset of a folder. Compressed copies are
// left to the platform, which makes its own.
func take(page http.Handler, from fs.FS, files map[string][]byte) error {
	names, err := fs.Glob(from, "*.*")
	if err != nil {
		return err
	}
	for _, name := range names {
		switch path.Ext(name) {
		case ".css", ".js", ".svg", ".wasm":
		default:
			continue
		}
		_, body, err := get(page, "/assets/"+name)
		if err != nil {
			return err
		}
		files["assets/"+name] = body
	}
	return nil
}

// carry adds files as they are.
func carry(from fs.FS, files map[string][]byte) error {
	names, err := fs.Glob(from, "*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if files["assets/"+name], err = fs.ReadFile(from, name); err != nil {
			return err
		}
	}
	return nil
}

func get(h http.Handler, at string) (http.Header, []byte, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, at, nil))
	if w.Code != http.StatusOK {
		return nil, nil, fmt.Errorf("the page answers %d for %s", w.Code, at)
	}
	return w.Header(), w.Body.Bytes(), nil
}

// headers are those of the page that do not depend on the file.
func headers(h http.Header) []byte {
	var b bytes.Buffer
	b.WriteString("/*\n")
	for _, name := range []string{"Content-Security-Policy", "Cross-Origin-Opener-Policy", "Referrer-Policy", "X-Content-Type-Options", "Cache-Control"} {
		if v := strings.TrimSpace(h.Get(name)); v != "" {
			fmt.Fprintf(&b, "  %s: %s\n", name, v)
		}
	}
	return b.Bytes()
}
