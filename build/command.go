package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// command prepares a child process that speaks to our own terminal.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c
}

// goCommand runs the go tool without cgo unless the caller sets it: the
// default build needs no C compiler.
func goCommand(ctx context.Context, args ...string) error {
	c := command(ctx, "go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	return c.Run()
}

// jsWASM is the environment that makes the go tool build for the browser.
func jsWASM() []string {
	return append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
}

// goroot asks the toolchain, since the variable is seldom set.
func goroot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for GOROOT: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// tool builds one of the tools pinned in build/tools once and returns its path.
func tool(ctx context.Context, name, pkg string) (string, error) {
	path, err := filepath.Abs(filepath.Join("bin", "tools", name))
	if err != nil {
		return "", err
	}
	if err := goCommand(ctx, "build", "-modfile=build/tools/go.mod", "-o", path, pkg); err != nil {
		return "", fmt.Errorf("build %s: %w", name, err)
	}
	return path, nil
}

// goPackages lists packages by import path.
func goPackages(ctx context.Context, patterns ...string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %v: %w", patterns, err)
	}
	return strings.Fields(string(out)), nil
}
