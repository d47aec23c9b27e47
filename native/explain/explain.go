package explain

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
	"tideline/shared/analysis"
	"tideline/shared/ingest"
	"tideline/shared/ingest/bfclog"
)

// Options say how to report.
type Options struct {
	JSON  bool
	Width int // columns of the terminal; 0 means 80
}

// Explain reads a file of any supported kind and writes what it means. The
// name is for the report and for errors; an *ingest.UnsupportedError says what
// came instead of a supported file.
func Explain(name string, r io.Reader, w io.Writer, o Options) error {
	in := bufio.NewReaderSize(r, 1<<16)
	head, err := in.Peek(ingest.HeadBytes)
	if err != nil && err != io.EOF {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err // without the file's name again
		}
		return fmt.Errorf("read %s: %w", name, err)
	}
	switch kind := ingest.Recognise(head); kind {
	case ingest.GZip:
		return explainGzip(name, in, w, o)
	case ingest.Timeline:
		return explainTimeline(name, in, w, o)
	case ingest.TimelineText:
		return explainText(name, in, w, o)
	case ingest.Log, ingest.JSON: // a collector may wrap each line of a log in JSON
		return explainLog(name, kind, in, w, o)
	default:
		return &ingest.UnsupportedError{Name: name, Kind: kind}
	}
}

func explainGzip(name string, r io.Reader, w io.Writer, o Options) error {
	z, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("decompress %s: %w", name, err)
	}
	defer z.Close()
	in := bufio.NewReaderSize(z, 1<<16)
	if head, err := in.Peek(2); err == nil && bytes.Equal(head, []byte("\x1f\x8b")) {
		return fmt.Errorf("%s is compressed twice: decompress it first", name)
	}
	return Explain(name, in, w, o)
}

func explainLog(name string, kind ingest.Kind, r io.Reader, w io.Writer, o Options) error {
	log, err := bfclog.Read(r)
	if errors.Is(err, bfclog.ErrNothing) {
		return &ingest.UnsupportedError{Name: name, Kind: kind, Detail: err.Error()}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	rep := report{name: name, kind: "tf-bfc-oom", notices: log.Notices, cut: log.Cut}
	for _, d := range log.Dumps {
		rep.failures = append(rep.failures, failure{Reading: analysis.FromDump(d)})
	}
	return rep.write(w, o)
}

// explainTimeline reads a .tideline. A file that is cut or damaged is
// explained as far as it goes, and the report says so.
func explainTimeline(name string, r io.Reader, w io.Writer, o Options) error {
	s, err := timeline.NewStream(r)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	tl := analysis.NewTimeline(s.Strings())
	if err := s.Replay(tl); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	rep := fromTimeline(name, tl)
	if n := len(s.Damage()); n > 0 {
		rep.cut = fmt.Sprintf("the file is damaged in %d places, first: %v", n, s.Damage()[0])
	}
	return rep.write(w, o)
}

// explainText reads the text twin of a .tideline.
func explainText(name string, r io.Reader, w io.Writer, o Options) error {
	strs := new(event.Strings)
	tl := analysis.NewTimeline(strs)
	if err := text.Read(r, strs, tl); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return fromTimeline(name, tl).write(w, o)
}

// FromEvents explains a run from its events in order and their string table.
func FromEvents(name string, events iter.Seq[*event.Event], strs *event.Strings, w io.Writer, o Options) error {
	tl := analysis.NewTimeline(strs)
	for e := range events {
		tl.Emit(e)
	}
	return fromTimeline(name, tl).write(w, o)
}

// report is what will be written: of a log, the failures; of a timeline, the
// run as well.
type report struct {
	name, kind string
	failures   []failure
	run        *analysis.Summary
	reruns     *verifier // nil where nothing can be rerun
	notices    []bfclog.Notice
	cut        string
}

// failure is a reading, with what only a timeline knows beside it.
type failure struct {
	*analysis.Reading
	recorded *analysis.RecordedFailure
	reruns   *verifier // of the failure that ended the run
}

func fromTimeline(name string, tl *analysis.Timeline) *report {
	rep := &report{name: name, kind: "tideline", run: tl.Summary()}
	for i := range rep.run.Failures {
		f := &rep.run.Failures[i]
		rep.failures = append(rep.failures, failure{Reading: f.Reading, recorded: f})
	}
	if rep.reruns = verify(rep.run); rep.reruns != nil {
		rep.failures[len(rep.failures)-1].reruns = rep.reruns
	}
	return rep
}

func (rep *report) write(w io.Writer, o Options) error {
	b := bufio.NewWriter(w)
	if o.JSON {
		rep.json(b)
	} else {
		if o.Width <= 0 {
			o.Width = 80
		}
		rep.text(b, o.Width)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write the report of %s: %w", rep.name, err)
	}
	return nil
}
