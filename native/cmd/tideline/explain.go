package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"tideline/native/explain"
	"tideline/shared/ingest"
)

type explainCmd struct {
	File string   `arg:"" help:"Timeline, out-of-memory log or other memory report; - is the standard input."`
	More []string `arg:"" optional:"" help:"Further texts that belong to the first, such as both tables of nvidia-smi; or the files of other ranks, put side by side."`
	JSON bool     `name:"json" help:"Print JSON, with the fields of docs/formats/report.md."`
	HTML string   `name:"html" placeholder:"FILE" help:"Write one page that holds all it shows, to attach to a bug report; - is the standard output."`

	Redact bool `help:"Leave out names, paths, hosts, stacks and the free text of logs; keep sizes, categories, devices, settings and the verdict."`

	Profiler bool `help:"Print what the memory page of TensorFlow's profiler would show of a timeline."`

	Reruns bool `default:"true" negatable:"" help:"Run the workload again to verify what would help. Ctrl-C ends that with what was found."`
}

// Run explains a file.
func (x *explainCmd) Run(ctx context.Context, c *console) error {
	switch {
	case x.JSON && x.HTML != "":
		return usage("--json and --html exclude each other: each is a form of the whole report")
	case x.Profiler && (x.JSON || x.HTML != "" || x.Redact):
		return usage("--profiler is text as TensorFlow's page has it: leave out --json, --html and --redact")
	}
	if x.HTML == "" || x.HTML == "-" {
		return x.explain(ctx, c, c.out)
	}
	for _, in := range append([]string{x.File}, x.More...) {
		if in != "-" && same(in, x.HTML) {
			return usage("%s would be written while it is read: choose another name", x.HTML)
		}
	}
	if err := toFile(x.HTML, func(w io.Writer) error { return x.explain(ctx, c, w) }); err != nil {
		return err
	}
	c.note("%s: written; any browser shows it, and it loads nothing\n", x.HTML)
	return nil
}

func (x *explainCmd) explain(ctx context.Context, c *console, out io.Writer) error {
	o := explain.Options{
		JSON: x.JSON, HTML: x.HTML != "", Redact: x.Redact, Version: version(), Width: width(c), NoReruns: !x.Reruns, Profiler: x.Profiler, Stop: func() bool { return ctx.Err() != nil },
	}
	if files, err := x.separate(); err != nil {
		return err
	} else if files != nil {
		if o.HTML || o.Profiler {
			return usage("--html and --profiler take one file, or texts that belong together: name the one to tell of")
		}
		return explain.Several(files, out, o) //nolint:wrapcheck // it names the file
	}
	var list []explain.Part
	for i, name := range append([]string{x.File}, x.More...) {
		if name == "-" && i == 0 {
			list = append(list, explain.Part{Name: "standard input", R: c.in})
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("open %s: %w", name, without(err))
		}
		defer func() { _ = f.Close() }() // it was only read
		list = append(list, explain.Part{Name: name, R: f})
	}
	in := explain.Join(list...)
	o.Parts = in
	err := explain.Explain(in.Name(), in, out, o)
	if _, ok := errors.AsType[*ingest.UnsupportedError](err); ok {
		return elsewhere("explain", x.File, err)
	}
	return err //nolint:wrapcheck // it names the file
}

// separate are the files, if each is to be told of by itself; nil for one, and for
// texts that belong together.
func (x *explainCmd) separate() ([]explain.File, error) {
	if len(x.More) == 0 {
		return nil, nil
	}
	names := append([]string{x.File}, x.More...)
	heads := make([][]byte, len(names))
	files := make([]explain.File, len(names))
	for i, name := range names {
		if name == "-" {
			return nil, nil // it can be read once only
		}
		open := func() (io.ReadCloser, error) {
			f, err := os.Open(name)
			if err != nil {
				return nil, fmt.Errorf("open %s: %w", name, without(err))
			}
			return f, nil
		}
		files[i] = explain.File{Name: name, Open: open}
		f, err := open()
		if err != nil {
			return nil, err
		}
		head := make([]byte, ingest.HeadBytes)
		n, _ := io.ReadFull(f, head) // what cannot be read is told when it is
		heads[i] = head[:n]
		_ = f.Close() // it was only read
	}
	if !explain.Separate(names, heads) {
		return nil, nil
	}
	return files, nil
}

// width is the terminal's, or 0.
func width(c *console) int {
	if f, ok := c.out.(*os.File); ok {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}
