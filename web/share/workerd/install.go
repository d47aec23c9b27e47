package workerd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoNode means that Node or npm is not there.
var ErrNoNode = errors.New("node and npm are not installed")

const folder = "web/share/workerd"

// Install fetches Miniflare as package-lock.json pins it, unless it is there.
func Install(ctx context.Context) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: %s is not in the path; on Debian: apt-get install nodejs npm", ErrNoNode, program)
		}
	}
	dir := filepath.Join(root, folder)
	lock, err := os.Stat(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("look for the lock file: %w", err)
	}
	// npm writes this file last, so an interrupted install is done again.
	if done, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil && !done.ModTime().Before(lock.ModTime()) {
		return nil
	}
	c := exec.CommandContext(ctx, "npm", "ci", "--no-progress")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in %s: %w\n%s", folder, err, out)
	}
	return nil
}
