//go:build darwin

package main

import (
	"context"
	"os/exec"
)

// openBrowser opens an address in the default browser.
func openBrowser(ctx context.Context, url string) error {
	return exec.CommandContext(ctx, "open", url).Start()
}
