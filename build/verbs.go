package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// binary builds the module, then the agent with the page inside.
func binary(ctx context.Context, _ []string) error {
	if err := step("browser module", func() error { return wasm(ctx, nil) }); err != nil {
		return err
	}
	return step("agent", func() error {
		return goCommand(ctx, "build", "-trimpath", "-o", binaryPath(), "./native/cmd/tideline")
	})
}

func binaryPath() string {
	name := "tideline"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join("bin", name)
}

// run builds everything and serves the page.
func run(ctx context.Context, args []string) error {
	if err := binary(ctx, nil); err != nil {
		return err
	}
	c := command(ctx, "./"+binaryPath(), append([]string{"serve"}, args...)...)
	c.Stdin = os.Stdin
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	err := c.Run()
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the user pressed ^C: that is how serving ends
	}
	return err
}

// generate renews the templ output.
func generate(ctx context.Context, _ []string) error {
	templ, err := tool(ctx, "templ", "github.com/a-h/templ/cmd/templ")
	if err != nil {
		return err
	}
	return command(ctx, templ, "generate", "-path", "web").Run()
}

// clean removes what the build made.
func clean(context.Context, []string) error {
	made, err := filepath.Glob(filepath.Join(dist, "*"))
	if err != nil {
		return err
	}
	for _, f := range append(made, "bin") {
		if filepath.Base(f) == ".gitkeep" || filepath.Base(f) == "README" {
			continue
		}
		if err := os.RemoveAll(f); err != nil {
			return fmt.Errorf("remove %s: %w", f, err)
		}
	}
	return nil
}
