package foreign

import (
	"fmt"
	"math"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/torchlog"
)

// torchTables joins each memory summary with the segment lists of the text, and
// with the message of the failure where the text has one of each.
func torchTables(rep *torchlog.Report) []*reading.Reading {
	var out []*reading.Reading
	var m *torchState
	if len(rep.Messages) == 1 && len(rep.Summaries) == 1 {
		m = stateOf(rep.Messages[0])
	}
	n := max(len(rep.Summaries), len(rep.Snapshots))
	for i := range n {
		var t *torchlog.Summary
		var s *torchlog.Snapshot
		if i < len(rep.Summaries) {
			t = rep.Summaries[i]
		}
		if i < len(rep.Snapshots) {
			s = rep.Snapshots[i]
		}
		out = append(out, torchTable(t, s, m))
	}
	return out
}

// sums of a list of segments, in bytes.
type segmentSums struct {
	total, active, idle    int64
	blocks, blockBytes     int64
	segments, pinned, free int64 // pinned: with something alive, and mostly idle
	pinnedIdle             int64
	cut                    bool
}

func sumSegments(s *torchlog.Snapshot) segmentSums {
	var t segmentSums
	t.cut = s.Cut || s.Limit
	for i := range s.Segments {
		g := &s.Segments[i]
		var listed int64
		for _, b := range g.Blocks {
			t.blocks++
			listed += b.Size
		}
		t.blockBytes += listed
		if g.Total < 0 {
			t.cut = true
			continue
		}
		active := max(g.Active, g.Allocated, 0)
		t.segments++
		t.total += g.Total
		t.active += active
		t.idle += g.Total - active
		t.cut = t.cut || listed < g.Total
		if active == 0 {
			t.free += g.Total
		} else if active < g.Total {
			t.pinned++
			t.pinnedIdle += g.Total - active
		}
	}
	return t
}

func torchTable(t *torchlog.Summary, s *torchlog.Snapshot, m *torchState) *reading.Reading {
	r := &reading.Reading{Kind: "pytorch-memory-summary", Name: "PyTorch's memory summary"}
	f := &r.Facts
	if t == nil {
		r.Kind, r.Name = "pytorch-memory-snapshot-text", "PyTorch's segments"
	}
	f.Text("format_variant", tableVariant(t, s))
	var v tableView
	if t != nil {
		r.Line = t.Line
		v = tableFacts(f, t)
	}
	if s != nil {
		if r.Line == 0 {
			r.Line = s.Line
		}
		v.seg = sumSegments(s)
		v.hasSeg = true
		segmentFacts(f, &v.seg)
	}
	f.Bool("truncated", t != nil && t.Cut || v.seg.cut)
	if v.judge(r); t != nil && m != nil && m.of(t, &v) {
		m.judgeTable(r, &v)
	}
	return r
}

func tableVariant(t *torchlog.Summary, s *torchlog.Snapshot) string {
	v := ""
	if t != nil {
		v = "memory_summary() table with MiB"
		if t.Decimal {
			v = "memory_summary() table before 1.12, with MB meaning MiB"
		}
	}
	if s != nil {
		if v != "" {
			v += "; "
		}
		v += "segments printed as a literal"
		if s.Cut {
			v += ", cut"
		}
	}
	return v
}

// tableView is what the verdict needs, in MiB.
type tableView struct {
	ooms, retries       int64
	counted             bool
	allocated, reserved float64
	nonReleasable       figure
	known               bool
	hasSeg              bool
	seg                 segmentSums
}

// mibValue is a whole number where the table prints MiB, as cells are cut to
// whole units.
func mibValue(x figure) reading.Value {
	if !x.Known {
		return reading.Null()
	}
	v := x.Bytes() / mib
	if v == math.Trunc(v) {
		return reading.Int(int64(v))
	}
	return reading.Float(torchlog.Round2(v))
}

var tableNames = []struct{ metric, name string }{
	{"Allocated memory", "allocated"},
	{"Active memory", "active"},
	{"Requested memory", "requested"},
	{"GPU reserved memory", "reserved"},
	{"Reserved memory", "reserved"},
	{"GPU cached memory", "reserved"},
	{"Cached memory", "reserved"},
	{"Non-releasable memory", "non_releasable"},
}

func tableFacts(f *reading.Facts, t *torchlog.Summary) tableView {
	v := tableView{ooms: t.OOMs, retries: t.Retries, counted: t.Counted}
	f.IntIf("device", t.Device, t.Device >= 0)
	f.IntIf("ooms", t.OOMs, t.Counted)
	f.IntIf("retries", t.Retries, t.Counted)
	for _, n := range tableNames {
		row, ok := t.Row(n.metric)
		if !ok {
			continue
		}
		f.Set(n.name+"_mib", mibValue(row.Cells[0]))
		f.Set(n.name+"_peak_mib", mibValue(row.Cells[1]))
	}
	for _, n := range []struct{ metric, name string }{
		{"Allocations", "allocations"},
		{"Active allocs", "active_allocations"},
		{"GPU reserved segments", "segments"},
		{"Non-releasable allocs", "non_releasable_allocations"},
	} {
		if row, ok := t.Row(n.metric); ok && row.Cells[0].Known {
			f.Int(n.name, int64(row.Cells[0].Value))
		}
	}
	a, ok1 := t.Row("Allocated memory")
	g := figure{}
	for _, n := range tableNames {
		if row, ok := t.Row(n.metric); ok && n.name == "reserved" {
			g = row.Cells[0]
		}
	}
	if nr, ok := t.Row("Non-releasable memory"); ok {
		v.nonReleasable = nr.Cells[0]
	}
	idle := minus(g, a.Cells[0])
	f.Set("reserved_unallocated_mib", mibValue(idle))
	if ok1 && idle.Known && a.Cells[0].Bytes() > 0 {
		f.Float("reserved_over_allocated", torchlog.Round2(g.Bytes()/a.Cells[0].Bytes()))
	} else {
		f.Null("reserved_over_allocated")
	}
	if idle.Known {
		v.known = true
		v.allocated, v.reserved = a.Cells[0].Bytes()/mib, g.Bytes()/mib
	}
	return v
}

func segmentFacts(f *reading.Facts, s *segmentSums) {
	f.Int("segment_count", s.segments)
	f.Int("segment_total_bytes", s.total)
	f.Int("segment_active_bytes", s.active)
	if s.total > 0 {
		f.Float("segment_active_share", round6(float64(s.active)/float64(s.total)))
	} else {
		f.Null("segment_active_share")
	}
	f.Int("segment_idle_bytes", s.idle)
	f.Int("listed_blocks", s.blocks)
	f.Int("listed_block_bytes", s.blockBytes)
}

func round6(x float64) float64 { return math.Round(x*1e6) / 1e6 }

// A share of idle memory from which it is the story, and one below which it is
// not. Choices of ours.
const (
	muchIdle   = 0.3
	littleIdle = 0.1
)

// The verdicts of a table that tells what of the idle memory can be given back.
const (
	segmentTails   = "fragmented_segment_tails"
	fullForRequest = "full_for_this_request"
)

// nearlyAll of something, where the figures are cut to whole units. Ours.
const nearlyAll = 0.9

// judge decides by the idle share of what is reserved, and whether a request
// failed at all.
func (v *tableView) judge(r *reading.Reading) {
	idle, all := v.reserved-v.allocated, v.reserved
	if !v.known && v.hasSeg {
		idle, all = float64(v.seg.idle)/mib, float64(v.seg.total)/mib
	}
	share := 0.0
	if all > 0 {
		share = idle / all
	}
	failed := !v.counted || v.ooms > 0 || v.retries > 0
	tails := share
	if v.known && v.nonReleasable.Known && idle > 0 {
		tails = v.nonReleasable.Bytes() / mib / idle
	}
	told := v.known && v.nonReleasable.Known
	switch {
	case !v.known && !v.hasSeg:
		r.Verdict = string(analysis.UndeterminedTruncated)
		r.Why = "The table is cut before the rows that tell what is allocated and reserved."
	case !failed:
		r.Verdict = "parse_only"
		r.Why = "No request has failed and none had to be retried."
	case told && share >= muchIdle && tails >= nearlyAll:
		r.Verdict = segmentTails
		r.Why = fmt.Sprintf("%s of %s reserved are idle (%.0f %%), and %s of that are the rest of segments that hold something alive: they can neither go back to the driver nor serve a request larger than the rest.",
			inMiB(idle), inMiB(all), 100*share, inMiB(tails*idle))
		r.Next = []string{"Keep small long-lived blocks out of large segments: a split limit (max_split_size_mb), expandable segments, or emptying the cache between phases."}
	case told && share >= muchIdle && tails < 0.5:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = fmt.Sprintf("%s of %s reserved are idle (%.0f %%), but only %s of that are in segments with something alive. PyTorch gives the rest back before a request fails, so this is not the state in which one did.",
			inMiB(idle), inMiB(all), 100*share, inMiB(tails*idle))
		r.Next = []string{"Take the table where the request fails, before what it was for is given up."}
	case share >= muchIdle:
		r.Verdict = string(analysis.Fragmented)
		r.Why = fmt.Sprintf("%s of %s reserved are idle (%.0f %%).", inMiB(idle), inMiB(all), 100*share)
		if v.hasSeg && v.seg.pinned > 0 && v.seg.total > 0 {
			r.Why += fmt.Sprintf(" Segments of %s are kept by %s alive in them (%.1f %%); they can neither serve a large request nor go back to the driver.",
				event.FormatBytes(v.seg.total-v.seg.free), event.FormatBytes(v.seg.active), 100*float64(v.seg.active)/float64(v.seg.total))
		}
		r.Next = []string{"Keep small long-lived blocks out of large segments: a split limit (max_split_size_mb), expandable segments, or emptying the cache between phases."}
	case share <= littleIdle:
		r.Verdict = string(analysis.Full)
		r.Why = fmt.Sprintf("%.0f of %.0f MiB reserved are allocated: there is hardly anything idle.", v.allocated, all)
		r.Next = []string{"Less must live at once, or the device must be larger."}
	default:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = fmt.Sprintf("%s of %s reserved are idle; whether the failed request would have fitted depends on its size and on what the device had free, and neither is here.", inMiB(idle), inMiB(all))
	}
	r.Row("reserved", inMiB(all))
	r.Row("idle of that", inMiB(idle))
	r.Open = append(r.Open, "The size of the request that failed is not in the table.")
}

// torchStats reads printed memory_stats().
func torchStats(st *torchlog.Stats) *reading.Reading {
	r := &reading.Reading{Kind: "pytorch-memory-stats", Line: st.Line, Name: "PyTorch's statistics"}
	f := &r.Facts
	v := tableView{}
	for _, k := range []struct{ key, name string }{
		{"allocated_bytes.all.current", "allocated_bytes"},
		{"allocated_bytes.all.peak", "allocated_peak_bytes"},
		{"reserved_bytes.all.current", "reserved_bytes"},
		{"reserved_bytes.all.peak", "reserved_peak_bytes"},
		{"active_bytes.all.current", "active_bytes"},
		{"inactive_split_bytes.all.current", "inactive_split_bytes"},
		{"requested_bytes.all.current", "requested_bytes"},
		{"allocation.all.current", "allocations"},
		{"segment.all.current", "segments"},
		{"num_ooms", "ooms"},
		{"num_alloc_retries", "retries"},
	} {
		n, ok := st.Get(k.key)
		f.IntIf(k.name, n, ok)
	}
	a, ok1 := st.Get("allocated_bytes.all.current")
	g, ok2 := st.Get("reserved_bytes.all.current")
	f.IntIf("reserved_unallocated_bytes", g-a, ok1 && ok2)
	v.known = ok1 && ok2
	v.allocated, v.reserved = float64(a)/mib, float64(g)/mib
	ooms, c1 := st.Get("num_ooms")
	retries, c2 := st.Get("num_alloc_retries")
	v.ooms, v.retries, v.counted = ooms, retries, c1 && c2
	v.judge(r)
	return r
}

// inMiB is an amount of the table, in MiB, for people.
func inMiB(n float64) string { return event.FormatBytes(int64(n * (1 << 20))) }
