package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// counts adds up what the test runner said, subtests left out.
type counts struct{ passed, failed, skipped int }

// String is the closing line of a run.
func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// goTest runs go test, prints what failed whole and what passed a line per
// package, and adds to total. env is set besides our own environment; without
// it the tests run without cgo, as the default build does.
func goTest(ctx context.Context, total *counts, env []string, args ...string) error {
	c := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-timeout=20m"}, args...)...)
	c.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}
	before := *total
	if err := readResults(out, total); err != nil {
		return err
	}
	if err := c.Wait(); err != nil {
		return fmt.Errorf("go test %s: %w", strings.Join(args, " "), err)
	}
	if *total == before {
		return errors.New("no test ran")
	}
	return nil
}

// testEvent is one line of go test -json; see go doc test2json.
type testEvent struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

type testKey struct{ pkg, test string }

func readResults(r io.Reader, total *counts) error {
	pending := map[testKey]*strings.Builder{}
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e testEvent
			if json.Unmarshal(line, &e) != nil {
				fmt.Print(string(line)) // the go tool's own words, such as a failed build
			} else {
				take(&e, pending, total)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the test runner's output: %w", err)
		}
	}
}

func take(e *testEvent, pending map[testKey]*strings.Builder, total *counts) {
	key := testKey{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		if pending[key] == nil {
			pending[key] = &strings.Builder{}
		}
		pending[key].WriteString(e.Output)
	case "pass", "fail", "skip":
		report(e, pending[key], total)
		delete(pending, key)
	}
}

func report(e *testEvent, output *strings.Builder, total *counts) {
	if e.Test == "" {
		if e.Action != "skip" { // a package without tests is no news
			fmt.Printf("   %s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
		}
		if e.Action == "fail" && output != nil {
			fmt.Print(output.String())
		}
		return
	}
	top := !strings.Contains(e.Test, "/")
	switch e.Action {
	case "pass":
		if top {
			total.passed++
		}
	case "skip":
		if top {
			total.skipped++
		}
		if output != nil {
			fmt.Printf("   skip %s %s: %s", e.Package, e.Test, reason(output.String()))
		}
	case "fail":
		if top {
			total.failed++
		}
		if output != nil {
			fmt.Print(output.String())
		}
	}
}

// reason is the last telling line of a skipped test's output.
func reason(output string) string {
	for line := range strings.SplitSeq(output, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "===") && !strings.HasPrefix(line, "---") {
			return line + "\n"
		}
	}
	return "no reason given\n"
}
