package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"tideline/protocol/api"
	"tideline/protocol/api/workfile"
	"tideline/shared/launch"
)

// readWorkload reads a workload file ("-": the standard input) and applies
// --set to it. An error has one line a problem: FILE:LINE: FIELD: what.
func readWorkload(c *console, name string, sets []string) (*api.Workload, error) {
	text, err := readText(c, name)
	if err != nil {
		return nil, err
	}
	known := launch.Known()
	known.Unlisted = realNames()
	w, problems := workfile.Read(text, known)
	if len(problems) == 0 && len(sets) > 0 {
		if err := applySets(w, sets); err != nil {
			return nil, err
		}
		if problems = w.Validate(known); len(problems) > 0 { // the file was right before
			return nil, usageError{&fileProblems{name, problems}}
		}
	}
	if len(problems) > 0 {
		return nil, elsewhere("run", name, &fileProblems{name, problems})
	}
	return w, nil
}

func readText(c *console, name string) ([]byte, error) {
	in := c.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("read the workload %s: %w", name, without(err))
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	// One byte more than is allowed, so that workfile sees that it is too much.
	text, err := io.ReadAll(io.LimitReader(in, workfile.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the workload %s: %w", name, without(err))
	}
	return text, nil
}

// fileProblems are the problems of one file.
type fileProblems struct {
	name     string
	problems api.Problems
}

func (p *fileProblems) Error() string {
	lines := make([]string, len(p.problems))
	for i, x := range p.problems {
		at := p.name
		if x.Line > 0 {
			at = fmt.Sprintf("%s:%d", p.name, x.Line)
		}
		x.Line = 0
		lines[i] = at + ": " + x.String()
	}
	return strings.Join(lines, "\n")
}

// applySets changes a workload as --set says.
func applySets(w *api.Workload, sets []string) error {
	for _, s := range sets {
		key, value, ok := strings.Cut(s, "=")
		if !ok {
			return usage("--set %q has no '=': write a field and its value, such as --set devices.0.growth=true", s)
		}
		if err := w.Set(strings.TrimSpace(key), value); err != nil {
			return usage("--set %w", err)
		}
	}
	return nil
}

type validateCmd struct {
	Workload string `arg:"" help:"Workload file, YAML or JSON; - is the standard input."`
	JSON     bool   `name:"json" help:"Print the problems as JSON."`
}

// Run checks a workload file.
func (v *validateCmd) Run(c *console) error {
	text, err := readText(c, v.Workload)
	if err != nil {
		return err
	}
	w, problems := workfile.Read(text, launch.Known())
	if v.JSON {
		if problems == nil {
			problems = api.Problems{}
		}
		if err := printJSON(c, problems); err != nil || len(problems) == 0 {
			return err
		}
		return errSaid
	}
	if len(problems) > 0 {
		return elsewhere("validate", v.Workload, &fileProblems{v.Workload, problems})
	}
	w.Defaults()
	full, err := workfile.Write(w)
	if err != nil {
		return err
	}
	c.say("# %s is fine; with all defaults it reads:\n%s", v.Workload, full)
	return nil
}
