//go:build cuda

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"tideline/native/backend/cuda"
	"tideline/native/monitor"
)

// row is a line of docs/measured.md.
type row struct{ what, figure string }

// report collects what was found.
type report struct {
	rows   []row
	failed int
}

func (r *report) note(what, format string, args ...any) {
	x := row{what, fmt.Sprintf(format, args...)}
	r.rows = append(r.rows, x)
	fmt.Printf("  %-46s %s\n", x.what, x.figure)
}

func (r *report) fail(what string, err error) {
	r.failed++
	fmt.Printf("  %-46s FAILED: %v\n", what, err)
	r.rows = append(r.rows, row{what, "failed: " + err.Error()})
}

// check is one of the things that are looked at.
type check struct {
	name string
	run  func(d *cuda.Driver, r *report) error
}

var checks = []check{
	{"ops, card against CPU", numerics},
	{"the run's events, card against virtual card", events},
	{"LeNet on the digits", lenet},
	{"host link", bandwidth},
	{"products of matrices", products},
	{"two programs on one card", sharing},
}

func main() {
	if len(os.Args) == 2 && (os.Args[1] == secondGrowing || os.Args[1] == secondWhole) {
		os.Exit(second(os.Args[1] == secondGrowing))
	}
	output := flag.String("o", "docs/measured.md", "file to put the figures into")
	simulated := flag.Bool("simulated", false, "say in the file that the driver is the fake one")
	flag.Parse()
	if err := run(*output, *simulated); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

func run(output string, simulated bool) error {
	d, err := cuda.Open()
	if err != nil {
		return err
	}
	defer d.Close()
	card := d.Cards()[0]
	fmt.Printf("%s; CUDA %s; cuBLAS %v\n", card, cuda.Version(), cuda.HasBLAS())
	var r report
	for _, c := range checks {
		fmt.Println(c.name)
		if err := c.run(d, &r); err != nil {
			r.fail(c.name, err)
		}
	}
	title := card.String() + ", CUDA " + cuda.Version()
	if m, err := monitor.Open(); err == nil {
		title += ", driver " + m.Driver()
		m.Close()
	} else {
		fmt.Println(err)
	}
	if simulated {
		title = "SIMULATED by the fake driver: " + title
	}
	if err := write(output, time.Now(), title, r.rows); err != nil {
		return err
	}
	if r.failed > 0 {
		return errors.New("some checks failed, see above")
	}
	fmt.Printf("all well; %s has the figures\n", output)
	return nil
}
