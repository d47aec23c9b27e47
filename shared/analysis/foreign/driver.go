package foreign

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/driverlog"
)

// refusalAlone says whether all that a dump tells is that the driver refused.
func refusalAlone(d *bfclog.Dump) bool {
	q := &d.Request
	return len(d.Refusals) > 0 && !d.Begun() && !d.HasBar && !q.Told && !q.Size.Known && !q.Bytes.Known && !d.Async && !d.Tensor.HasShape
}

// Driver judges refusals by the driver that no allocator's dump follows. It is
// nil where there are none, or where a dump tells more. claimed marks the
// dumps that are nothing but those refusals.
func Driver(rep *driverlog.Report, log *bfclog.Log, claimed []bool) *reading.Reading {
	if rep.Empty() {
		return nil
	}
	alone := false
	for i, d := range log.Dumps {
		if refusalAlone(d) {
			claimed[i], alone = true, true
		}
	}
	if !alone && (len(log.Dumps) > 0 || !rep.Context) {
		return nil
	}
	return driverReading(rep)
}

// A device with less than this free at the start was full already: bytes, and
// a part of its total.
const (
	startFree = int64(512) << 20
	startPart = 20
)

func driverReading(x *driverlog.Report) *reading.Reading {
	r := &reading.Reading{Kind: "tf-bfc-oom", Line: x.Line, Name: "the driver"}
	f := &r.Facts
	f.Text("format_variant", "the driver's refusals without an allocator's dump")
	f.Null("requested_bytes")
	f.Null("limit_bytes")
	f.Null("in_use_bytes")
	f.Ints("driver_refusals", x.Refused)
	f.Int("driver_refusal_count", int64(x.Count))
	f.Text("device_total_text", x.Total.Text)
	f.Text("device_free_text", x.Free.Text)
	f.IntIf("device_total_bytes", x.Reported, x.Reported > 0)
	f.IntIf("promised_bytes", x.Promised.N, x.Promised.Known)
	f.Bool("context_failed", x.Context)
	f.Bool("truncated", false)
	full := x.Context || x.Free.Known && (x.Free.Hi < startFree || x.Total.Known && x.Free.Hi < x.Total.Lo/startPart)
	if x.Total.Known {
		r.Row("device", bfclog.Spaced(x.Total.Text))
	}
	if x.Free.Known {
		r.Row("free at the start", bfclog.Spaced(x.Free.Text))
	}
	if x.Promised.Known {
		r.Row("taken for its own", event.FormatBytes(x.Promised.N))
	}
	if n := len(x.Refused); n > 0 {
		r.Row("refused first", event.FormatBytes(x.Refused[0]))
		r.Row("refused last", event.FormatBytes(x.Refused[n-1]))
	}
	switch {
	case full && x.Context:
		r.Verdict = "device_already_full"
		r.Why = "The driver could not even make its context: the device was full before the program began."
	case full:
		r.Verdict = "device_already_full"
		r.Why = fmt.Sprintf("Only %s of the device were free at the start: it was full before the program began.", bfclog.Spaced(x.Free.Text))
	default:
		r.Verdict = "device_refused_shared_card"
		r.Why = "The driver refused what the allocator had counted on when it started, so something else on the card has taken it since."
		r.Open = append(r.Open, "What the allocator held itself is not in the text; its dump, if there was one, would tell.")
	}
	r.Open = append(r.Open, "Who holds the memory is not in the text.")
	r.Next = []string{"See with nvidia-smi what else is on the card, and end it; a second process of the same program is the commonest."}
	return r
}
