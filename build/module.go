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
)

// modules are the browser's programs: the viewer, what reruns workloads and
// what reads other programs' files, each in a worker of its own. Each has a size
// budget, compressed: the first picture waits for the viewer only, so that its
// budget is the tight one; the second carries the whole runtime with its models
// and is fetched beside the picture, the third when the page has nothing else to
// do, or with the first file that needs it.
var modules = []struct {
	file, pkg    string
	brotli, gzip int
}{
	{"tideline.wasm", "./wasm", 900 << 10, 1200 << 10},
	{"rerun.wasm", "./wasm/rerun/module", 1475 << 10, 2050 << 10},
	{"reader.wasm", "./wasm/reader/module", 1525 << 10, 2080 << 10},
}

// cold are the packages that no inner loop of a module lives in. Without
// inlining they, and so a module, are some 3 % smaller.
var cold = []string{
	"fmt", "internal/fmtsort", "reflect", "strings",
	"tideline/protocol/api", "tideline/protocol/event", "tideline/protocol/timeline",
	"tideline/shared/analysis", "tideline/shared/analysis/cause", "tideline/shared/analysis/finding", "tideline/shared/analysis/input",
	"tideline/shared/device", "tideline/shared/exec", "tideline/shared/fit", "tideline/shared/ingest/bfclog", "tideline/shared/launch", "tideline/shared/pipeline", "tideline/shared/place",
	"tideline/shared/program", "tideline/shared/rewrite", "tideline/shared/zoo", "tideline/wasm/bridge", "tideline/wasm/rerun",
	"tideline/protocol/timeline/text", "tideline/shared/analysis/foreign", "tideline/shared/analysis/profiler", "tideline/shared/analysis/reading",
	"tideline/shared/ingest", "tideline/shared/ingest/driverlog", "tideline/shared/ingest/liblog", "tideline/shared/ingest/ortlog", "tideline/shared/ingest/placelog", "tideline/shared/ingest/smilog",
	"tideline/shared/ingest/steplog", "tideline/shared/ingest/torchlog", "tideline/shared/ingest/xlalog", "tideline/shared/remedy", "tideline/wasm/reader",
}

// wasm builds the browser's modules into the folder that the page embeds,
// together with the loader that must match the toolchain.
func wasm(ctx context.Context, _ []string) error {
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	for _, m := range modules {
		args := []string{"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dist, m.file)}
		for _, p := range cold {
			args = append(args, "-gcflags="+p+"=-l")
		}
		c := command(ctx, "go", append(args, m.pkg)...)
		c.Env = jsWASM()
		if err := c.Run(); err != nil {
			return fmt.Errorf("build the browser module %s: %w", m.file, err)
		}
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
	for _, m := range modules {
		if err := compress(filepath.Join(dist, m.file), m.brotli, m.gzip); err != nil {
			return err
		}
	}
	return nil
}

// compress writes the module's .br and .gz beside it, unless they are made of
// the very same module already, and holds it to its budget.
func compress(path string, maxBrotli, maxGzip int) error {
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
	fmt.Printf("   %s: %d bytes raw, %d brotli, %d gzip\n", filepath.Base(path), len(raw), st.Size(), len(packed))
	if st.Size() > int64(maxBrotli) || len(packed) > maxGzip {
		return fmt.Errorf("%s is over its budget of %d bytes brotli or %d gzip: see what it imports", filepath.Base(path), maxBrotli, maxGzip)
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
