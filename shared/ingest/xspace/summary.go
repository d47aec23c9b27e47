package xspace

import (
	"slices"
	"sort"
)

// Window is what the profiled time tells of one allocator. Bytes.
type Window struct {
	Allocator     string
	Allocations   int
	Deallocations int
	Unmatched     int // frees whose allocation was before the window
	First, Last   int64
	Peak          Memory // the state at the highest use in the window, the first of equals
	MaxFragment   float64
	LifetimePeak  int64
	Capacity      int64  // the most of the window; 0 where the file does not tell it
	Varies        bool   // the capacity grew or shrank: it was what the pool had, no limit
	Fragments     bool   // the file tells of fragmentation
	Largest       Memory // allocation
	Live          int    // allocations of the window that were not freed in it
	LiveBytes     int64
	Waste         int64 // of all allocations: given beyond what was asked
	Before        int64 // in use before the first event
}

// Sorted is the file's memory events by time; the file has them by line.
func (s *Space) Sorted() []Memory {
	list := slices.Clone(s.Memory)
	sort.SliceStable(list, func(i, j int) bool { return list[i].Time < list[j].Time })
	return list
}

// Windows are the allocators' windows, by name.
func (s *Space) Windows() []Window {
	list := s.Sorted()
	at := map[uint32]int{}
	var out []Window
	open := map[uint32]map[uint64]int64{}
	for i := range list {
		m := &list[i]
		k, ok := at[m.Allocator]
		if !ok {
			k = len(out)
			at[m.Allocator] = k
			open[m.Allocator] = map[uint64]int64{}
			out = append(out, Window{Allocator: s.Text(m.Allocator), First: m.InUse, Peak: *m})
			out[k].Before = m.InUse - m.Allocated
			if m.Free {
				out[k].Before = m.InUse + m.Allocated
			}
		}
		out[k].take(m, open[m.Allocator])
	}
	for n, k := range at {
		for _, bytes := range open[n] {
			out[k].Live++
			out[k].LiveBytes += bytes
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Allocator < out[j].Allocator })
	return out
}

func (w *Window) take(m *Memory, open map[uint64]int64) {
	w.Last = m.InUse
	w.LifetimePeak = max(w.LifetimePeak, m.Peak)
	if m.HasAvailable {
		n := m.InUse + m.Available + m.Reserved
		w.Varies = w.Varies || w.Capacity > 0 && n != w.Capacity
		w.Capacity = max(w.Capacity, n)
	}
	w.Fragments = w.Fragments || m.HasFragmentation
	if m.Fragmentation > w.MaxFragment { // it is no number where nothing is free
		w.MaxFragment = m.Fragmentation
	}
	if m.InUse > w.Peak.InUse {
		w.Peak = *m
	}
	if m.Free {
		w.Deallocations++
		if _, ok := open[m.Address]; !ok {
			w.Unmatched++
		}
		delete(open, m.Address)
		return
	}
	w.Allocations++
	w.Waste += m.Allocated - m.Requested
	if m.Allocated > w.Largest.Allocated {
		w.Largest = *m
	}
	open[m.Address] = m.Allocated
}

// Traffic is all copies of one name.
type Traffic struct {
	Name     string
	Count    int
	Bytes    int64
	Duration int64 // picoseconds
}

// Rate is in GB/s, 0 where no time passed.
func (t *Traffic) Rate() float64 {
	if t.Duration <= 0 {
		return 0
	}
	return float64(t.Bytes) / float64(t.Duration) * 1000
}

// Traffic sums the copies by name, in the order of their first.
func (s *Space) Traffic() []Traffic {
	var out []Traffic
	at := map[uint32]int{}
	for i := range s.Copies {
		c := &s.Copies[i]
		k, ok := at[c.Name]
		if !ok {
			k = len(out)
			at[c.Name] = k
			out = append(out, Traffic{Name: s.Text(c.Name)})
		}
		out[k].Count++
		out[k].Bytes += c.Bytes
		out[k].Duration += c.Duration
	}
	return out
}
