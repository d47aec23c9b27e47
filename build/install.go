package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// needed are the programs that checking takes besides Go, with Debian's
// package for each.
var needed = []struct {
	what     string
	commands []string // any of these will do
	pkg      string
}{
	{"a Chromium for the browser tests", []string{"chromium", "chromium-browser", "google-chrome"}, "chromium"},
	{"Node for the tests of the browser module", []string{"node", "nodejs"}, "nodejs"},
	{"npm, which fetches the runtime for the tests of the share Worker", []string{"npm"}, "npm"},
}

// installNeeded makes sure that the browser and Node are there: by Debian's
// packages when we are root on such a machine, else by asking plainly.
func installNeeded(ctx context.Context) error {
	var pkgs, words []string
	for _, n := range needed {
		if !anyInPath(n.commands) {
			pkgs = append(pkgs, n.pkg)
			words = append(words, n.what)
		}
	}
	if len(pkgs) == 0 {
		return nil
	}
	_, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("missing: %s. Install it (on Debian or Ubuntu: sudo apt-get install %s) and run this again; `go run ./build unit` needs neither",
			strings.Join(words, ", "), strings.Join(pkgs, " "))
	}
	if err := aptGet(ctx, "update", "-qq"); err != nil {
		return err
	}
	if err := aptGet(ctx, append([]string{"install", "-y", "-qq", "--no-install-recommends"}, pkgs...)...); err != nil {
		return err
	}
	for _, n := range needed {
		if !anyInPath(n.commands) {
			return errors.New("installed " + n.pkg + ", yet none of " + strings.Join(n.commands, ", ") + " is in the path")
		}
	}
	return nil
}

func anyInPath(commands []string) bool {
	for _, c := range commands {
		if _, err := exec.LookPath(c); err == nil {
			return true
		}
	}
	return false
}

func aptGet(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, "apt-get", args...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := c.CombinedOutput(); err != nil {
		fmt.Print(string(out))
		return fmt.Errorf("apt-get %s: %w", args[0], err)
	}
	return nil
}
