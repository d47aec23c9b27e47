package blame

import (
	"sort"

	"tideline/protocol/event"
	"tideline/shared/analysis/pins"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/snapshot"
)

// smallRequest is up to where PyTorch serves requests from segments of 2 MiB.
const smallRequest = 1 << 20

// spot is where PyTorch's allocator keeps idle memory: what is idle in one cannot
// serve a request to another.
type spot struct {
	device int
	stream uint16
	pool   uint16 // 0 is the default one
	large  bool
}

// rest is what is idle in a spot, in bytes.
type rest struct {
	spot
	idle       int64
	releasable int64 // of it: in segments without a live block
	largest    int64 // block
}

// mostSpots bounds the spots that a report lists, mostPins the rows of pins.
const (
	mostSpots = 16
	mostPins  = 3
)

// idle says of a snapshot where its idle memory is, what of it a request that
// failed could not use, and which blocks keep it.
func idle(s *snapshot.Snapshot, r *reading.Reading) {
	if _, told := r.Facts.Get("idle_by_pool"); told {
		return
	}
	spots, m, stacks := idleSpots(s)
	list := make([]reading.Value, 0, min(len(spots), mostSpots))
	for i := range spots[:min(len(spots), mostSpots)] {
		x := &spots[i]
		var f reading.Facts
		f.Int("device", int64(x.device))
		f.Int("stream", s.Stream(x.stream))
		f.Text("pool", x.word())
		f.Int("idle_bytes", x.idle)
		f.Int("releasable_bytes", x.releasable)
		f.Int("largest_bytes", x.largest)
		list = append(list, reading.Object(f))
	}
	r.Facts.Set("idle_by_pool", reading.List(list...))
	stranded(s, spots, r)
	keeping := pins.Of(m)
	for i := range keeping[:min(len(keeping), reading.MaxPins)] {
		keeping[i].Holder = s.Blame(stacks[keeping[i].Largest])
	}
	r.Facts.Set("pinned", reading.Pins(keeping))
	var reserved int64
	for i := range m {
		reserved += m[i].Size
	}
	if pins.Idle(keeping) < reserved/50 {
		return
	}
	for i := range keeping[:min(len(keeping), mostPins)] {
		label := ""
		if i == 0 {
			label = "segments kept by few bytes"
		}
		r.Row(label, keeping[i].Line())
	}
}

// idleSpots are the spots that hold idle memory, the most first, and the segments
// with the stacks of their live blocks.
func idleSpots(s *snapshot.Snapshot) (out []rest, m event.ChunkMap, stacks map[uint64]uint32) {
	stacks = map[uint64]uint32{}
	for i := range s.Segments() {
		g := &s.Segments()[i]
		k := spot{g.Device, g.Stream, g.Pool, g.Large}
		region := event.Region{Address: g.Address, Size: g.Total}
		s.Blocks(g, func(b *snapshot.Block) {
			live := b.State != snapshot.Inactive
			region.Chunks = append(region.Chunks, event.Chunk{Address: b.Address, Size: b.Size, InUse: live})
			if live {
				stacks[b.Address] = b.Stack
				return
			}
			n := 0 // there are few: one a stream and pool
			for n < len(out) && out[n].spot != k {
				n++
			}
			if n == len(out) {
				out = append(out, rest{spot: k})
			}
			out[n].idle += b.Size
			out[n].largest = max(out[n].largest, b.Size)
			if g.Active == 0 {
				out[n].releasable += b.Size
			}
		})
		if !g.Expandable { // its parts can be given back one by one
			m = append(m, region)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].idle > out[j].idle })
	return out, m, stacks
}

func (x *spot) word() string {
	switch {
	case x.pool != 0:
		return "private"
	case x.large:
		return "large"
	default:
		return "small"
	}
}

// stranded says of the last request that failed which idle memory it could not
// use: what lies in segments without a live block was given back before.
func stranded(s *snapshot.Snapshot, spots []rest, r *reading.Reading) {
	failed, device := lastFailure(s)
	if failed == nil {
		r.Facts.Null("stranded")
		return
	}
	var within, stream, pool int64
	for i := range spots {
		x := &spots[i]
		kept := x.idle - x.releasable
		switch {
		case x.device != device:
		case x.pool != failed.Pool || x.large != (failed.Size > smallRequest):
			pool += kept
		case x.stream != failed.Stream:
			stream += kept
		default:
			within += kept
		}
	}
	var f reading.Facts
	f.Int("requested_bytes", failed.Size)
	f.Int("within_reach_bytes", within)
	f.Int("other_stream_bytes", stream)
	f.Int("other_pool_bytes", pool)
	r.Facts.Set("stranded", reading.Object(f))
	r.Row("idle within reach of the request that failed", event.FormatBytes(within))
	if stream > 0 {
		r.Row("idle in another stream", event.FormatBytes(stream))
	}
	if pool > 0 {
		r.Row("idle in another pool", event.FormatBytes(pool))
	}
}

// lastFailure is the last request that failed, nil for none, and its device.
func lastFailure(s *snapshot.Snapshot) (last *snapshot.Event, device int) {
	for _, t := range s.Traces {
		for i := t.Len() - 1; i >= 0; i-- {
			if e := s.Event(t, i); e.Action == snapshot.OOM {
				if last == nil || e.Time > last.Time {
					last, device = e, t.Device
				}
				break
			}
		}
	}
	return last, device
}
