package xspace

import (
	"fmt"
	"math"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/profiler"
	"tideline/shared/analysis/reading"
)

func round(f float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(f*p) / p
}

func (w *Window) facts(s *Space) reading.Facts {
	var f reading.Facts
	f.Text("allocator", w.Allocator)
	f.Int("allocations", int64(w.Allocations))
	f.Int("deallocations", int64(w.Deallocations))
	f.Int("deallocations_without_seen_allocation", int64(w.Unmatched))
	f.Int("first_bytes_in_use", w.First)
	f.Int("last_bytes_in_use", w.Last)
	f.Int("bytes_before_window", w.Before)
	f.Int("window_peak_bytes_in_use", w.Peak.InUse)
	f.IntIf("window_peak_free_bytes", w.Peak.Available, w.Peak.HasAvailable)
	f.Int("window_peak_time_ps", w.Peak.Time)
	f.FloatIf("fragmentation_at_window_peak", round(w.Peak.Fragmentation, 6), w.Peak.HasFragmentation)
	f.FloatIf("max_fragmentation", round(w.MaxFragment, 6), w.Fragments)
	f.Int("lifetime_peak_bytes", w.LifetimePeak)
	f.IntIf("capacity_bytes", w.Capacity, w.Capacity > 0)
	f.IntIf("largest_allocation_bytes", w.Largest.Allocated, w.Allocations > 0)
	f.Text("largest_allocation_op", s.Text(w.Largest.Op))
	f.Text("largest_allocation_shape", s.Text(w.Largest.Shape))
	f.Int("still_live_at_end", int64(w.Live))
	f.Int("still_live_bytes", w.LiveBytes)
	f.Int("internal_waste_bytes", w.Waste)
	return f
}

// Reading is what the profile says about memory and copies.
func (s *Space) Reading() reading.Reading {
	r := reading.Reading{Kind: "tf-xspace", Name: "TensorFlow or JAX profile", Verdict: "timeline"}
	f := &r.Facts
	planes := make([]reading.Value, len(s.Planes))
	for i := range s.Planes {
		var p reading.Facts
		p.Text("name", s.Planes[i].Name)
		p.Int("lines", int64(len(s.Planes[i].Lines)))
		p.Int("events", int64(s.Planes[i].Events()))
		planes[i] = reading.Object(p)
	}
	f.Set("planes", reading.List(planes...))
	windows := s.Windows()
	var names []string
	gpu, pinned := -1, -1
	all := make([]reading.Value, len(windows))
	for i := range windows {
		names = append(names, windows[i].Allocator)
		switch {
		case strings.Contains(windows[i].Allocator, "host"):
			pinned = max(pinned, i)
		case gpu < 0 && !ofHost(windows[i].Allocator):
			gpu = i
		}
		all[i] = reading.Object(windows[i].facts(s))
	}
	f.Texts("allocators", names)
	for _, part := range []struct {
		name string
		i    int
	}{{"gpu", gpu}, {"host_pinned", pinned}} {
		if part.i < 0 {
			f.Null(part.name)
			continue
		}
		f.Set(part.name, all[part.i])
	}
	f.Set("per_allocator", reading.List(all...))
	s.copyFacts(&r)
	s.words(&r, windows, gpu)
	return r
}

func (s *Space) copyFacts(r *reading.Reading) {
	var copies reading.Facts
	rate, known := 0.0, false
	for _, t := range s.Traffic() {
		var c reading.Facts
		c.Int("count", int64(t.Count))
		c.Int("bytes", t.Bytes)
		c.Int("duration_ps", t.Duration)
		copies.Set(t.Name, reading.Object(c))
		if t.Name == "MemcpyH2D" && t.Duration > 0 {
			rate, known = t.Rate(), true
		}
		r.Row(t.Name, fmt.Sprintf("%d copies, %s in %.3f ms, %.2f GB/s", t.Count, event.FormatBytes(t.Bytes), float64(t.Duration)/1e9, t.Rate()))
	}
	r.Facts.Set("memcpy", reading.Object(copies))
	r.Facts.FloatIf("h2d_bandwidth_gb_s", round(rate, 3), known)
}

func (s *Space) words(r *reading.Reading, windows []Window, gpu int) {
	if len(windows) == 0 {
		s.withoutMemory(r)
		return
	}
	w := &windows[max(gpu, 0)]
	size := event.FormatBytes
	r.Row("allocator", w.Allocator)
	r.Row("peak in the window", size(w.Peak.InUse))
	r.Row("peak since the allocator was made", size(w.LifetimePeak))
	of := ""
	if w.Capacity > 0 {
		r.Row("capacity", size(w.Capacity))
		of = " of " + size(w.Capacity)
	} else {
		r.Open = append(r.Open, "What the allocator had in all is not in the file.")
	}
	r.Row("largest allocation", size(w.Largest.Allocated)+" "+s.Text(w.Largest.Op))
	r.Why = fmt.Sprintf("In the profiled time %s holds at most %s%s; the highest since it was made is %s.%s",
		w.Allocator, size(w.Peak.InUse), of, size(w.LifetimePeak), w.fragmentation())
	if w.LifetimePeak > w.Peak.InUse {
		r.Open = append(r.Open, "The highest use was before the profile began: what held it is not in the file.")
	}
	if w.Unmatched > 0 {
		r.Open = append(r.Open, fmt.Sprintf("%d blocks that were freed came from before the profile: their ops are not known.", w.Unmatched))
	}
}

// fragmentation says how the free memory lies, as far as the file tells.
func (w *Window) fragmentation() string {
	switch {
	case !w.Fragments:
		return ""
	case !w.Peak.HasFragmentation:
		return fmt.Sprintf(" Fragmentation is %.4f at most.", w.MaxFragment)
	case math.IsNaN(w.Peak.Fragmentation):
		return fmt.Sprintf(" At the peak nothing of the pool is free; fragmentation is %.4f at most.", w.MaxFragment)
	}
	return fmt.Sprintf(" Fragmentation is %.4f at the peak and %.4f at most.", w.Peak.Fragmentation, w.MaxFragment)
}

// withoutMemory says what there is instead, and of a program on a CPU how its
// allocations get into a profile.
func (s *Space) withoutMemory(r *reading.Reading) {
	r.Open = append(r.Open, "The profile holds no memory events: it was taken without them, or of a device that writes none.")
	if !s.hostOnly {
		return
	}
	steps := 0
	for i := range s.Spans {
		if s.Spans[i].Step {
			steps++
		}
	}
	r.Why = fmt.Sprintf("A program on the CPU: %d ops, %d marked steps, and nothing of an allocator.", len(s.Spans)-steps, steps)
	r.Next = append(r.Next, "TensorFlow records its memory on a CPU with TF_CPU_ALLOCATOR_USE_BFC=1 in the program's environment.",
		"JAX tells of it with jax.profiler.save_device_memory_profile(FILE), which tideline explain reads.")
}

// ProfilerEvents are the memory events as the profiler's own page takes them,
// in the file's order.
func (s *Space) ProfilerEvents() []profiler.Event {
	out := make([]profiler.Event, len(s.Memory))
	for i := range s.Memory {
		m := &s.Memory[i]
		out[i] = profiler.Event{
			Time: m.Time, Memory: s.Text(m.Allocator), Free: m.Free, Step: m.Group,
			Stack: m.Reserved, Heap: m.InUse, Available: m.Available, Fragmentation: m.Fragmentation, PeakInUse: m.Peak,
			NoAvailable: !m.HasAvailable, NoFragmentation: !m.HasFragmentation,
			Requested: m.Requested, Allocated: m.Allocated, Address: m.Address,
			Op: s.Text(m.Op), Region: s.Text(m.Region), DataType: DataType(m.DataType), Shape: s.Text(m.Shape),
		}
	}
	return out
}

var dataTypes = [...]string{
	"INVALID", "float", "double", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool",
	"qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "resource",
	"variant", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn",
}

// DataType is the name of a number of TensorFlow's DataType; a reference type
// has the name of what it refers to.
func DataType(n int32) string {
	if n >= 100 {
		n -= 100
	}
	if n < 0 || int(n) >= len(dataTypes) {
		return "type " + fmt.Sprint(n)
	}
	return dataTypes[n]
}
