package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is the bar of a command's runs; nil-safe, so that nobody asks
// whether there is one.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress makes a bar on the standard error when a person watches it.
func newProgress(c *console, runs []*going, quiet bool) *progress {
	f, ok := c.err.(*os.File)
	if quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	steps := 0
	for _, g := range runs {
		steps += g.w.Steps
	}
	return &progress{progressbar.NewOptions(
		steps, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(runs[0].w.Name),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("steps"),
		progressbar.OptionThrottle(50*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30),
	)}
}

func (p *progress) step() {
	if p.bar != nil {
		_ = p.bar.Add(1) // drawing failed: nobody watches any more
	}
}

func (p *progress) finish() {
	if p.bar != nil {
		_ = p.bar.Finish() // as in step
	}
}

// newByteProgress makes a bar of bytes, whose number at tells.
func newByteProgress(c *console, what string, quiet bool) *progress {
	f, ok := c.err.(*os.File)
	if quiet || !ok || !term.IsTerminal(int(f.Fd())) {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(
		-1, progressbar.OptionSetWriter(f), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(50*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30),
	)}
}

// at says how many bytes of how many have passed.
func (p *progress) at(done, total int64) {
	if p.bar != nil {
		p.bar.ChangeMax64(total)
		_ = p.bar.Set64(done) // as in step
	}
}
