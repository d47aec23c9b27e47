package snapshot

import (
	"fmt"
	"slices"
	"sort"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

// Totals are sums over the segments of one device, or of all.
type Totals struct {
	Device    int // -1 for all of several
	Segments  int
	Blocks    int
	Large     int // segments
	Reserved  int64
	Allocated int64
	Active    int64
	// Requested is -1 where the file does not say it of every block.
	Requested int64
	Inactive  int64 // bytes
	Idle      int   // inactive blocks
	LargestIdle,
	LargestActive int64 // bytes of one block
	Releasable      int   // segments without an active block
	ReleasableBytes int64 // what emptying the cache gives back
	PrivateBytes    int64 // reserved by private pools
	ExpandableBytes int64
}

// known adds two sums that are -1 when they are not known.
func known(a, b int64) int64 {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

// Waste is what rounding took: bytes in use that nobody asked for.
func (t *Totals) Waste() int64 { return t.Allocated - t.Requested }

func (t *Totals) add(s *Snapshot, g *Segment) {
	t.Segments++
	t.Blocks += g.n
	if g.Large {
		t.Large++
	}
	t.Reserved += g.Total
	t.Allocated += g.Allocated
	t.Active += g.Active
	t.Requested = known(t.Requested, g.Requested)
	if g.Active == 0 {
		t.Releasable++
		t.ReleasableBytes += g.Total
	}
	if g.Pool != 0 {
		t.PrivateBytes += g.Total
	}
	if g.Expandable {
		t.ExpandableBytes += g.Total
	}
	s.Blocks(g, func(b *Block) {
		if b.State != Inactive {
			t.LargestActive = max(t.LargestActive, b.Size)
			return
		}
		t.Idle++
		t.Inactive += b.Size
		t.LargestIdle = max(t.LargestIdle, b.Size)
	})
}

// Totals sums the segments of each device that has any, ascending.
func (s *Snapshot) Totals() []Totals {
	var list []Totals
	for i := range s.Segments() {
		g := &s.Segments()[i]
		at := slices.IndexFunc(list, func(t Totals) bool { return t.Device == g.Device })
		if at < 0 {
			list = append(list, Totals{Device: g.Device})
			at = len(list) - 1
		}
		list[at].add(s, g)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Device < list[j].Device })
	return list
}

func sum(list []Totals) Totals {
	all := Totals{Device: -1}
	if len(list) == 1 {
		return list[0]
	}
	for _, t := range list {
		all.Segments += t.Segments
		all.Blocks += t.Blocks
		all.Large += t.Large
		all.Reserved += t.Reserved
		all.Allocated += t.Allocated
		all.Active += t.Active
		all.Requested = known(all.Requested, t.Requested)
		all.Inactive += t.Inactive
		all.Idle += t.Idle
		all.LargestIdle = max(all.LargestIdle, t.LargestIdle)
		all.LargestActive = max(all.LargestActive, t.LargestActive)
		all.Releasable += t.Releasable
		all.ReleasableBytes += t.ReleasableBytes
		all.PrivateBytes += t.PrivateBytes
		all.ExpandableBytes += t.ExpandableBytes
	}
	return all
}

func (t *Totals) facts(f *reading.Facts) {
	f.IntIf("device", int64(t.Device), t.Device >= 0)
	f.Int("segments", int64(t.Segments))
	f.Int("blocks", int64(t.Blocks))
	f.Int("reserved_bytes", t.Reserved)
	f.Int("allocated_bytes", t.Allocated)
	f.Int("active_bytes", t.Active)
	f.IntIf("requested_bytes", t.Requested, t.Requested >= 0)
	f.IntIf("rounding_waste_bytes", t.Waste(), t.Requested >= 0)
	f.Int("inactive_blocks", int64(t.Idle))
	f.Int("inactive_bytes", t.Inactive)
	f.Int("largest_inactive_block_bytes", t.LargestIdle)
	f.Int("releasable_segments", int64(t.Releasable))
	f.Int("releasable_bytes", t.ReleasableBytes)
	f.Int("non_releasable_bytes", t.Inactive-t.ReleasableBytes)
	f.Int("largest_active_block_bytes", t.LargestActive)
	f.Int("private_pool_bytes", t.PrivateBytes)
	f.Int("expandable_bytes", t.ExpandableBytes)
	var types reading.Facts
	for _, k := range []struct {
		name string
		n    int
	}{{"large", t.Large}, {"small", t.Segments - t.Large}} {
		if k.n > 0 {
			types.Int(k.name, int64(k.n))
		}
	}
	f.Set("segment_types", reading.Object(types))
}

// traceFacts counts what was recorded. The times are null in files without.
func (s *Snapshot) traceFacts(f *reading.Facts) {
	var count [numActions]int64
	var total, first, last, skipped int64
	for _, t := range s.Traces {
		total += int64(t.n)
		for i := range t.n {
			e := s.Event(t, i)
			count[e.Action]++
			if e.Time == 0 {
				continue
			}
			if first == 0 || e.Time < first {
				first = e.Time
			}
			last = max(last, e.Time)
		}
	}
	var actions reading.Facts
	for a, n := range count {
		if n > 0 {
			actions.Int(Action(a).String(), n)
		}
	}
	skipped = int64(s.skipped)
	f.Int("trace_events", total)
	f.Set("trace_actions", reading.Object(actions))
	f.IntIf("trace_first_time_us", first, first != 0)
	f.IntIf("trace_last_time_us", last, first != 0)
	f.Int("trace_ooms", count[OOM])
	f.Int("skipped_entries", skipped)
}

// settingKeys are the names of the top level of allocator_settings.
func (s *Snapshot) settingKeys() []string {
	var keys []string
	for _, f := range s.Settings {
		name := f.Name
		if i := slices.Index([]byte(name), '.'); i > 0 {
			name = name[:i]
		}
		if !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys
}

// Reading is what the file says about the memory of its process.
func (s *Snapshot) Reading() reading.Reading {
	list := s.Totals()
	all := sum(list)
	r := reading.Reading{Kind: "pytorch-snapshot", Name: "PyTorch memory snapshot", Verdict: "timeline"}
	f := &r.Facts
	f.Int("pickle_protocol", int64(s.Protocol))
	f.Bool("gzip", s.Zipped)
	f.Texts("top_level_keys", s.Keys)
	all.facts(f)
	if len(list) > 1 {
		each := make([]reading.Value, len(list))
		for i := range list {
			var d reading.Facts
			list[i].facts(&d)
			each[i] = reading.Object(d)
		}
		f.Set("devices", reading.List(each...))
	} else {
		f.Null("devices")
	}
	s.traceFacts(f)
	f.Texts("allocator_settings_keys", s.settingKeys())
	f.IntIf("external_annotations", int64(len(s.Annotations)), slices.Contains(s.Keys, "external_annotations"))
	s.words(&r, &all)
	return r
}

func (s *Snapshot) words(r *reading.Reading, t *Totals) {
	bytes := event.FormatBytes
	share := 0.0
	if t.Reserved > 0 {
		share = 100 * float64(t.Active) / float64(t.Reserved)
	}
	r.Row("reserved", bytes(t.Reserved))
	r.Row("active", fmt.Sprintf("%s (%.0f %%)", bytes(t.Active), share))
	r.Row("released by emptying the cache", fmt.Sprintf("%s in %d of %d segments", bytes(t.ReleasableBytes), t.Releasable, t.Segments))
	r.Row("idle in segments in use", bytes(t.Inactive-t.ReleasableBytes))
	r.Row("largest idle block", bytes(t.LargestIdle))
	r.Row("largest active block", bytes(t.LargestActive))
	if t.Requested >= 0 {
		r.Row("rounding", bytes(t.Waste()))
	} else {
		r.Open = append(r.Open, "The file does not say what was asked for: how much rounding takes is not known.")
	}
	r.Why = fmt.Sprintf("%s of %s reserved are active. %s in %d of %d segments can be returned to the driver; %s are idle inside segments in use.",
		bytes(t.Active), bytes(t.Reserved), bytes(t.ReleasableBytes), t.Releasable, t.Segments, bytes(t.Inactive-t.ReleasableBytes))
	if s.Cut != "" {
		r.Open = append(r.Open, "The file is cut: sums and counts are of what is there.")
	}
	events, timed, stacks := 0, false, s.Stacks() > 0
	for _, tr := range s.Traces {
		events += tr.n
		timed = timed || tr.n > 0 && s.Event(tr, 0).Time != 0
	}
	switch {
	case events == 0:
		r.Open = append(r.Open, "The file has no trace: who allocated what, and when, is not known.")
	case !timed:
		r.Open = append(r.Open, "The events have no time stamps: the order is known, the time between them is not.")
	}
	if !stacks {
		r.Open = append(r.Open, "The file has no stacks: the code behind a block is not known.")
	}
}
