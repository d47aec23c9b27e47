package foreign

import (
	"fmt"
	"math"

	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/torchlog"
)

// sameMoment: figures of a message and of a table after it that differ by no
// more than this are of one state. Ours.
const sameMoment = 0.05

// of says whether the table is of the state in which the request failed.
func (s *torchState) of(t *torchlog.Summary, v *tableView) bool {
	near := func(a, b float64) bool { return math.Abs(a-b) <= sameMoment*max(a, b) }
	return v.known && s.m.Requested.Known && s.m.Free.Known && s.reserved.Known &&
		(t.Device < 0 || s.m.Device < 0 || t.Device == s.m.Device) &&
		near(s.used, v.allocated*mib) && near(s.reserved.Bytes(), v.reserved*mib)
}

// judgeTable decides what message and table say together: the message tells the
// request, and the table what of the idle memory can be given back.
func (s *torchState) judgeTable(r *reading.Reading, v *tableView) {
	verdict := s.verdict()
	asked, idle := s.request, (v.reserved-v.allocated)*mib
	r.Open = nil
	r.Row("asked for", show(s.m.Requested))
	r.Row("free on the device", show(s.m.Free))
	switch verdict {
	case analysis.Full, analysis.Fragmented, analysis.DriverRefusedDespiteFree:
	default:
		r.Verdict = string(verdict)
		r.Why, r.Next = s.why(&reading.Reading{Verdict: r.Verdict})
		return
	}
	switch back := idle - v.nonReleasable.Bytes(); {
	case s.free+idle < asked:
		r.Verdict = fullForRequest
		r.Why = fmt.Sprintf("%s were asked for. The device has %s free, and all %s that are reserved and idle would not do beside them.", show(s.m.Requested), show(s.m.Free), inMiB(idle/mib))
		r.Next = []string{"Less must live at once: a smaller batch, less kept for the backward pass, lower precision, or a larger device."}
	case v.nonReleasable.Known && s.free < asked && s.free+back < asked:
		r.Verdict = segmentTails
		r.Why = fmt.Sprintf("%s were asked for. The device has %s free; of the %s that are reserved and idle %s are the rest of segments that hold something alive, and cannot be given back.",
			show(s.m.Requested), show(s.m.Free), inMiB(idle/mib), inMiB(v.nonReleasable.Bytes()/mib))
		r.Next = []string{"Keep small long-lived blocks out of large segments: a split limit (max_split_size_mb), expandable segments, or emptying the cache between phases."}
	default:
		r.Verdict = string(verdict)
		r.Why, r.Next = s.why(&reading.Reading{Verdict: r.Verdict})
	}
}
