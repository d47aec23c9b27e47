package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline/text"
	"tideline/shared/export/chrome"
	"tideline/shared/export/csv"
	"tideline/shared/export/pprof"
	"tideline/shared/export/xspace"
	"tideline/shared/ingest"
	"tideline/shared/redact"
)

type convertCmd struct {
	In      string        `arg:"" help:"Anything that explain reads: the content shows what it is, not the name. - is the standard input."`
	Out     string        `arg:"" help:"File to write; its ending says what: .tideline, .txt, .json (Perfetto, Chrome), .pb.gz (pprof), .xplane.pb (TensorFlow's profiler) or .csv. - is the standard output."`
	To      string        `placeholder:"FORMAT" help:"Write tideline, txt, json, pprof, xspace or csv, whatever the ending."`
	Deflate bool          `default:"true" negatable:"" help:"Compress a .tideline."`
	At      time.Duration `placeholder:"TIME" default:"-1ns" help:"pprof: what lives so long after the beginning, such as 120ms; the fullest moment otherwise."`
	Device  string        `placeholder:"NAME" help:"pprof: of this device alone, and its own fullest moment."`
	CSV     string        `name:"csv" enum:"allocations,buffers" default:"allocations" help:"csv: ${enum}. Buffers are what tideline plan and other planners read."`
	Of      string        `placeholder:"NAME" help:"csv buffers: of this allocator; the first of an accelerator otherwise."`
	Redact  bool          `help:"Leave out names, paths, hosts, stacks and free text; keep sizes, times, categories and settings."`
	Reruns  bool          `default:"true" negatable:"" help:"Try other settings on the recorded requests, for the readings that a .tideline keeps of its input. Ctrl-C ends that with what was found."`
}

// formats are what can be written, by name, with their endings.
var formats = []struct {
	name    string
	endings []string
}{
	{"tideline", []string{".tideline"}},
	{"txt", []string{".txt"}},
	{"json", []string{".json", ".json.gz"}},
	{"xspace", []string{".xplane.pb", ".xplane.pb.gz"}}, // before pprof, whose ending it has, too
	{"pprof", []string{".pb.gz", ".pprof", ".prof"}},
	{"csv", []string{".csv", ".csv.gz"}},
}

// format says what to write.
func (v *convertCmd) format() (string, error) {
	if v.To != "" {
		for _, f := range formats {
			if f.name == v.To {
				return f.name, nil
			}
		}
		return "", usage("--to %s: write tideline, txt, json, pprof, xspace or csv", v.To)
	}
	if v.Out == "-" {
		return "txt", nil
	}
	for _, f := range formats {
		for _, end := range f.endings {
			if strings.HasSuffix(strings.ToLower(v.Out), end) {
				return f.name, nil
			}
		}
	}
	return "", usage("%s is neither .tideline nor .txt, .json, .pb.gz, .xplane.pb or .csv: the ending says what to write, or --to does", v.Out)
}

// misused names the flag that says something about another format.
func (v *convertCmd) misused(format string) error {
	for _, x := range []struct {
		flag, of string
		given    bool
	}{
		{"--at", "pprof", v.At >= 0},
		{"--device", "pprof", v.Device != ""},
		{"--csv", "csv", v.CSV != "allocations"},
		{"--of", "csv", v.Of != ""},
	} {
		if x.given && x.of != format {
			return usage("%s is for %s, and %s is written", x.flag, x.of, format)
		}
	}
	if v.Of != "" && v.CSV != "buffers" {
		return usage("--of is for --csv buffers: the table of allocations has all of them")
	}
	return nil
}

// Run converts a file.
func (v *convertCmd) Run(ctx context.Context, c *console) error {
	format, err := v.format()
	if err == nil {
		err = v.misused(format)
	}
	if err != nil {
		return err
	}
	r, name := c.in, "standard input"
	if v.In != "-" {
		f, err := os.Open(v.In)
		if err != nil {
			return fmt.Errorf("open %s: %w", v.In, without(err))
		}
		defer func() { _ = f.Close() }() // it was only read
		r, name = f, v.In
	}
	if v.In != "-" && v.Out != "-" && same(v.In, v.Out) {
		return usage("%s would be written while it is read: choose another name", v.Out)
	}
	in, err := ingest.Open(name, r, ingest.Limits{}) // before anything is written
	if _, ok := errors.AsType[*ingest.UnsupportedError](err); ok {
		return elsewhere("convert", v.In, err)
	}
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	if format == "tideline" {
		complete(ctx, in, v.Reruns)
	}
	if v.Out == "-" {
		err = v.write(in, format, c.out)
	} else {
		err = toFile(v.Out, func(out io.Writer) error { return v.write(in, format, out) })
	}
	if in.Cut != "" {
		c.note("%s: %s; everything else was read\n", name, in.Cut)
	}
	if err != nil {
		return fmt.Errorf("convert %s to %s: %w", name, v.Out, err)
	}
	if st, serr := os.Stat(v.Out); v.Out != "-" && serr == nil && st.Mode().IsRegular() {
		c.note("%s: %s, %s\n", v.Out, v.what(format), size(st.Size()))
	}
	return nil
}

// what is a format in words.
func (v *convertCmd) what(format string) string {
	switch format {
	case "tideline":
		return "a timeline"
	case "txt":
		return "a timeline as text"
	case "json":
		return "a trace for Perfetto and Chrome"
	case "pprof":
		return "a pprof profile"
	case "xspace":
		return "a profile for TensorFlow's profiler"
	default:
		return "a table of " + v.CSV
	}
}

// closer is a sink that has something left to write at the end.
type closer interface {
	event.Sink
	Close() error
}

// flushed ends the text form.
type flushed struct{ *text.Writer }

// Close implements closer.
func (f flushed) Close() error { return f.Flush() } //nolint:wrapcheck // Run words it

func (v *convertCmd) write(in *ingest.Input, format string, out io.Writer) (err error) {
	strs := new(event.Strings)
	if strings.HasSuffix(strings.ToLower(v.Out), ".gz") && format != "pprof" { // which is packed anyway
		z := gzip.NewWriter(out)
		defer func() { err = errors.Join(err, z.Close()) }()
		out = z
	}
	var w closer
	var sink event.Sink
	told := strs
	if v.Redact {
		told = new(event.Strings)
	}
	switch format {
	case "tideline":
		return writeTimeline(in, out, block.Options{Deflate: v.Deflate}, v.Redact)
	case "txt":
		w = flushed{text.NewWriter(out, told)}
	case "json":
		w = chrome.NewWriter(out, told)
	case "pprof":
		w = pprof.NewWriter(out, told, pprof.Options{At: v.At.Nanoseconds(), Device: v.Device})
	case "xspace":
		w = xspace.NewWriter(out, told)
	default:
		if v.CSV == "buffers" {
			w = csv.NewBuffers(out, told, v.Of)
		} else {
			w = csv.NewWriter(out, told)
		}
	}
	seen := &substance{format: format, next: w}
	if sink = seen; v.Redact {
		sink = redact.New().Events(strs, told, sink)
	}
	if err := in.Emit(strs, sink); err != nil {
		return errors.Join(err, w.Close())
	}
	if !seen.any {
		return fmt.Errorf("nothing of it has a place in %s: it tells of %s; write a .tideline, which keeps what it means",
			v.what(format), missing[format])
	}
	return w.Close() //nolint:wrapcheck // Run words it
}

// missing is what an input without any event for a format lacks.
var missing = map[string]string{
	"json": "no allocation, op, step or copy, and of no course of figures", "xspace": "no allocation, step or copy", "pprof": "no allocation", "csv": "no allocation",
}

// substance sees whether there is anything to write in a format: others than
// timelines have no place for words alone, and an empty file explains nothing.
type substance struct {
	format string
	any    bool
	next   event.Sink
	first  int64 // when the first figure was sampled, plus 1; 0 for none yet
}

// Emit implements event.Sink.
func (s *substance) Emit(e *event.Event) {
	switch e.Kind {
	case event.Alloc:
		s.any = true
	case event.StepBegin, event.TransferBegin:
		s.any = s.any || s.format == "json" || s.format == "xspace"
	case event.Sample: // figures of one moment are words, too: a message has them
		if s.first == 0 {
			s.first = e.Time + 1
		}
		s.any = s.any || s.format == "txt" || s.format == "json" && e.Time+1 != s.first
	case event.DeviceFacts, event.AllocatorFacts, event.Settings, event.Log, event.Annotation, event.OutOfMemory, event.End:
		s.any = s.any || s.format == "txt"
	default:
		s.any = s.any || s.format == "json" || s.format == "txt"
	}
	s.next.Emit(e)
}

// toFile writes a file that is there whole or not at all: beside its place
// first. What is no regular file, such as a pipe, is written as it is.
func toFile(name string, write func(io.Writer) error) (err error) {
	at, rename := name, false
	var f *os.File
	if st, serr := os.Stat(name); serr == nil && !st.Mode().IsRegular() {
		f, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		at, rename = filepath.Join(filepath.Dir(name), fmt.Sprintf(".%s.%d.part", filepath.Base(name), os.Getpid())), true
		f, err = os.Create(at)
	}
	if err != nil {
		return fmt.Errorf("create %s: %w", name, without(err))
	}
	b := bufio.NewWriterSize(f, 1<<18)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if !rename {
		return err //nolint:wrapcheck // Run words it
	}
	if err == nil {
		err = os.Rename(at, name)
	}
	if err != nil {
		_ = os.Remove(at) // it was never whole
	}
	return err //nolint:wrapcheck // Run words it
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
