// Command build is the project's build, in Go alone: go run ./build VERB.
//
// A machine that has Go has everything it takes to see the demo and to check
// the tree; what else a verb needs (Chromium, Node) it installs or asks for
// in plain words. Taskfile.yml offers the same verbs. The build knows how to
// make things, never how they work.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// A verb is one thing that the build can do.
type verb struct {
	name string
	does string
	run  func(ctx context.Context, args []string) error
}

var verbs []verb

func main() { os.Exit(mainCode()) }

// mainCode is main with its deferred calls: os.Exit would skip them.
func mainCode() int {
	verbs = []verb{
		{"run", "build everything and serve the page (further arguments go to tideline serve, such as --addr 127.0.0.1:0)", run},
		{"test", "check the whole tree: format, generated code, lint, vet, tests, fuzzing, module, browser", test},
		{"unit", "the unit tests alone", unit},
		{"test:cuda", "the backend for NVIDIA cards, on a fake driver", testCUDA},
		{"test:tensorflow", "attach to real TensorFlow and JAX from the Python registry (or: test:tensorflow FOLDER, which keeps them)", testTensorFlow},
		{"test:wasm", "the core's tests as WebAssembly under Node", testWASM},
		{"e2e", "the tests in a real browser", e2e},
		{"fuzz", "fuzz every parser and allocator for its share of minutes (or: fuzz 1m, fuzz 1m shared/alloc)", fuzz},
		{"lint", "format check and golangci-lint", lint},
		{"generate", "renew the generated code (templ)", generate},
		{"wasm", "build the browser module and its compressed forms", wasm},
		{"binary", "build bin/tideline with the page inside", binary},
		{"binary:cuda", "bin/tideline with the backend for NVIDIA cards; starts without a driver, too", binaryCUDA},
		{"gpu-check", "check and measure on this machine's NVIDIA card (docs/guide/cuda.md)", gpuCheck},
		{"site", "write the page as plain files (or: site FOLDER)", site},
		{"worker", "build the share service as a Cloudflare Worker (or: worker FOLDER)", worker},
		{"bench", "our own speeds, as ratios (tideline bench)", bench},
		{"screenshots", "renew the pictures in docs/images", screenshots},
		{"clean", "remove what the build made", clean},
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := dispatch(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 0 {
			return exit.ExitCode()
		}
		return 1
	}
	return 0
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		usage(os.Stderr)
		return errors.New("no verb given")
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(os.Stdout)
		return nil
	}
	if err := enterRoot(ctx); err != nil {
		return err
	}
	for _, v := range verbs {
		if v.name == args[0] {
			if asksForHelp(args[1:]) {
				fmt.Printf("go run ./build %s: %s\n", v.name, v.does)
				return nil
			}
			return v.run(ctx, args[1:])
		}
	}
	usage(os.Stderr)
	return fmt.Errorf("there is no verb %q", args[0])
}

func asksForHelp(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "-help" || a == "--help" })
}

func usage(w io.Writer) {
	_, _ = fmt.Fprintln(w, "usage: go run ./build VERB")
	for _, v := range verbs {
		_, _ = fmt.Fprintf(w, "  %-15s %s\n", v.name, v.does)
	}
}

// enterRoot makes the module's folder the working directory, so that every
// path below can be relative.
func enterRoot(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("ask go where the module is: %w", err)
	}
	root, ok := strings.CutSuffix(strings.TrimSpace(string(out)), "go.mod")
	if !ok {
		return errors.New("not inside the module: run this in a checkout")
	}
	return os.Chdir(root)
}

// step runs one named part and says how long it took.
func step(name string, f func() error) error {
	fmt.Printf("== %s\n", name)
	start := time.Now()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Printf("   %s: ok, %.1fs\n", name, time.Since(start).Seconds())
	return nil
}
