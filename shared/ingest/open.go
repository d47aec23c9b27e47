package ingest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
	"tideline/shared/analysis/reading"
	"tideline/shared/analysis/reading/saved"
	"tideline/shared/ingest/unzip"
)

// KindTimeline is the Kind of an Input that is a timeline of our own, as a
// .tideline file or in its text form.
const KindTimeline = "tideline"

// Input is a file of any kind that can be read, opened.
type Input struct {
	// Kind is what it is: a case's kind such as "pytorch-snapshot", "text" for
	// one that holds several, or KindTimeline.
	Kind string
	// Form is the file's form, as Recognise tells it, gzip taken off.
	Form Kind
	// Zipped says that it was packed by gzip.
	Zipped bool
	// Readings are what the input means, in its order. Of a timeline, whose
	// meaning is that of its events, they are the saved ones, known after Emit.
	Readings []*reading.Reading
	// Saved is what a timeline keeps of what the input meant that it was made of;
	// nil when it keeps nothing, and before Emit.
	Saved *saved.Readings
	// Cut says why not all of it was read; "" if it was. Of a timeline it is
	// known after Emit.
	Cut string

	// Text or Data is what was read, for who wants more than the common form;
	// both nil for a timeline.
	Text *Text
	Data *Data

	name   string
	in     io.Reader        // of the text form
	stream *timeline.Stream // of a timeline
	told   bool
}

// Open reads an input of any kind, packed by gzip or not: the one door for
// everything that people hold. Its errors are those that a person is to be
// shown: an *UnsupportedError for what cannot be opened, which names what came,
// and those of the kind's own reader. The name is only used in errors.
//
// A foreign file is read to its end before Open returns. Of a timeline only the
// beginning is: Emit reads on in r, and can be asked once.
func Open(name string, r io.Reader, l Limits) (*Input, error) {
	in, zipped, err := unzip.Open(r, l.Unzip)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return openPlain(name, in, zipped, l)
}

// OpenUnpacked reads what was packed by gzip and is unpacked by the caller, such
// as a browser, which does so faster than a WebAssembly module could. All is as
// if Open had been given the packed input.
func OpenUnpacked(name string, r io.Reader, l Limits) (*Input, error) {
	return openPlain(name, unzip.Limited(r, l.Unzip), true, l)
}

func openPlain(name string, in io.Reader, zipped bool, l Limits) (*Input, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	head, err := b.Peek(HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) && (len(head) == 0 || !zipped) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	out := &Input{name: name, Zipped: zipped, Form: Recognise(head)}
	err = nil // an end within the head, or what the kind's reader will meet again
	switch {
	case IsData(head):
		err = out.data(head, b, l)
	case out.Form == GZip && zipped:
		err = fmt.Errorf("%s is compressed twice: decompress it first", name)
	case out.Form == Timeline:
		out.Kind = KindTimeline
		if out.stream, err = timeline.NewStream(b); err != nil {
			err = fmt.Errorf("open %s: %w", name, err)
		}
	case out.Form == TimelineText:
		out.Kind, out.in = KindTimeline, b
	case out.Form == Log || out.Form == JSON: // a collector may wrap each line of a log in JSON
		err = out.text(b)
	default:
		err = &UnsupportedError{Name: name, Kind: out.Form}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (i *Input) data(head []byte, r io.Reader, l Limits) error {
	d, err := readKind(i.Form, head, r, l)
	if err != nil {
		return fmt.Errorf("%s: %w", i.name, err)
	}
	d.finish(i.Zipped)
	i.Kind, i.Data, i.Cut, i.Readings = d.Reading.Kind, d, d.Cut, []*reading.Reading{d.Reading}
	return nil
}

func (i *Input) text(r io.Reader) error {
	t, err := readText(i.name, &Text{past: newHistory()}, r)
	if u, ok := errors.AsType[*UnsupportedError](err); ok {
		u.Kind = i.Form
	}
	if err != nil {
		return err
	}
	i.Kind, i.Text, i.Readings, i.Cut = "text", t, t.All(), strings.Join(t.Cut, "; ")
	for n, r := range i.Readings {
		switch {
		case n == 0:
			i.Kind = r.Kind
		case r.Kind != i.Kind:
			i.Kind = "text"
		}
	}
	return nil
}

// Emit tells the input as the events of a timeline whose strings are in strs.
// A timeline that is cut or damaged is told as far as it goes, and Cut says so
// afterwards; an error means that reading it failed, or that it was told
// already.
func (i *Input) Emit(strs *event.Strings, sink event.Sink) error {
	switch {
	case i.Data != nil:
		i.Data.Emit(strs, sink)
		return nil
	case i.Text != nil:
		return i.Text.Emit(strs, sink)
	case i.told:
		return fmt.Errorf("%s was told already: a timeline is read as it is told", i.name)
	}
	i.told = true
	var err error
	if i.stream != nil {
		err = i.stream.Replay(&renamed{from: i.stream.Strings(), to: strs, sink: sink})
		wrong := i.recall()
		if list := i.stream.Damage(); len(list) == 1 {
			i.Cut = fmt.Sprintf("the file is damaged: %v", list[0])
		} else if len(list) > 1 {
			i.Cut = fmt.Sprintf("the file is damaged in %d places, first: %v", len(list), list[0])
		} else if wrong != nil {
			i.Cut = fmt.Sprintf("the file is damaged: %v", wrong)
		}
	} else {
		err = text.Read(i.in, strs, sink)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", i.name, err)
	}
	return nil
}

// recall takes the readings that a timeline keeps.
func (i *Input) recall() error {
	b, err := i.stream.Readings()
	if err != nil || b == nil {
		return err //nolint:wrapcheck // Emit words it
	}
	if i.Saved, err = saved.Parse(b); err != nil {
		return err //nolint:wrapcheck // as above
	}
	i.Readings = i.Saved.List
	return nil
}

// Keep is what a timeline that is made of the input is to keep of what it means;
// nil when it means nothing. Of a timeline it is known after Emit.
func (i *Input) Keep() *saved.Readings {
	switch {
	case i.Saved != nil:
		return i.Saved
	case len(i.Readings) == 0:
		return nil
	}
	return &saved.Readings{Kind: i.Kind, Moments: i.Moments(), Cut: i.Cut, List: i.Readings}
}

// Moments says whether the input tells instants, whose distances in time are made
// up: a text, unless it tells a course over time.
func (i *Input) Moments() bool {
	if i.Saved != nil {
		return i.Saved.Moments
	}
	return i.Text != nil && !i.Text.OverTime()
}
