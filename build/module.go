package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/andybalholm/brotli"
)

const (
	dist = "web/assets/dist"
	// The module's size budget, compressed: what a visitor waits for.
	maxBrotli = 900 << 10
	maxGzip   = 1150 << 10
)

// wasm builds the browser module into the folder that the page embeds,
// together with the loader that must match the toolchain.
func wasm(ctx context.Context, _ []string) error {
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	out := filepath.Join(dist, "tideline.wasm")
	c := command(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./wasm")
	c.Env = jsWASM()
	if err := c.Run(); err != nil {
		return fmt.Errorf("build the browser module: %w", err)
	}
	root, err := goroot(ctx)
	if err != nil {
		return err
	}
	loader, err := os.ReadFile(filepath.Join(root, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return fmt.Errorf("the toolchain's loader for the browser: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dist, "wasm_exec.js"), loader, 0o644); err != nil {
		return err
	}
	return compress(out)
}

// compress writes the module's .br and .gz beside it, unless they are made of
// the very same module already, and holds it to its budget.
func compress(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	br, gz := path+".br", path+".gz"
	if !sameModule(br, raw) {
		if err := os.WriteFile(br, packBrotli(raw), 0o644); err != nil {
			return err
		}
	}
	packed, err := packGzip(raw)
	if err != nil {
		return err
	}
	if err := os.WriteFile(gz, packed, 0o644); err != nil {
		return err
	}
	st, err := os.Stat(br)
	if err != nil {
		return err
	}
	fmt.Printf("   module: %d bytes raw, %d brotli, %d gzip\n", len(raw), st.Size(), len(packed))
	if st.Size() > maxBrotli || len(packed) > maxGzip {
		return fmt.Errorf("the module is over its budget of %d bytes brotli or %d gzip: see what it imports", maxBrotli, maxGzip)
	}
	return nil
}

// sameModule says whether the brotli file unpacks to raw: the best quality
// takes seconds, so it is not done twice for one module.
func sameModule(path string, raw []byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var got bytes.Buffer
	_, err = got.ReadFrom(brotli.NewReader(f))
	return err == nil && bytes.Equal(got.Bytes(), raw)
}

func packBrotli(raw []byte) []byte {
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, brotli.BestCompression)
	w.Write(raw) //nolint:errcheck // a bytes.Buffer takes everything
	w.Close()    //nolint:errcheck // as above
	return b.Bytes()
}

func packGzip(raw []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}
