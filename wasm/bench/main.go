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

// turns is how often each task runs; the fastest counts. The first warms up
// Node's compiler.
const turns = 3

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
		best := time.Duration(0)
		for turn := range turns {
			if t.Prepare != nil {
				if err := t.Prepare(); err != nil {
					return fmt.Errorf("%s: %w", t.Name, err)
				}
			}
			began := time.Now()
			if err := t.Run(); err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
			if d := time.Since(began); turn == 0 || d < best {
				best = d
			}
		}
		fmt.Printf("%s\t%.2f\n", t.Name, float64(best)/float64(t.N))
	}
	return nil
}
