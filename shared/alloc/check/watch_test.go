package check_test

import (
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/stream"
)

// bump hands out addresses upwards and can be told to do one thing wrong.
type bump struct {
	fault string
	obs   alloc.Observer
	next  uint64
	live  map[uint64]alloc.Block
	stats alloc.Stats
	last  uint64 // freed last
}

const bumpBase = 1 << 20

func newBump(fault string, obs alloc.Observer) *bump {
	obs.RegionTaken(bumpBase, 1<<30, 1<<30)
	b := &bump{fault: fault, obs: obs, next: bumpBase, live: map[uint64]alloc.Block{}}
	b.stats.Pool, b.stats.PeakPool = 1<<30, 1<<30
	return b
}

func (b *bump) Name() string { return "bump" }
func (b *bump) Limit() int64 { return 0 }

func (b *bump) Allocate(r alloc.Request) (alloc.Block, bool) {
	if r.Bytes == 0 {
		if b.fault == "block of nothing" {
			return alloc.Block{Address: 5}, false
		}
		return alloc.Block{}, false
	}
	align := max(r.Alignment, 256)
	if b.fault == "alignment" {
		align = 256
	}
	addr := (b.next + uint64(align) - 1) &^ uint64(align-1)
	size := (r.Bytes + 255) &^ 255
	b.next = addr + uint64(size)
	switch b.fault {
	case "overlap":
		b.next -= 256
	case "outside":
		addr += 1 << 40
	case "reuse at once":
		if b.last != 0 && size == 256 && b.last%uint64(align) == 0 {
			addr, b.last = b.last, 0
		}
	}
	x := alloc.Block{Address: addr, Size: size, Requested: r.Bytes, ID: 1}
	if b.fault == "requested" {
		x.Requested++
	}
	b.live[addr] = x
	b.stats.NumAllocs++
	b.stats.InUse += size
	b.stats.PeakInUse = max(b.stats.PeakInUse, b.stats.InUse)
	return x, true
}

func (b *bump) Free(addr uint64) error {
	x, ok := b.live[addr]
	switch {
	case addr == 0 && b.fault != "nil":
		return nil
	case !ok && b.fault == "unknown":
		return nil
	case !ok:
		if b.fault == "count" {
			b.stats.NumAllocs--
		}
		return errors.New("no block")
	}
	delete(b.live, addr)
	if b.fault == "twice" {
		b.live[addr] = x
	}
	if b.fault != "statistics" {
		b.stats.InUse -= x.Size
	}
	if x.Size == 256 {
		b.last = addr
	}
	return nil
}

func (b *bump) Stats() alloc.Stats {
	s := b.stats
	_, _, _, s.LargestFree = b.ChunkMap().Totals()
	return s
}
func (b *bump) ClearStats() {}

func (b *bump) ChunkMap() event.ChunkMap {
	r := event.Region{Address: bumpBase, Size: 1 << 30}
	at := uint64(bumpBase)
	for at < bumpBase+1<<30 {
		next, found := uint64(bumpBase+1<<30), alloc.Block{}
		for addr, x := range b.live {
			if addr >= at && addr < next {
				next, found = addr, x
			}
		}
		if next > at {
			r.Chunks = append(r.Chunks, event.Chunk{Address: at, Size: int64(next - at)})
		}
		if found.Size == 0 {
			break
		}
		r.Chunks = append(r.Chunks, event.Chunk{Address: next, Size: found.Size, Requested: found.Requested, InUse: true})
		at = next + uint64(found.Size)
	}
	if b.fault == "map" && len(r.Chunks) > 1 {
		r.Chunks[0].InUse = !r.Chunks[0].InUse
	}
	return event.ChunkMap{r}
}

func (b *bump) Close() {
	if b.fault != "close" {
		b.obs.RegionGiven(bumpBase, 1<<30)
	}
}

func TestAWatchCatchesEveryFault(t *testing.T) {
	for fault, want := range map[string]string{
		"":                 "",
		"alignment":        "is not aligned",
		"overlap":          "lies over",
		"outside":          "inside of a region",
		"requested":        "got a block for",
		"block of nothing": "got the block",
		"nil":              "address 0 stands for no block",
		"unknown":          "is taken back twice",
		"twice":            "is taken back twice",
		"count":            "changed the statistics",
		"statistics":       "are not what",
		"map":              "the chunk at 100000",
		"close":            "the driver misses",
		"reuse at once":    "which is not behind it",
	} {
		t.Run(fault, func(t *testing.T) {
			var order stream.Order
			s := check.Subject{
				Rules: check.Rules{Granule: 256}, Aligned: true, Order: &order,
				New: func(obs alloc.Observer) (alloc.Allocator, error) { return newBump(fault, obs), nil },
			}
			if fault != "reuse at once" {
				s.Order = nil
			}
			var err error
			for seed := uint64(0); seed < 30 && err == nil; seed++ {
				order = stream.Order{}
				err = life(seed, s)
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// life is a random life of small blocks, so that the heap does not run out.
func life(seed uint64, s check.Subject) error {
	return check.Life(small{check.Seeded(seed, 60)}, s)
}

type small struct{ d check.Draw }

func (s small) More() bool { return s.d.More() }

func (s small) Draw(n int) int {
	x := s.d.Draw(n)
	if n > 1<<12 && n&(n-1) == 0 {
		x %= 700
	}
	return x
}

func TestPagesOfAMappedRegionGoInPart(t *testing.T) {
	const base, page = 0x100000, 4096
	for want, events := range map[string][]ev{
		"":                            {region(base, 4*page), taken(base, 256, 1), gone(base+page, 2*page), gone(base+3*page, page), freed(base, 256), gone(base, page)},
		"not made of whole regions":   {region(base, 4*page), gone(base+page/2, page)},
		"still in use":                {region(base, 4*page), taken(base+page, 256, 1), gone(base+page, page)},
		"does not lie inside":         {region(base, 4*page), gone(base+page, page), taken(base+page, 256, 1)},
		"lies over the one at 100000": {region(base, 4*page), gone(base+page, page), region(base+page, page), region(base, page)},
	} {
		j := check.New(func(event.DeviceID, event.AllocatorID) check.Rules { return check.Rules{Granule: 256, Page: page} }, nil)
		for _, e := range events {
			j.Emit(&e)
		}
		err := j.Err()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("verdict %v, want %q", err, want)
		}
	}
}
