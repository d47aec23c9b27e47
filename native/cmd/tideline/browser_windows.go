//go:build windows

package main

import (
	"context"
	"os/exec"
)

// openBrowser opens an address in the default browser.
func openBrowser(ctx context.Context, url string) error {
	return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", url).Start()
}
