package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"
)

// How long a target is fuzzed unless told otherwise. Lives of allocators find
// what is wrong only after many steps, so they get more; parsers show it early.
// Together, with what compiling takes, this stays under four minutes on two
// cores.
const (
	parserFuzzTime = 1 * time.Second
	livesFuzzTime  = 10 * time.Second
)

// share is how long a target is fuzzed; a time that was asked for is for all.
func (t fuzzTarget) share(asked time.Duration) time.Duration {
	switch {
	case asked > 0:
		return asked
	case t.leadsLives():
		return livesFuzzTime
	}
	return parserFuzzTime
}

// leadsLives reports whether the target drives an allocator under the judge.
func (t fuzzTarget) leadsLives() bool {
	return strings.HasPrefix(t.dir, "shared/alloc/") && (strings.HasSuffix(t.name, "Lives") || t.name == "FuzzEveryKindAndOption")
}

// fuzz fuzzes every target for its share, or for the time given; a word after
// it picks the targets whose folder and name contain it.
func fuzz(ctx context.Context, args []string) error {
	asked, word := time.Duration(0), ""
	for _, a := range args {
		if d, err := time.ParseDuration(a); err == nil && d > 0 {
			asked = d
		} else if word == "" {
			word = a
		} else {
			return fmt.Errorf("fuzz takes a duration such as 30s and a part of the targets' names, not %q", a)
		}
	}
	return counted(func(total *counts) error { return fuzzAll(ctx, total, asked, word) })
}

type fuzzTarget struct{ dir, name string }

// fuzzAll fuzzes the targets one after the other. One that fails does not stop
// the others: all failures are told at the end, with the inputs.
func fuzzAll(ctx context.Context, total *counts, asked time.Duration, word string) error {
	targets, err := fuzzTargets()
	if err != nil {
		return err
	}
	var failures []error
	ran := 0
	for _, t := range targets {
		if !strings.Contains(t.dir+" "+t.name, word) {
			continue
		}
		ran++
		if err := t.fuzz(ctx, total, t.share(asked)); err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if ran == 0 {
		return fmt.Errorf("no fuzz target found whose folder and name contain %q", word)
	}
	return errors.Join(failures...)
}

func (t fuzzTarget) fuzz(ctx context.Context, total *counts, each time.Duration) error {
	start := time.Now()
	out, err := t.once(ctx, each)
	if err != nil && ctx.Err() == nil && ranOut(out) {
		out, err = t.once(ctx, each)
	}
	if err == nil {
		total.passed++
		fmt.Printf("   %s %s: %s, %.1fs\n", t.dir, t.name, executions(out), time.Since(start).Seconds())
		return nil
	}
	total.failed++
	fmt.Printf("   %s %s: failed after %.1fs\n", t.dir, t.name, time.Since(start).Seconds())
	return fmt.Errorf("%s in %s: %w\n%s%s", t.name, t.dir, err, out, t.failingInput(out))
}

func (t fuzzTarget) once(ctx context.Context, each time.Duration) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(), "-fuzzminimizetime=10x", "./"+t.dir)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	return c.CombinedOutput()
}

// ranOut reports whether nothing failed but the fuzzer itself, which at times
// takes the end of its time within an input for an error of the target.
func ranOut(out []byte) bool {
	return bytes.Contains(out, []byte("context deadline exceeded")) && inputRE.Find(out) == nil
}

// failingInput is the input that the fuzzer wrote down, as it wrote it, so that
// it can be kept as a seed from a log alone.
func (t fuzzTarget) failingInput(out []byte) string {
	m := inputRE.FindSubmatch(out)
	if m == nil {
		return ""
	}
	name := filepath.Join(t.dir, "testdata", "fuzz", t.name, string(m[1]))
	text, err := os.ReadFile(name)
	if err != nil {
		return fmt.Sprintf("the failing input cannot be shown: %v\n", err)
	}
	return fmt.Sprintf("to keep the failing input as a seed, write into %s:\n%s", filepath.ToSlash(name), text)
}

// executions is the last count that the fuzzer printed.
func executions(out []byte) string {
	all := execsRE.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return "no count printed"
	}
	return string(all[len(all)-1][1]) + " executions"
}

var (
	execsRE = regexp.MustCompile(`execs: (\d+)`)
	inputRE = regexp.MustCompile(`Failing input written to testdata/fuzz/\w+/(\S+)`)
	fuzzRE  = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)
)

// fuzzTargets finds the fuzz functions of the tree by reading its test files.
func fuzzTargets() ([]fuzzTarget, error) {
	var targets []fuzzTarget
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(src, []byte("*testing.F")) {
			return err
		}
		for _, m := range fuzzRE.FindAllSubmatch(src, -1) {
			targets = append(targets, fuzzTarget{filepath.ToSlash(filepath.Dir(path)), string(m[1])})
		}
		return nil
	})
	sort.Slice(targets, func(i, j int) bool {
		if targets[i].dir != targets[j].dir {
			return targets[i].dir < targets[j].dir
		}
		return targets[i].name < targets[j].name
	})
	return targets, err
}
