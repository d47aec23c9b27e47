//go:build js && wasm

// Command bench times the core's tasks and prints, for each, a line of its name,
// how many units it is, and the nanoseconds of each of its stretches, with tabs
// between them. It is WebAssembly for Node: the native
// "tideline bench" runs it beside its own rounds. Nothing of it is in the page.
package main

import (
	"fmt"
	"os"
	"time"

	"tideline/shared/yardstick"
)

// A task runs several times, and the fastest run of every stretch counts: Node
// compiles code that has run for a while anew, and better.
const (
	leastRuns = 4
	mostRuns  = 300
	warm      = 300 * time.Millisecond
)

var start = time.Now()

func clock() int64 { return int64(time.Since(start)) }

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
		watch, spent := yardstick.NewStopwatch(clock), time.Duration(0)
		for n := 0; n < leastRuns || n < mostRuns && spent < warm; n++ {
			if t.Prepare != nil {
				if err := t.Prepare(); err != nil {
					return fmt.Errorf("%s: %w", t.Name, err)
				}
			}
			took, err := watch.Run(t)
			if err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
			spent += time.Duration(took)
		}
		fmt.Printf("%s\t%d", t.Name, t.N)
		for _, nanos := range watch.Stretches() {
			fmt.Printf("\t%d", nanos)
		}
		fmt.Println()
	}
	return nil
}
