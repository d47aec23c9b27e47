package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/ingest"
)

// input is an opened timeline, or what can be told as one.
type input struct {
	name   string
	file   *os.File
	stream *timeline.Stream // of a .tideline
	told   *ingest.Input    // of all that is not one, or is packed
}

// openTimeline opens a file of any kind by its content, for a verb that looks at
// timelines.
func openTimeline(verb, name string) (*input, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, without(err))
	}
	in := &input{name: name, file: f}
	if err := in.recognise(); err != nil {
		_ = f.Close() // it was only read
		if _, ok := errors.AsType[*ingest.UnsupportedError](err); ok {
			return nil, elsewhere(verb, name, err)
		}
		return nil, err
	}
	return in, nil
}

func (in *input) recognise() (err error) {
	buf := bufio.NewReaderSize(in.file, max(1<<20, ingest.HeadBytes))
	head, err := buf.Peek(ingest.HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("open %s: %w", in.name, without(err))
	}
	if ingest.Recognise(head) == ingest.Timeline {
		if in.stream, err = timeline.NewStream(buf); err != nil {
			return fmt.Errorf("open %s: %w", in.name, err)
		}
		return nil
	}
	in.told, err = ingest.Open(in.name, buf, ingest.Limits{})
	return err //nolint:wrapcheck // it names the file
}

// replay gives all events to the sink that is made for their strings.
func (in *input) replay(sink func(*event.Strings) event.Sink) error {
	if in.told != nil {
		strs := new(event.Strings)
		return in.told.Emit(strs, sink(strs)) //nolint:wrapcheck // it names the file
	}
	if err := in.stream.Replay(sink(in.stream.Strings())); err != nil {
		return fmt.Errorf("read %s: %w", in.name, err)
	}
	return nil
}

func (in *input) printDamage(c *console) {
	if in.told != nil {
		if in.told.Cut != "" {
			c.note("%s: %s; everything else was read\n", in.name, in.told.Cut)
		}
		return
	}
	for _, d := range in.stream.Damage() {
		c.note("%s: %v; everything else was read\n", in.name, d)
	}
}
