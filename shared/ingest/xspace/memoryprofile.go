package xspace

import (
	"errors"
	"fmt"
	"io"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/jsontext"
	"tideline/shared/ingest/unzip"
)

// MemoryProfile is a memory_profile.json: what the profiler's page shows. Its
// lists are thinned to a thousand snapshots, so counts are not to be had from
// it, and the peaks come from the summaries.
type MemoryProfile struct {
	Zipped     bool
	Hosts      int64
	IDs        []string
	Allocators []AllocatorProfile
	space      Space // the snapshots, as memory events
}

// AllocatorProfile is the page of one allocator. Bytes.
type AllocatorProfile struct {
	ID           string
	Snapshots    int
	LifetimePeak int64
	PeakTime     int64 // picoseconds
	PeakInUse    int64
	PeakStack    int64
	PeakFree     int64
	Fragment     float64
	Capacity     int64
	Active       int // rows of the table
	Special      int // rows of no snapshot
}

// ErrNoMemoryProfile is wrapped when the JSON is something else.
var ErrNoMemoryProfile = errors.New("it is no memory_profile.json")

// ReadMemoryProfile reads a memory_profile.json, packed by gzip or not; limit
// is that of package unzip.
func ReadMemoryProfile(r io.Reader, limit int64) (*MemoryProfile, error) {
	in, zipped, err := unzip.Open(r, limit)
	if err != nil {
		return nil, fmt.Errorf("read memory profile: %w", err)
	}
	p := &MemoryProfile{Zipped: zipped, space: Space{texts: []string{""}, number: map[string]uint32{"": 0}}}
	m := memoryReader{d: jsontext.New(in), p: p}
	if err := m.object(m.top); err != nil {
		err = fmt.Errorf("read memory profile: %w", err)
		if len(p.Allocators) == 0 {
			return nil, err
		}
		return p, err
	}
	if len(p.Allocators) == 0 {
		return nil, fmt.Errorf("read memory profile: %w: it has no memoryProfilePerAllocator", ErrNoMemoryProfile)
	}
	return p, nil
}

type memoryReader struct {
	d *jsontext.Reader
	p *MemoryProfile
}

// object reads an object, member by member; member has the first token of the
// value and must read the value to its end.
func (r *memoryReader) object(member func(key string, k jsontext.Kind) error) error {
	k, err := r.d.Next()
	if err != nil {
		return err
	}
	if k != jsontext.ObjectBegin {
		return fmt.Errorf("%w: a value where an object was expected", ErrNoMemoryProfile)
	}
	return r.members(member)
}

func (r *memoryReader) members(member func(key string, k jsontext.Kind) error) error {
	for {
		k, err := r.d.Next()
		if err != nil || k == jsontext.ObjectEnd {
			return err
		}
		key := string(r.d.Bytes())
		if k, err = r.d.Next(); err != nil {
			return err
		}
		if err := member(key, k); err != nil {
			return err
		}
	}
}

func (r *memoryReader) list(k jsontext.Kind, element func(k jsontext.Kind) error) error {
	if k != jsontext.ArrayBegin {
		return r.d.Skip(k)
	}
	for {
		k, err := r.d.Next()
		if err != nil || k == jsontext.ArrayEnd {
			return err
		}
		if err := element(k); err != nil {
			return err
		}
	}
}

func (r *memoryReader) top(key string, k jsontext.Kind) error {
	switch {
	case key == "memoryProfilePerAllocator" && k == jsontext.ObjectBegin:
		return r.members(r.allocator)
	case key == "numHosts":
		r.p.Hosts, _ = r.d.Int()
	case key == "memoryIds":
		return r.list(k, func(k jsontext.Kind) error {
			if k == jsontext.Text {
				r.p.IDs = append(r.p.IDs, string(r.d.Bytes()))
			}
			return r.d.Skip(k)
		})
	}
	return r.d.Skip(k)
}

func (r *memoryReader) allocator(id string, k jsontext.Kind) error {
	if k != jsontext.ObjectBegin {
		return r.d.Skip(k)
	}
	r.p.Allocators = append(r.p.Allocators, AllocatorProfile{ID: id})
	a := &r.p.Allocators[len(r.p.Allocators)-1]
	count := func(n *int) func(jsontext.Kind) error {
		return func(k jsontext.Kind) error { *n++; return r.d.Skip(k) }
	}
	return r.members(func(key string, k jsontext.Kind) error {
		switch key {
		case "memoryProfileSnapshots":
			return r.list(k, func(k jsontext.Kind) error {
				a.Snapshots++
				return r.snapshot(id, k)
			})
		case "profileSummary":
			if k == jsontext.ObjectBegin {
				return r.members(func(key string, k jsontext.Kind) error { return r.summary(a, key, k) })
			}
		case "activeAllocations":
			return r.list(k, count(&a.Active))
		case "specialAllocations":
			return r.list(k, count(&a.Special))
		}
		return r.d.Skip(k)
	})
}

func (r *memoryReader) summary(a *AllocatorProfile, key string, k jsontext.Kind) error {
	n, _ := r.d.Int()
	switch {
	case key == "peakBytesUsageLifetime":
		a.LifetimePeak = n
	case key == "peakStatsTimePs":
		a.PeakTime = n
	case key == "memoryCapacity":
		a.Capacity = n
	case key == "peakStats" && k == jsontext.ObjectBegin:
		var m Memory
		err := r.members(func(key string, k jsontext.Kind) error { return r.stats(&m, key, k) })
		a.PeakInUse, a.PeakStack, a.PeakFree, a.Fragment = m.InUse, m.Reserved, m.Available, m.Fragmentation
		return err
	}
	return r.d.Skip(k)
}

func (r *memoryReader) stats(m *Memory, key string, k jsontext.Kind) error {
	n, _ := r.d.Int()
	switch key {
	case "stackReservedBytes":
		m.Reserved = n
	case "heapAllocatedBytes":
		m.InUse = n
	case "freeMemoryBytes":
		m.Available = n
	case "peakBytesInUse":
		m.Peak = n
	case "fragmentation":
		m.Fragmentation, _ = r.d.Float()
	}
	return r.d.Skip(k)
}

func (r *memoryReader) snapshot(id string, k jsontext.Kind) error {
	if k != jsontext.ObjectBegin {
		return r.d.Skip(k)
	}
	s := &r.p.space
	m := Memory{Group: -1, Allocator: s.put([]byte(id))}
	known := false
	err := r.members(func(key string, k jsontext.Kind) error {
		switch {
		case key == "timeOffsetPs":
			m.Time, _ = r.d.Int()
		case key == "aggregationStats" && k == jsontext.ObjectBegin:
			return r.members(func(key string, k jsontext.Kind) error { return r.stats(&m, key, k) })
		case key == "activityMetadata" && k == jsontext.ObjectBegin:
			return r.members(func(key string, k jsontext.Kind) error { return r.activity(&m, &known, key, k) })
		}
		return r.d.Skip(k)
	})
	if known {
		s.Memory = append(s.Memory, m)
	}
	return err
}

func (r *memoryReader) activity(m *Memory, known *bool, key string, k jsontext.Kind) error {
	n, _ := r.d.Int()
	s := &r.p.space
	switch key {
	case "memoryActivity":
		m.Free = string(r.d.Bytes()) == "DEALLOCATION"
		*known = m.Free || string(r.d.Bytes()) == "ALLOCATION"
	case "requestedBytes":
		m.Requested = n
	case "allocationBytes":
		m.Allocated = n
	case "address":
		m.Address = uint64(n)
	case "tfOpName":
		m.Op = s.put(r.d.Bytes())
	case "stepId":
		m.Step, m.Group = n, n
	case "regionType":
		m.Region = s.put(r.d.Bytes())
	case "tensorShape":
		m.Shape = s.put(r.d.Bytes())
	}
	return r.d.Skip(k)
}

// Emit tells the page as a timeline: the use of each allocator as far as the
// thinned list has it, as a series of numbers. Blocks cannot be told, since
// allocations without frees and the reverse are among what was left out.
func (p *MemoryProfile) Emit(strs *event.Strings, sink event.Sink) {
	tell := func(e event.Event) {
		e.Step = event.NoStep
		sink.Emit(&e)
	}
	for i := range p.Allocators {
		if i == maxPlaces {
			break
		}
		tell(event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(i), Text: strs.ID(event.Fields{
			{Key: "name", Value: deviceOf(p.Allocators[i].ID)}, {Key: "kind", Value: "gpu"},
		}.Encode())})
	}
	list := p.space.Sorted()
	at := map[uint32]event.DeviceID{}
	for i := range p.Allocators {
		at[p.space.number[p.Allocators[i].ID]] = event.DeviceID(min(i, maxPlaces-1))
	}
	last := int64(0)
	for i := range list {
		m := &list[i]
		last = min((m.Time-list[0].Time)/1000, 1<<58)
		name := strs.ID(p.space.Text(m.Allocator) + " in use")
		tell(event.Event{Kind: event.Sample, Time: last, Device: at[m.Allocator], Op: name, Size: m.InUse})
	}
	tell(event.Event{Kind: event.Annotation, Time: last, Text: strs.ID("The file is thinned: blocks and counts are in the *.xplane.pb beside it.")})
	tell(event.Event{Kind: event.End, Time: last, Cause: uint8(event.EndDone), Text: strs.ID("end of the profile")})
}

// Reading is what the page says.
func (p *MemoryProfile) Reading() reading.Reading {
	r := reading.Reading{Kind: "tf-memory-profile", Name: "TensorFlow memory profile", Verdict: "timeline"}
	f := &r.Facts
	f.Int("hosts", p.Hosts)
	f.Texts("allocators", p.IDs)
	var list []reading.Value
	for _, a := range p.Allocators {
		var g reading.Facts
		g.Text("allocator", a.ID)
		g.Int("snapshots", int64(a.Snapshots))
		g.Int("lifetime_peak_bytes", a.LifetimePeak)
		g.Int("window_peak_bytes_in_use", a.PeakInUse+a.PeakStack)
		g.Int("window_peak_free_bytes", a.PeakFree)
		g.Int("window_peak_time_ps", a.PeakTime)
		g.Float("fragmentation_at_window_peak", round(a.Fragment, 6))
		g.Int("capacity_bytes", a.Capacity)
		g.Int("active_rows", int64(a.Active))
		g.Int("special_rows", int64(a.Special))
		list = append(list, reading.Object(g))
		r.Row(a.ID+" peak", event.FormatBytes(a.PeakInUse+a.PeakStack)+" of "+event.FormatBytes(a.Capacity))
		r.Row(a.ID+" peak since it was made", event.FormatBytes(a.LifetimePeak))
	}
	f.Set("per_allocator", reading.List(list...))
	r.Open = append(r.Open, "The lists of this file are thinned to a thousand snapshots: counts must be taken from the *.xplane.pb beside it.")
	return r
}
