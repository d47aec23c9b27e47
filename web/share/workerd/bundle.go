package workerd

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Bundle builds the Worker into dir, in place of what is there: app.wasm and
// the three JavaScript files that start it. The loader is the one that comes
// with the workers package, since it hands each request's context to Go; the
// toolchain's own does not.
func Bundle(ctx context.Context, dir string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := goTool(ctx, root, nil, "run", "github.com/syumai/workers/cmd/workers-assets-gen", "-mode=go", "-o", dir); err != nil {
		return fmt.Errorf("write the Worker's loader: %w", err)
	}
	err = goTool(ctx, root, []string{"GOOS=js", "GOARCH=wasm"},
		"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "app.wasm"), "./web/share/worker")
	if err != nil {
		return fmt.Errorf("build the Worker: %w", err)
	}
	return nil
}

func goTool(ctx context.Context, dir string, env []string, args ...string) error {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = dir
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", args[0], err, out)
	}
	return nil
}

// moduleRoot lets a test find the tree from its own folder.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for the module's root: %w", err)
	}
	return filepath.Dir(string(out)), nil
}
