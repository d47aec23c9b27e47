package ingest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"

	"tideline/shared/analysis"
	"tideline/shared/analysis/foreign"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/driverlog"
	"tideline/shared/ingest/killlog"
	"tideline/shared/ingest/liblog"
	"tideline/shared/ingest/lines"
	"tideline/shared/ingest/memlog"
	"tideline/shared/ingest/ortlog"
	"tideline/shared/ingest/placelog"
	"tideline/shared/ingest/rmmlog"
	"tideline/shared/ingest/smilog"
	"tideline/shared/ingest/steplog"
	"tideline/shared/ingest/torchlog"
	"tideline/shared/ingest/xlalog"
)

// Text is everything that one text tells, whatever was pasted into it.
type Text struct {
	// Log holds the dumps of a BFC allocator that stand on their own; nil when
	// there are none. Those that belong to a failure of XLA are in Readings.
	Log *bfclog.Log
	// Readings are all the rest, in the order of the text.
	Readings []*reading.Reading
	Lines    int
	Bytes    int64
	Cut      []string // limits of the readers that were met

	dumps []*bfclog.Dump // all that tell more than a failure in Readings does
	past  *history       // rows and records of allocations; nil for none

	courses []*course // of the readings whose figures went over time
}

// All lists every reading of the text in the common form, dumps included, in
// the order of the text.
func (t *Text) All() []*reading.Reading {
	out := slices.Clone(t.Readings)
	if t.Log != nil {
		for _, d := range t.Log.Dumps {
			out = append(out, foreign.BFC(analysis.FromDump(d)))
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Line < out[j].Line })
	return out
}

// readers see the same lines side by side. Each takes what it understands, so
// pieces of several kinds may stand in one text, in any order and interleaved.
type readers struct {
	bfc   *bfclog.Parser
	xla   *xlalog.Parser
	torch *torchlog.Parser
	ort   *ortlog.Parser
	rmm   *rmmlog.Parser
	smi   *smilog.Parser
	mem   *memlog.Parser
	steps *steplog.Parser
	card  *driverlog.Parser
	lib   *liblog.Parser
	place *placelog.Parser
	kills *killlog.Parser

	sieve *lines.Sieve
	busy  lines.Set // readers that want the next line whatever it holds

	always lines.Set // readers that want each line
}

// The readers' places in the sieve.
const (
	toBFC lines.Set = 1 << iota
	toXLA
	toTorch
	toORT
	toRMM
	toSMI
	toMemory
	toSteps
	toCard
	toLibrary
	toPlace
	toKills
	toAll = toKills<<1 - 1
)

// theSieve is made when the first text comes. It only reads afterwards.
var theSieve = sync.OnceValue(func() *lines.Sieve {
	return lines.NewSieve(
		bfclog.Marks(), xlalog.Marks(), torchlog.Marks(), ortlog.Marks(), rmmlog.Marks(), smilog.Marks(), memlog.Marks(), steplog.Marks(), driverlog.Marks(),
		liblog.Marks(), placelog.Marks(), killlog.Marks(),
	)
})

func newReaders(row func(*rmmlog.Row), record func(*memlog.Record)) *readers {
	return &readers{
		bfclog.New(), xlalog.New(), torchlog.New(), ortlog.New(), rmmlog.New(row), smilog.New(), memlog.New(record), steplog.New(), driverlog.New(),
		liblog.New(), placelog.New(), killlog.New(),
		theSieve(), 0, 0,
	}
}

// line shows a line to those that could care for it: nearly all lines of a long
// log are nobody's.
func (r *readers) line(num int, s string) {
	if to := r.sieve.Of(s) | r.busy | r.always; to != 0 {
		r.show(num, s, to)
		r.busy = r.waiting()
	}
}

// waiting are the readers that a line has made wait for its rest. Those that
// are not asked read each line by itself.
func (r *readers) waiting() (set lines.Set) {
	if !r.bfc.Idle() {
		set |= toBFC
	}
	if !r.xla.Idle() {
		set |= toXLA
	}
	if !r.torch.Idle() {
		set |= toTorch
	}
	if !r.ort.Idle() {
		set |= toORT
	}
	if !r.rmm.Idle() {
		set |= toRMM
	}
	if !r.smi.Idle() {
		set |= toSMI
	}
	if !r.steps.Idle() {
		set |= toSteps
	}
	if !r.place.Idle() {
		set |= toPlace
	}
	return set
}

// show shows a line to a set of readers. The series of a training loop are made
// of lines that mean nothing to any other reader.
func (r *readers) show(num int, s string, to lines.Set) {
	q := lines.StripQuotes(s)
	if to&toRMM != 0 && r.rmm.Line(num, q) || to&toMemory != 0 && r.mem.Line(num, q) {
		return // rows and records of their own: nothing else is in them
	}
	if to&toBFC != 0 {
		r.bfc.Line(num, s)
	}
	took := to&toCard != 0 && r.card.Line(num, q)
	took = to&toLibrary != 0 && r.lib.Line(num, q) || took
	took = to&toPlace != 0 && r.place.Line(num, q) || took
	took = to&toKills != 0 && r.kills.Line(num, q) || took
	took = to&toXLA != 0 && r.xla.Line(num, q) || took
	if to&toTorch != 0 && !strings.Contains(q, "cuMemAlloc") { // TensorFlow's own words for the same refusal
		took = r.torch.Line(num, q) || took
	}
	took = to&toORT != 0 && r.ort.Line(num, q) || took
	took = to&toSMI != 0 && r.smi.Line(num, q) || took
	if !took && to&toSteps != 0 {
		r.steps.Line(num, q)
	}
}

// ReadText reads the texts one after the other, as if they were pasted
// together, and says what all of it means. A text that tells nothing gives an
// *UnsupportedError. The name is only used in errors.
func ReadText(name string, texts ...io.Reader) (*Text, error) {
	return readText(name, &Text{}, texts...)
}

// readText reads into out, and keeps the history if out has room for one.
func readText(name string, out *Text, texts ...io.Reader) (*Text, error) {
	all := newReaders(nil, nil)
	if out.past != nil {
		all = newReaders(out.past.row, out.past.record)
	}
	return readWith(all, name, out, texts...)
}

func readWith(all *readers, name string, out *Text, texts ...io.Reader) (*Text, error) {
	for _, t := range texts {
		in := lines.New(t)
		whole := lines.NewWholes(in)
		for {
			num, s, err := whole.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("read %s after line %d: %w", name, out.Lines+in.Count(), err)
			}
			all.line(out.Lines+num, s)
		}
		out.Lines += in.Count()
		out.Bytes += in.Bytes()
	}
	all.end(out)
	if out.Log == nil && len(out.Readings) == 0 {
		return nil, &UnsupportedError{Name: name, Kind: Log, Detail: "no out-of-memory text and no other report about memory in it"}
	}
	return out, nil
}

// end collects what the readers found.
func (r *readers) end(out *Text) {
	add := func(list ...*reading.Reading) { out.Readings = append(out.Readings, list...) }
	cut := func(s string) {
		if s != "" {
			out.Cut = append(out.Cut, s)
		}
	}
	log, xla := r.bfc.End(), r.xla.End()
	start, places := r.card.End(), r.place.End()
	found, claimed := foreign.XLA(xla, log, start)
	add(found...)
	foreign.Begun(start, log)
	if card := foreign.Driver(start, log, claimed); card != nil {
		add(card)
	}
	out.dumps = worthTelling(log.Dumps, claimed)
	cut(log.Cut)
	cut(xla.Cut)
	out.Log = withoutClaimed(log, claimed, len(out.Readings) > 0)
	torch := r.torch.End()
	add(foreign.Torch(torch)...)
	cut(torch.Cut)
	ort := r.ort.End()
	add(foreign.ORT(ort)...)
	cut(ort.Cut)
	rmm := r.rmm.End()
	if rmm.Events > 0 || rmm.Header {
		add(foreign.RMM(rmm))
	}
	add(foreign.RMMRefusals(rmm)...)
	smi := r.smi.End()
	screens := foreign.SMI(smi)
	add(screens...)
	for i, s := range screens {
		if c := screenCourse(smi.Screens[i], s); c != nil {
			out.courses = append(out.courses, c)
		}
	}
	cut(smi.Cut)
	if mem := r.mem.End(); mem.Records > 0 {
		add(foreign.MemoryLog(mem))
	}
	steps := r.steps.End()
	if (out.Log != nil || len(out.Readings) > 0) && !explicit(steps) {
		steps.Series = nil // figures beside a report are no series of their own
	}
	if s := foreign.Steps(steps); s != nil {
		add(s)
		out.courses = append(out.courses, stepCourse(steps, s))
	}
	reported := len(log.Dumps) > 0 || len(out.Readings) > 0
	if l := foreign.Library(r.lib.End(), start, log, reported); l != nil {
		add(l)
	}
	add(foreign.Killed(r.kills.End())...)
	if p := foreign.Placement(places); p != nil {
		add(p)
		cut(places.Cut)
	}
	if out.Log == nil && len(out.Readings) == 0 {
		if s := foreign.Starts(start); s != nil {
			add(s)
		}
	}
	sort.SliceStable(out.Readings, func(i, j int) bool { return out.Readings[i].Line < out.Readings[j].Line })
}

// worthTelling leaves out the dumps that only repeat the failure of another.
func worthTelling(dumps []*bfclog.Dump, claimed []bool) (keep []*bfclog.Dump) {
	for i, d := range dumps {
		if !claimed[i] || len(d.Regions) > 0 {
			keep = append(keep, d)
		}
	}
	return keep
}

// explicit: a series that cannot be anything but memory over steps.
func explicit(l *steplog.Log) bool {
	for _, s := range l.Series {
		if s.Role != steplog.Plain || s.Counted {
			return true
		}
	}
	return false
}

// withoutClaimed leaves out the dumps that XLA's failures took along.
func withoutClaimed(log *bfclog.Log, claimed []bool, xla bool) *bfclog.Log {
	var keep []*bfclog.Dump
	for i, d := range log.Dumps {
		if !claimed[i] {
			keep = append(keep, d)
		}
	}
	if len(keep) == 0 && (xla || len(log.Notices) == 0) {
		return nil
	}
	log.Dumps = keep
	return log
}
