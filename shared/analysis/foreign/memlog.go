package foreign

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/memlog"
)

// MemoryLog sums up TensorFlow's memory log.
func MemoryLog(l *memlog.Log) *reading.Reading {
	r := &reading.Reading{Kind: "tf-log-memory", Line: l.Line, Name: "TensorFlow's memory log", Verdict: "parse_only"}
	f := &r.Facts
	f.Int("records", l.Records)
	var kinds reading.Facts
	for _, k := range l.Kinds {
		kinds.Int(k.Name, k.N)
	}
	f.Set("by_kind", reading.Object(kinds))
	f.Int("prefix_styles", int64(len(l.Styles)))
	f.Texts("prefix_style_names", l.Styles)
	f.Int("outputs_without_description", l.WithoutBuffer)
	f.Int("raw_allocated_bytes", l.RawAllocated)
	f.Int("tensor_allocated_bytes", l.TensorBytes)
	f.Int("gpu_output_bytes", l.GPUOutput)
	f.Int("cpu_output_bytes", l.CPUOutput)
	f.Int("unmatched_deallocations", l.Unmatched)
	f.Int("live_buffers_at_end", l.LiveBuffers)
	// An empty "dim { }" is a dimension of 0, since the text leaves zeros out.
	if l.EmptyDims > 0 {
		f.Bool("scalar_or_empty_dim_is_size_zero", true)
	} else {
		f.Null("scalar_or_empty_dim_is_size_zero")
	}
	f.Ints("step_ids", l.Steps)
	f.Int("unreadable_lines", l.Bad)
	list := reading.List()
	for _, a := range l.Allocators {
		var o reading.Facts
		o.Text("name", a.Name)
		o.Int("allocations", a.Allocs)
		o.Int("frees", a.Frees)
		o.Int("live_bytes", a.Live)
		o.Int("peak_bytes", a.Peak)
		o.Int("largest_bytes", a.Largest)
		list.List = append(list.List, reading.Object(o))
		r.Row(a.Name, fmt.Sprintf("%s at most, %s at the end", event.FormatBytes(a.Peak), event.FormatBytes(a.Live)))
	}
	f.Set("allocators", list)
	r.Row("records", fmt.Sprint(l.Records))
	r.Why = "The log tells each buffer as it comes and goes. Outputs repeat buffers that were allocated elsewhere and are not added to the totals."
	if l.Unmatched > 0 {
		r.Open = append(r.Open, fmt.Sprintf("%d deallocations are of buffers whose allocation is not in the log.", l.Unmatched))
	}
	if l.Bad > 0 {
		r.Open = append(r.Open, fmt.Sprintf("%d records could not be read, the first in line %d: they are cut.", l.Bad, l.BadLine))
	}
	if l.Cut != "" {
		r.Open = append(r.Open, l.Cut)
	}
	return r
}
