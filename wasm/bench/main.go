//go:build js && wasm

// Command bench times the core's tasks once and prints, for each, its name, a
// tab, and the nanoseconds of one unit. It is WebAssembly for Node: the native
// "tideline bench" runs it beside its own rounds. Nothing of it is in the page.
package main

import (
	"fmt"
	"os"
	"time"

	"tideline/shared/yardstick"
)

// A task runs several times, and the fastest run counts: Node compiles code
// that has run for a while anew, and better.
const (
	leastRuns = 3
	mostRuns  = 300
	warm      = 300 * time.Millisecond
)

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure() error {
	tasks, err := yardstick.Portable()
	if err != nil {
		return err
	}
	for i := range tasks {
		t := &tasks[i]
		if t.Plain {
			continue
		}
		var best, spent time.Duration
		for n := 0; n < leastRuns || n < mostRuns && spent < warm; n++ {
			if t.Prepare != nil {
				if err := t.Prepare(); err != nil {
					return fmt.Errorf("%s: %w", t.Name, err)
				}
			}
			began := time.Now()
			if err := t.Run(); err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
			d := time.Since(began)
			if spent += d; n == 0 || d < best {
				best = d
			}
		}
		fmt.Printf("%s\t%.2f\n", t.Name, float64(best)/float64(t.N))
	}
	return nil
}
