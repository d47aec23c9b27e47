package foreign

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/rmmlog"
)

// RMMRefusals judges the exceptions of the RAPIDS memory manager where there are
// no rows beside them.
func RMMRefusals(l *rmmlog.Log) []*reading.Reading {
	if l.Events > 0 {
		return nil
	}
	var out []*reading.Reading
	for _, x := range l.Refusals {
		out = append(out, rmmRefusal(x))
	}
	return out
}

func rmmRefusal(x *rmmlog.Refusal) *reading.Reading {
	r := &reading.Reading{Kind: "rmm-log", Line: x.Line, Name: "RMM"}
	f := &r.Facts
	known := func(name string, n int64) { f.IntIf(name, n, n >= 0) }
	f.Text("format_variant", "an exception")
	f.Bool("pool", x.Pool)
	known("requested_bytes", x.Asked)
	known("pool_bytes", x.Current)
	known("pool_limit_bytes", x.Max)
	known("source_line", x.Source)
	f.Int("repeated", int64(x.Count))
	row := func(label string, n int64) {
		if n >= 0 {
			r.Row(label, event.FormatBytes(n))
		}
	}
	row("asked for", x.Asked)
	row("pool", x.Current)
	row("its limit", x.Max)
	asked := "A request"
	if x.Asked >= 0 {
		asked = "A request of " + event.FormatBytes(x.Asked)
	}
	switch {
	case !x.Pool:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = asked + " was refused by the driver. What the device had free, and who held the rest, is not in the text."
		r.Next = []string{"See with nvidia-smi what is on the card. RMM_LOG_FILE, or rmm.enable_logging(), writes each request and free."}
	case x.Asked >= 0 && x.Max >= 0 && x.Asked > x.Max:
		r.Verdict = string(analysis.LimitTooLow)
		r.Why = fmt.Sprintf("%s is more than the pool may ever have (%s).", asked, event.FormatBytes(x.Max))
		r.Next = []string{"Raise maximum_pool_size, if the device has room, or make the request smaller."}
	default:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = asked + " found no block in the pool that is large enough, and the pool may not grow"
		if x.Max >= 0 {
			r.Why += fmt.Sprintf(": it has %s of %s", event.FormatBytes(max(0, x.Current)), event.FormatBytes(x.Max))
		}
		r.Why += ". Whether it is full or what is free in it lies in pieces is not in the text."
		r.Next = []string{
			"Raise maximum_pool_size, if the device has room; begin with initial_pool_size as large, for what the pool takes later cannot join what it has.",
			"RMM_LOG_FILE, or rmm.enable_logging(), writes each request and free: they tell which of the two it was.",
		}
	}
	return r
}
