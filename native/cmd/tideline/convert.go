package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
	"tideline/shared/ingest"
)

type convertCmd struct {
	In      string `arg:"" help:"Timeline (.tideline or .txt) or out-of-memory log: the content shows what it is, not the name."`
	Out     string `arg:"" help:"File to write: .tideline or .txt; - is the standard output, as text."`
	Deflate bool   `default:"true" negatable:"" help:"Compress a .tideline."`
}

// Run converts a timeline.
func (v *convertCmd) Run(c *console) (err error) {
	toText := v.Out == "-" || strings.HasSuffix(v.Out, ".txt")
	if !toText && !strings.HasSuffix(v.Out, ".tideline") {
		return usage("%s is neither .tideline nor .txt: the ending says what to write", v.Out)
	}
	in, err := openTimeline(v.In)
	if err != nil {
		return err
	}
	defer func() { _ = in.file.Close() }() // it was only read
	if err := in.readable(); err != nil {  // before anything is written
		return err
	}
	out := c.out
	if v.Out != "-" {
		if same(v.In, v.Out) {
			return usage("%s would be written while it is read: choose another name", v.Out)
		}
		f, err := os.Create(v.Out)
		if err != nil {
			return fmt.Errorf("convert to %s: %w", v.Out, err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	if toText {
		err = in.toText(out)
	} else {
		err = in.toTimeline(out, v.Deflate)
	}
	in.printDamage(c)
	if err != nil {
		return fmt.Errorf("convert %s to %s: %w", v.In, v.Out, err)
	}
	return nil
}

func same(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// input is an opened timeline, or what can be told as one.
type input struct {
	name   string
	file   *os.File
	buf    *bufio.Reader
	kind   ingest.Kind
	stream *timeline.Stream // of a .tideline
	packed bool             // by gzip
}

// openTimeline opens a file by its content.
func openTimeline(name string) (*input, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, without(err))
	}
	in := &input{name: name, file: f, buf: bufio.NewReaderSize(f, max(1<<20, ingest.HeadBytes))}
	if err := in.recognise(); err != nil {
		_ = f.Close() // it was only read
		return nil, fmt.Errorf("open %s: %w", name, without(err))
	}
	return in, nil
}

func (in *input) recognise() (err error) {
	head, err := in.buf.Peek(ingest.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch in.kind = ingest.Recognise(head); in.kind {
	case ingest.Timeline:
		in.stream, err = timeline.NewStream(in.buf)
		return err
	case ingest.TimelineText, ingest.Log:
		return nil
	case ingest.GZip:
		return in.unpack()
	default:
		return &ingest.UnsupportedError{Name: in.name, Kind: in.kind}
	}
}

// unpack reads on in what gzip packed.
func (in *input) unpack() error {
	if in.packed {
		return errors.New("compressed twice: decompress it first")
	}
	z, err := gzip.NewReader(in.buf)
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	in.packed, in.buf = true, bufio.NewReaderSize(z, max(1<<20, ingest.HeadBytes))
	return in.recognise()
}

// replay gives all events to the sink that is made for their strings.
func (in *input) replay(sink func(*event.Strings) event.Sink) error {
	var err error
	strs := new(event.Strings)
	switch in.kind {
	case ingest.TimelineText:
		err = text.Read(in.buf, strs, sink(strs))
	case ingest.Log:
		_, err = ingest.ReadLog(in.name, in.buf, strs, sink(strs))
	default:
		err = in.stream.Replay(sink(in.stream.Strings()))
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	return nil
}

// readable reads a log once for nothing: whether there is anything to tell of
// shows only then. Logs are small.
func (in *input) readable() error {
	if in.kind != ingest.Log {
		return nil
	}
	try, err := openTimeline(in.name)
	if err != nil {
		return err
	}
	defer func() { _ = try.file.Close() }() // it was only read
	err = try.replay(func(*event.Strings) event.Sink { return event.SinkFunc(func(*event.Event) {}) })
	if u, ok := errors.AsType[*ingest.UnsupportedError](err); ok {
		return u
	}
	return err
}

func (in *input) printDamage(c *console) {
	if in.stream == nil {
		return
	}
	for _, d := range in.stream.Damage() {
		c.note("%s: %v; everything else was read\n", in.name, d)
	}
}

func (in *input) toText(out io.Writer) error {
	var w *text.Writer
	err := in.replay(func(strs *event.Strings) event.Sink {
		w = text.NewWriter(out, strs)
		return w
	})
	return errors.Join(err, w.Flush())
}

func (in *input) toTimeline(out io.Writer, deflate bool) error {
	var w *timeline.Writer
	err := in.replay(func(strs *event.Strings) event.Sink {
		w = timeline.NewWriter(out, timeline.Options{Strings: strs, Block: block.Options{Deflate: deflate}})
		return w
	})
	return errors.Join(err, w.Close())
}
