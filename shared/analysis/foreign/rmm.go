package foreign

import (
	"fmt"
	"math"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/rmmlog"
)

// RMM judges a log of the RAPIDS memory manager.
func RMM(l *rmmlog.Log) *reading.Reading {
	r := &reading.Reading{Kind: "rmm-log", Line: l.Line, Name: "RMM's log"}
	f := &r.Facts
	variant := "Thread,Time,Action,Pointer,Size,Stream"
	if l.Old {
		variant = "pre-2020 columns (Event Type .. Location)"
	} else if !l.Header {
		variant += ", without its header"
	}
	f.Text("format_variant", variant)
	f.Int("events", l.Events)
	f.Int("allocations", l.Allocs)
	f.Int("frees", l.Frees)
	f.Int("failures", l.Failures)
	f.Int("live_bytes", l.Live)
	f.Int("live_bytes_at_end", l.Live)
	f.Int("live_blocks_at_end", l.LiveBlocks)
	f.Int("peak_bytes", l.Peak)
	f.Int("largest_bytes", l.Largest)
	f.Int("unmatched_frees", l.Unmatched)
	f.Int("mismatched_sizes", l.Mismatched)
	if l.Old {
		f.Bool("free_and_total_columns_meaningful", l.Meaningful)
		rmmTimes(f, l)
		f.Ints("devices", l.Devices)
	} else {
		f.Ints("threads", l.Threads)
		f.Int("cross_thread_frees", l.CrossThread)
		rmmTimes(f, l)
	}
	f.Texts("streams", l.Streams)
	f.IntIf("failed_bytes", l.Failure, l.Failures > 0)
	f.IntIf("retry_bytes", l.Retry, l.Failures > 0 && l.Retry >= 0)
	f.IntIf("dominant_live_size", l.CommonSize, l.CommonCount > 0)
	f.IntIf("dominant_live_count", l.CommonCount, l.CommonCount > 0)
	rmmJudge(r, l)
	if l.BadLine > 0 {
		r.Open = append(r.Open, fmt.Sprintf("Line %d is no row and was left out: %q.", l.BadLine, l.Bad))
	}
	if l.Cut != "" {
		r.Open = append(r.Open, l.Cut)
	}
	return r
}

func rmmTimes(f *reading.Facts, l *rmmlog.Log) {
	sec := func(n int64) float64 { return math.Round(float64(n)/1e3) / 1e6 }
	f.FloatIf("first_start_s", sec(l.First), l.First >= 0)
	f.FloatIf("last_end_s", sec(l.Last), l.Last >= 0)
}

func rmmJudge(r *reading.Reading, l *rmmlog.Log) {
	r.Row("live at the end", event.FormatBytes(l.Live))
	r.Row("peak", event.FormatBytes(l.Peak))
	r.Row("allocations, frees", fmt.Sprintf("%d, %d", l.Allocs, l.Frees))
	switch {
	case l.Events == 0:
		r.Verdict = string(analysis.UndeterminedTruncated)
		r.Why = "There is a header and no row."
	case l.Smaller:
		r.Verdict = "failure_then_smaller_retry"
		r.Why = fmt.Sprintf("A request of %s failed, and a smaller one was served after it: the program gave way, so the failure alone is no error.", event.FormatBytes(l.Failure))
	case l.Failures > 0:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = fmt.Sprintf("%d requests failed, the last for %s while %s were live. What the pool held and the device had free is not in the log.", l.Failures, event.FormatBytes(l.Failure), event.FormatBytes(l.Live))
	case l.Live == 0 && l.Unmatched == 0:
		r.Verdict = "balanced"
		r.Why = "Every allocation is freed."
	case l.Frees > 0 && l.CommonCount >= 100 && 2*l.CommonCount*l.CommonSize > l.Live:
		r.Verdict = string(analysis.LeakManyEqualChunks)
		r.Why = fmt.Sprintf("%d blocks of exactly %s are never freed, more than half of what is live at the end.", l.CommonCount, event.FormatBytes(l.CommonSize))
	default:
		r.Verdict = string(analysis.UndeterminedTruncated)
		r.Why = fmt.Sprintf("%s are live where the log ends.", event.FormatBytes(l.Live))
		if l.Frees == 0 {
			r.Why = fmt.Sprintf("%d allocations and no free: that is a start, no evidence of a leak.", l.Allocs)
		}
		r.Open = append(r.Open, "Whether what is live at the end is freed later is not in the log: output is buffered, and a crash loses the tail.")
	}
	if l.CrossThread > 0 {
		r.Row("freed by another thread", fmt.Sprint(l.CrossThread))
	}
	if l.Unmatched > 0 {
		r.Open = append(r.Open, fmt.Sprintf("%d frees are of blocks that were allocated before the log begins.", l.Unmatched))
	}
	if len(l.Streams) > 0 {
		r.Row("streams", strings.Join(l.Streams[:min(8, len(l.Streams))], ", "))
	}
}
