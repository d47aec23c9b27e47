package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// needed are the programs that checking takes besides Go, with Debian's
// packages for each.
var needed = []struct {
	what     string
	commands []string // any of these will do
	pkgs     []string
	optional bool // outside CI, what needs it is left out where it is missing
}{
	{"a Chromium for the browser tests", []string{"chromium", "chromium-browser", "google-chrome"}, []string{"chromium"}, false},
	{"Node for the tests of the browser module", []string{"node", "nodejs"}, []string{"nodejs"}, false},
	{"npm, which fetches the runtime for the tests of the share Worker", []string{"npm"}, []string{"npm"}, false},
	{"a C compiler for the race detector and the CUDA backend", []string{"gcc"}, []string{"gcc", "libc6-dev"}, true},
}

// installNeeded makes sure that these programs are there: by Debian's packages
// when we are root on such a machine, else by asking plainly.
func installNeeded(ctx context.Context) error {
	_, err := exec.LookPath("apt-get")
	canInstall := err == nil && os.Geteuid() == 0
	var pkgs, words []string
	for _, n := range needed {
		if !anyInPath(n.commands) && (canInstall || !n.optional) {
			pkgs = append(pkgs, n.pkgs...)
			words = append(words, n.what)
		}
	}
	if len(pkgs) == 0 {
		return nil
	}
	if !canInstall {
		return fmt.Errorf("missing: %s. Install it (on Debian or Ubuntu: sudo apt-get install %s) and run this again; `go run ./build unit` needs none of them",
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
			return fmt.Errorf("installed %v, yet none of %s is in the path", n.pkgs, strings.Join(n.commands, ", "))
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
