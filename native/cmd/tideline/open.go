package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
	"tideline/shared/ingest"
)

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

func (in *input) printDamage(c *console) {
	if in.stream == nil {
		return
	}
	for _, d := range in.stream.Damage() {
		c.note("%s: %v; everything else was read\n", in.name, d)
	}
}
