package remedy

import (
	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/snapshot"
)

// Fill replays what an opened input holds and puts what came of it into its
// readings. Of a timeline it does nothing: that has no readings.
func Fill(in *ingest.Input, o Options) {
	switch {
	case in.Data != nil && in.Data.Snapshot != nil:
		out := Snapshot(in.Data.Snapshot, o)
		out.Attach(in.Data.Reading)
	case in.Data != nil && in.Data.Dump != nil:
		out := BFC(in.Data.Dump, analysis.FromDump(in.Data.Dump), o)
		out.Attach(in.Data.Reading)
	case in.Text != nil:
		Text(in.Text, in.Readings, o)
	}
}

// Text fills the readings of a text.
func Text(t *ingest.Text, list []*reading.Reading, o Options) {
	o = o.Shared()
	for _, r := range list {
		var out Outcome
		switch r.Kind {
		case "tf-bfc-oom":
			if d := dumpAt(t.Log, r.Line); d != nil {
				out = BFC(d, analysis.FromDump(d), o)
			}
		case "ort-bfcarena":
			out = ORT(r, o)
		case "rmm-log", "tf-log-memory":
			out = logged(t, o)
		}
		out.Attach(r)
	}
}

// Shared are options under which all replays that follow draw on one budget.
func (o Options) Shared() Options {
	o.shared = o.work()
	return o
}

func dumpAt(log *bfclog.Log, line int) *bfclog.Dump {
	if log != nil {
		for _, d := range log.Dumps {
			if d.Line == line {
				return d
			}
		}
	}
	return nil
}

// logged replays the largest history among the devices of a log that tells
// every allocation.
func logged(t *ingest.Text, o Options) Outcome {
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	if err := t.Emit(&strs, rec); err != nil {
		return Outcome{}
	}
	var best *contest.Trace
	for _, x := range rec.Traces() {
		if best == nil || x.Len() > best.Len() {
			best = x
		}
	}
	if best == nil {
		return Outcome{}
	}
	return History(best, o)
}

// Snapshot replays the trace of a snapshot's device: of several the one whose
// last request failed, else the one with the longest trace.
func Snapshot(s *snapshot.Snapshot, o Options) Outcome {
	if s.Cut != "" {
		return Outcome{Replayed: "Nothing was replayed: the file is cut, and what was held is not known in full."}
	}
	device, most, failed := -1, 0, false
	for _, t := range s.Traces {
		if t.Len() == 0 {
			continue
		}
		fails := false
		for i := 0; i < t.Len() && !fails; i++ {
			fails = s.Event(t, i).Action == snapshot.OOM
		}
		if device < 0 || fails && !failed || fails == failed && t.Len() > most {
			device, most, failed = t.Device, t.Len(), fails
		}
	}
	if device < 0 {
		return Outcome{}
	}
	return Torch(&Recorded{Segments: s.TorchSegments(device), Trace: s.TorchTrace(device), Settings: s.TorchSettings()}, o)
}
