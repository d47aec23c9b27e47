package main

import (
	"context"
	"errors"
	"path/filepath"
)

const (
	siteOut   = "build/out/site"
	workerOut = "build/out/worker"
)

// site writes the page as plain files into the folder given, or build/out/site.
func site(ctx context.Context, args []string) error {
	out, err := oneFolder(args, siteOut)
	if err != nil {
		return err
	}
	if err := step("browser module", func() error { return wasm(ctx, nil) }); err != nil {
		return err
	}
	return step("site", func() error { return goCommand(ctx, "run", "./build/site", dist, out) })
}

func oneFolder(args []string, otherwise string) (string, error) {
	switch len(args) {
	case 0:
		return filepath.FromSlash(otherwise), nil
	case 1:
		return args[0], nil
	}
	return "", errors.New("give one folder at most")
}
