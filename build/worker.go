package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"tideline/web/share/workerd"
)

// maxWorkerGzip is Cloudflare's limit for a Worker on the free plan: what
// fits there fits everywhere.
const maxWorkerGzip = 3 << 20

// worker builds the share Worker into the folder given, or build/out/worker,
// for web/share/wrangler.jsonc to deploy.
func worker(ctx context.Context, args []string) error {
	out, err := oneFolder(args, workerOut)
	if err != nil {
		return err
	}
	if err := step("worker", func() error { return workerd.Bundle(ctx, out) }); err != nil {
		return err
	}
	return workerSize(out)
}

// workerSize adds up what an upload of the folder would take, compressed.
func workerSize(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		return err
	}
	var raw, packed counter
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := copyFile(io.MultiWriter(&raw, z), name); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	fmt.Printf("   worker: %d bytes raw, %d gzip\n", raw, packed)
	if packed > maxWorkerGzip {
		return fmt.Errorf("the Worker is over Cloudflare's limit of %d bytes compressed: see what it imports", maxWorkerGzip)
	}
	return nil
}

func copyFile(to io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = io.Copy(to, f)
	return err
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
