package ingest

import (
	"math"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/memlog"
	"tideline/shared/ingest/rmmlog"
)

// history is what the rows and records of a text tell, kept until it is asked
// for.
type history struct {
	rmm, mem *tape
	rows     *rmmlog.Teller
	records  *memlog.Teller
	strs     [2]event.Strings
}

func newHistory() *history { return &history{} }

func (h *history) row(r *rmmlog.Row) {
	if h.rmm == nil {
		h.rmm = newTape(&h.strs[0])
		h.rows = rmmlog.NewTeller(&h.strs[0], h.rmm.w)
	}
	h.rows.Row(r)
}

func (h *history) record(r *memlog.Record) {
	if h.mem == nil {
		h.mem = newTape(&h.strs[1])
		h.records = memlog.NewTeller(&h.strs[1], h.mem.w)
	}
	h.records.Record(r)
}

func (h *history) play(strs *event.Strings, sink event.Sink) error {
	if h == nil {
		return nil
	}
	for _, t := range []*tape{h.rmm, h.mem} {
		if t == nil {
			continue
		}
		to := sink
		if t == h.mem { // whose blocks have ops
			g := newGrouping(strs)
			if err := t.play(strs, g); err != nil {
				return err
			}
			g.pass(sink)
			to = g
		}
		if err := t.play(strs, to); err != nil {
			return err
		}
		if j, ok := sink.(*joined); ok {
			j.part()
		}
	}
	return nil
}

// Emit tells the text as the events of a timeline, its parts one after the
// other on devices of their own: histories as they went, dumps as ReadLog tells
// them, and of what is left the failures and the figures that the readings
// have. It can be asked as often as one likes.
func (t *Text) Emit(strs *event.Strings, sink event.Sink) error {
	j := &joined{sink: sink, end: event.Event{Kind: event.End, Step: event.NoStep, Cause: uint8(event.EndDone), Text: strs.ID("end of the log")}}
	if err := t.past.play(strs, j); err != nil {
		return err
	}
	if len(t.dumps) > 0 || t.Log != nil && len(t.Log.Notices) > 0 {
		log := bfclog.Log{Dumps: t.dumps}
		if t.Log != nil {
			log.Notices, log.Cut = t.Log.Notices, t.Log.Cut
		}
		tellLog(&log, strs, j)
		j.part()
	}
	for _, r := range t.Readings {
		if t.toldBy(r) {
			continue
		}
		if c := t.courseOf(r); c != nil {
			c.tell(strs, j)
		} else {
			tellReading(r, strs, j)
		}
		j.part()
	}
	j.finish()
	return nil
}

// toldBy says whether what a reading is about is told in another way.
func (t *Text) toldBy(r *reading.Reading) bool {
	switch r.Kind {
	case "rmm-log", "tf-log-memory":
		return t.past != nil && (t.past.rmm != nil || t.past.mem != nil)
	case "xla-oom", "tf-bfc-oom":
		return len(t.dumps) > 0
	default:
		return false
	}
}

// joined makes one timeline of several: each part's devices and allocators get
// numbers of their own, its times follow those before, and only the last one
// ends.
type joined struct {
	sink  event.Sink
	base  int   // number of the part's first device
	next  int   // one more than the highest number in use
	start int64 // of the part
	now   int64
	end   event.Event
	e     event.Event
}

// Emit implements event.Sink.
func (j *joined) Emit(e *event.Event) {
	j.e = *e
	j.e.Time += j.start
	j.now = max(j.now, j.e.Time)
	j.e.Device += event.DeviceID(j.base)
	j.e.Allocator += event.AllocatorID(j.base)
	j.next = max(j.next, int(j.e.Device)+1, int(j.e.Allocator)+1)
	if e.Kind == event.End {
		if e.Cause == uint8(event.EndOutOfMemory) {
			j.end = j.e // a failure is what the whole ended with
		}
		return
	}
	j.sink.Emit(&j.e)
}

func (j *joined) part() { j.base, j.start = j.next, j.now }

func (j *joined) finish() {
	j.end.Time, j.end.Device, j.end.Allocator = j.now, 0, 0
	j.sink.Emit(&j.end)
}

// figures are the facts that are samples of a device, under the names that
// reports of an allocator have.
var figures = []struct{ fact, name string }{
	{"in_use_bytes", analysis.ReportedInUse},
	{"allocated_bytes", analysis.ReportedInUse},
	{"peak_bytes", analysis.ReportedPeak},
	{"reserved_bytes", analysis.ReportedPool},
	{"arena_total_bytes", analysis.ReportedPool},
	{"free_bytes", analysis.ReportedFree},
}

// tellReading tells one of those that have no history and no chunks: who it is
// about, what it counted, that it failed, and what is concluded of it. It tells
// of no allocator: what its blocks were is not known.
func tellReading(r *reading.Reading, strs *event.Strings, sink event.Sink) {
	emit := func(e event.Event) {
		e.Step = event.NoStep
		sink.Emit(&e)
	}
	device := event.Fields{{Key: "name", Value: r.Name}, {Key: "kind", Value: "gpu"}}
	if n, ok := whole(r, "capacity_bytes", "device_total_bytes"); ok {
		device.Set("total", strconv.FormatInt(n, 10))
	}
	emit(event.Event{Kind: event.DeviceFacts, Text: strs.ID(device.Encode())})
	told := map[string]bool{}
	for _, f := range figures {
		if n, ok := whole(r, f.fact); ok && !told[f.name] {
			told[f.name] = true
			emit(event.Event{Kind: event.Sample, Op: strs.ID(f.name), Size: n})
		}
	}
	end := event.EndDone
	if n, ok := whole(r, "requested_bytes", "failed_bytes"); ok && n > 0 {
		end = event.EndOutOfMemory
		emit(event.Event{Kind: event.OutOfMemory, Time: moment / 2, Size: n, Requested: n})
		emit(event.Event{Kind: event.Annotation, Time: moment / 2, Text: strs.ID(analysis.VerdictNote + r.Verdict)})
	}
	emit(event.Event{Kind: event.Log, Time: moment, Text: strs.ID(reading.Phrase(r.Verdict) + ": " + r.Why)})
	emit(event.Event{Kind: event.End, Time: moment, Cause: uint8(end), Text: strs.ID("end of the log")})
}

// whole is the first of the facts that is known and not negative, in bytes; one
// that was printed in larger units is as exact as its print.
func whole(r *reading.Reading, names ...string) (int64, bool) {
	for _, name := range names {
		if v, ok := r.Facts.Get(name); ok && v.Kind == reading.IntKind && v.Int >= 0 {
			return v.Int, true
		}
		base, _ := strings.CutSuffix(name, "_bytes")
		if v, ok := r.Facts.Get(base + "_mib"); ok && v.Kind == reading.FloatKind && v.Float >= 0 && v.Float < 1<<40 {
			return int64(math.Round(v.Float * (1 << 20))), true
		}
	}
	return 0, false
}
