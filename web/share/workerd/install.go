package workerd

import (
	"bytes"
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
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return fmt.Errorf("read the lock file: %w", err)
	}
	if done, err := os.ReadFile(filepath.Join(dir, "node_modules", installed)); err == nil && bytes.Equal(done, lock) {
		return nil
	}
	return install(ctx, dir, lock)
}

// installed is a copy of the lock file that node_modules was made from.
const installed = ".installed-lock.json"

// install works aside and renames, so that tests of several packages may do it
// at once and an interrupted one leaves nothing that looks whole.
func install(ctx context.Context, dir string, lock []byte) error {
	tmp, err := os.MkdirTemp(dir, "node_modules.")
	if err != nil {
		return fmt.Errorf("make a folder to install into: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // what stays is ignored by git
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(tmp, name), b, 0o644)
		}
		if err != nil {
			return fmt.Errorf("prepare the install: %w", err)
		}
	}
	c := exec.CommandContext(ctx, "npm", "ci", "--no-progress")
	c.Dir = tmp
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in %s: %w\n%s", folder, err, out)
	}
	fresh, place := filepath.Join(tmp, "node_modules"), filepath.Join(dir, "node_modules")
	if err := os.WriteFile(filepath.Join(fresh, installed), lock, 0o644); err != nil {
		return fmt.Errorf("note what was installed: %w", err)
	}
	_ = os.Rename(place, filepath.Join(tmp, "old")) // usually there is none
	if err := os.Rename(fresh, place); err != nil {
		if done, rerr := os.ReadFile(filepath.Join(place, installed)); rerr == nil && bytes.Equal(done, lock) {
			return nil // somebody else was quicker
		}
		return fmt.Errorf("put node_modules in its place: %w", err)
	}
	return nil
}
