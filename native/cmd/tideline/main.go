// Command tideline runs workloads, serves the page that shows them, and reads
// what other programs left behind when they ran out of memory.
//
// It is glue: how a run works is shared/launch's, how it is recorded and
// served native/agent's. Here are flags, words for people and exit codes.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"tideline/native/monitor"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitOutOfMemory = 3 // a finding, not a crash
)

// errOutOfMemory: the workload ran out of memory and everything about it has
// been said.
var errOutOfMemory = errors.New("out of memory")

// errSaid: what went wrong has been said.
var errSaid = errors.New("failed")

// usageError is a mistake in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// console is where a command reads and writes.
type console struct {
	in       io.Reader
	out, err io.Writer
}

// say writes to the standard output. A closed pipe is the reader's wish.
func (c *console) say(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

// note writes to the standard error, for people.
func (c *console) note(format string, args ...any) { _, _ = fmt.Fprintf(c.err, format, args...) }

type grammar struct {
	Serve    serveCmd    `cmd:"" default:"withargs" help:"Serve the page, where a demo is one click away. Files given are opened in it."`
	Run      runCmd      `cmd:"" help:"Run workloads without a page. Several run together on one machine and share its cards."`
	Validate validateCmd `cmd:"" help:"Check a workload file and name every problem with its line."`
	Explain  explainCmd  `cmd:"" help:"Say what holds the memory in a file, why a request failed and what would have helped."`
	Replay   replayCmd   `cmd:"" help:"Rerun a timeline under other settings and compare, or answer an allocation trace."`
	Fit      fitCmd      `cmd:"" help:"Say whether a workload fits a card, the largest batch that does, and what makes it fit."`
	Plan     planCmd     `cmd:"" help:"Plan offsets for buffers of known sizes and lifetimes; prove the lowest plan."`
	Diff     diffCmd     `cmd:"" help:"Compare the memory of two timelines."`
	Convert  convertCmd  `cmd:"" help:"Convert whatever explain reads to .tideline, text, Perfetto or Chrome trace, pprof or CSV."`
	Share    shareCmd    `cmd:"" help:"Share a timeline by link, encrypted on this machine; list or delete what was shared."`
	Open     openCmd     `cmd:"" help:"Open a link that somebody shared, in the page or into a file."`
	Attach   attachCmd   `cmd:"" help:"Take a profile from a running TensorFlow or JAX program and open it: tideline attach tf://HOST:PORT."`
	Watch    watchCmd    `cmd:"" help:"Watch the memory of this machine's own cards, live in the page or into a file."`
	Devices  devicesCmd  `cmd:"" help:"List the virtual cards that a workload can ask for."`
	Bench    benchCmd    `cmd:"" help:"Measure Tideline's own speeds on this machine, as ratios."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
	Help     helpCmd     `cmd:"" help:"Say how a verb is called, with an example; tideline VERB --help does the same."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], &console{os.Stdin, os.Stdout, os.Stderr}))
}

// execute runs a command line and returns the exit code.
func execute(ctx context.Context, args []string, c *console) int {
	var g grammar
	exited := -1
	parser, err := kong.New(
		&g, kong.Name("tideline"), kong.Writers(c.out, c.err), kong.Exit(func(code int) { exited = code }),
		kong.Description("See, rerun and fix accelerator memory."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(c),
		kong.Vars{"addr": defaultAddress, "smi": monitor.DefaultSMI},
	)
	if err != nil {
		c.note("tideline: %v\n", err)
		return exitFailed
	}
	withExamples(parser)
	if err := misspelt(args); err != nil {
		c.note("tideline: %v\nTry: tideline help\n", err)
		return exitUsage
	}
	command, err := parser.Parse(args)
	if exited >= 0 { // --help
		return exited
	}
	if err != nil {
		c.note("tideline: %v\nTry: %s\n", err, helpFor(args))
		return exitUsage
	}
	return exitCode(command.Run(), c)
}

// misspelt says that the first word looks like a verb and is none. Files to
// serve may stand there instead: they exist, or have a dot or a slash.
func misspelt(args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.ContainsAny(args[0], `./\`) {
		return nil
	}
	if _, err := os.Stat(args[0]); err == nil {
		return nil
	}
	if is := meant(args[0]); is != "" {
		return fmt.Errorf("%q is neither a verb nor a file%s", args[0], is)
	}
	return nil
}

// without strips what package os says of the file, where we name it already.
func without(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

func exitCode(err error, c *console) int {
	var wrong usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errOutOfMemory):
		return exitOutOfMemory
	case errors.Is(err, errSaid):
		return exitFailed
	case errors.As(err, &wrong):
		c.note("tideline: %v\n", err)
		return exitUsage
	}
	c.note("tideline: %v\n", err)
	return exitFailed
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(c *console) error {
	c.say("tideline %s\n", version())
	return nil
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := strings.Trim(info.Main.Version, "()")
	if v == "" {
		v = "devel"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(v, s.Value[:min(12, len(s.Value))]) {
			v += " " + s.Value[:min(12, len(s.Value))]
		}
	}
	return v
}
