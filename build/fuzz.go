package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"time"
)

const defaultFuzzTime = 3 * time.Second

// fuzz fuzzes every parser for the time given, or a few seconds each.
func fuzz(ctx context.Context, args []string) error {
	each := defaultFuzzTime
	if len(args) > 0 {
		d, err := time.ParseDuration(args[0])
		if err != nil {
			return fmt.Errorf("fuzz takes a duration such as 30s: %w", err)
		}
		each = d
	}
	return counted(func(total *counts) error { return fuzzAll(ctx, total, each) })
}

type fuzzTarget struct{ dir, name string }

func fuzzAll(ctx context.Context, total *counts, each time.Duration) error {
	targets, err := fuzzTargets()
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return fmt.Errorf("no fuzz target found: every parser has one")
	}
	for _, t := range targets {
		start := time.Now()
		c := exec.CommandContext(ctx, "go", "test", "-run=^$", "-fuzz=^"+t.name+"$", "-fuzztime="+each.String(), "-fuzzminimizetime=10x", "./"+t.dir)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		if err != nil {
			total.failed++
			fmt.Print(string(out))
			return fmt.Errorf("%s in %s: %w", t.name, t.dir, err)
		}
		total.passed++
		fmt.Printf("   %s %s: %s, %.1fs\n", t.dir, t.name, executions(out), time.Since(start).Seconds())
	}
	return nil
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
