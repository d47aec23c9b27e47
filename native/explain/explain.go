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

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
	"tideline/shared/analysis"
	"tideline/shared/analysis/finding"
	"tideline/shared/analysis/ledger"
	"tideline/shared/analysis/profiler"
	common "tideline/shared/analysis/reading"
	"tideline/shared/analysis/reading/saved"
	"tideline/shared/ingest"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/redact"
	"tideline/shared/remedy"
	"tideline/shared/store"
)

// Options say how to report.
type Options struct {
	JSON  bool
	HTML  bool // one page that holds all it shows, to attach to a report
	Width int  // columns of the terminal; 0 means 80
	// NoReruns leaves out what is found by running the workload, or the recorded
	// requests, again.
	NoReruns bool
	// Profiler prints what the memory page of TensorFlow's profiler would show
	// of the same run or profile, instead of the report; as text only.
	Profiler bool
	// Stop ends the reruns; nil never does.
	Stop func() bool
	// Redact leaves out names, paths, hosts, stacks and the free text of logs.
	Redact bool
	// Version is Tideline's, for the page.
	Version string
	// Parts is what is read, where it is several texts; nil for one.
	Parts *Parts

	zipped bool // the file was packed by gzip
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
	if ingest.IsData(head) {
		return explainData(name, in, w, o)
	}
	switch kind := ingest.Recognise(head); kind {
	case ingest.GZip:
		return explainGzip(name, in, w, o)
	case ingest.Timeline:
		return explainTimeline(name, in, w, o)
	case ingest.TimelineText:
		return explainText(name, in, w, o)
	case ingest.Log, ingest.JSON: // a collector may wrap each line of a log in JSON
		return explainPasted(name, kind, in, w, o)
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
	o.zipped = true
	return Explain(name, in, w, o)
}

// explainTimeline reads a .tideline. A file that is cut or damaged is
// explained as far as it goes, and the report says so.
func explainTimeline(name string, r io.Reader, w io.Writer, o Options) error {
	s, err := timeline.NewStream(r)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	if o.Profiler {
		rec := profiler.NewRecorder(s.Strings())
		if err := s.Replay(rec); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		return profilerText(w, rec.Events())
	}
	in := newReading(s.Strings())
	if err := s.Replay(in); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	rep := in.report(name, &o)
	rep.recall(s)
	if n := len(s.Damage()); n > 0 {
		rep.cut = damaged(n, s.Damage()[0])
	}
	return rep.write(w, o)
}

func damaged(n int, first error) string {
	if n == 1 {
		return fmt.Sprintf("the file is damaged: %v", first)
	}
	return fmt.Sprintf("the file is damaged in %d places, first: %v", n, first)
}

// explainText reads the text twin of a .tideline.
func explainText(name string, r io.Reader, w io.Writer, o Options) error {
	strs := new(event.Strings)
	in := newReading(strs)
	if err := text.Read(r, strs, in); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return in.report(name, &o).write(w, o)
}

// FromEvents explains a run from its events in order and their string table.
func FromEvents(name string, events iter.Seq[*event.Event], strs *event.Strings, w io.Writer, o Options) error {
	in := newReading(strs)
	for e := range events {
		in.Emit(e)
	}
	return in.report(name, &o).write(w, o)
}

// report is what will be written: of a log, the failures; of a timeline, the
// run as well.
type report struct {
	name, kind string
	failures   []failure
	run        *analysis.Summary
	found      []checked
	reruns     *verifier // nil where nothing can be rerun
	notices    []bfclog.Notice
	readings   []*common.Reading // of texts other than dumps
	cut        string
	tl         *store.Timeline // for the page's pictures; nil where there are none
	// Where the memory of an allocator's card was at its peak, and the one of
	// the allocator that held most; of timelines.
	ledgers map[event.AllocatorID]*ledger.Ledger
	fullest *ledger.Ledger
	red     *redact.Redactor // nil unless the report is to be redacted
	saved   *saved.Readings  // where the readings are those that a timeline keeps
}

// failure is a reading, with what only a timeline knows beside it.
type failure struct {
	*analysis.Reading
	file     string // of several texts, the one that it is in; "" of one
	recorded *analysis.RecordedFailure
	reruns   *verifier       // of the failure that ended the run
	replays  *common.Reading // what replays of a dump came to; nil for none
	// leak says in a sentence what filled the memory where that was a leak, and
	// culprit whose results they are; both of the failure that ended the run.
	leak, culprit string
}

// reading takes a run's events twice: as sums, and as a timeline that findings
// are made from.
type reading struct {
	sums     *analysis.Timeline
	tl       *store.Timeline
	batch    []event.Event
	requests *remedy.Timeline // of other programs
}

func newReading(strs *event.Strings) *reading {
	return &reading{sums: analysis.NewTimeline(strs), tl: store.New(strs), batch: make([]event.Event, 0, 1024), requests: remedy.NewTimeline(strs, workload)}
}

// workload says whether a run's settings are a workload of Tideline's.
func workload(f event.Fields) bool {
	_, problems := api.FromFields(f)
	return len(problems) == 0
}

// Emit implements event.Sink.
func (r *reading) Emit(e *event.Event) {
	r.sums.Emit(e)
	r.requests.Emit(e)
	if r.batch = append(r.batch, *e); len(r.batch) == cap(r.batch) {
		r.flush()
	}
}

func (r *reading) flush() {
	r.tl.Append(r.batch)
	r.batch = r.batch[:0]
}

func (r *reading) report(name string, o *Options) *report {
	r.flush()
	rep := &report{name: name, kind: "tideline", run: r.sums.Summary(), tl: r.tl}
	rep.keepLedgers()
	for i := range rep.run.Failures {
		f := &rep.run.Failures[i]
		rep.failures = append(rep.failures, failure{Reading: f.Reading, recorded: f})
	}
	found := finding.Of(r.tl)
	rep.blameLeak(found)
	if o.NoReruns {
		for _, f := range found {
			rep.found = append(rep.found, checked{Finding: f})
		}
		return rep
	}
	rep.found = check(rep.run, found, o)
	if rep.reruns = verify(rep.run, found, o); rep.reruns != nil {
		rep.failures[len(rep.failures)-1].reruns = rep.reruns
	}
	rep.replayTimeline(r.requests, o)
	return rep
}

// blameLeak notes with the last failure that a leak is behind it.
func (rep *report) blameLeak(found []finding.Finding) {
	if len(rep.failures) == 0 || !rep.run.Ended || rep.run.End != event.EndOutOfMemory {
		return
	}
	for i := range found {
		if f := &found[i]; f.ID == finding.OutOfMemory && f.Kind == "leak" && len(f.Text) > 0 {
			last := &rep.failures[len(rep.failures)-1]
			last.leak, last.culprit = f.Text[0], f.Culprit
		}
	}
}

func (rep *report) write(w io.Writer, o Options) error {
	b := bufio.NewWriter(w)
	if o.Redact {
		rep.redact()
	}
	switch {
	case o.JSON:
		rep.json(b)
	case o.HTML:
		if err := rep.html(b, &o); err != nil {
			return err
		}
	default:
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
