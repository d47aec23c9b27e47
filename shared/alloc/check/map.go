package check

import (
	"fmt"

	"tideline/protocol/event"
)

// outOfMemory holds the failed request against what the allocator held: its
// chunk map must tell the same blocks and regions as the events before it.
func (j *Judge) outOfMemory(e *event.Event) string {
	s := j.space(e)
	if e.Size < e.Requested {
		return fmt.Sprintf("the rounded size is below the %d bytes requested", e.Requested)
	}
	if j.text == nil || e.Text == 0 {
		return ""
	}
	m, err := event.ParseChunkMap(j.text.At(e.Text))
	if err != nil {
		return err.Error()
	}
	return s.compare(m)
}

// CompareMap holds a chunk map against the events so far.
func (j *Judge) CompareMap(d event.DeviceID, a event.AllocatorID, m event.ChunkMap) error {
	s := j.space(&event.Event{Device: d, Allocator: a})
	if text := s.compare(m); text != "" {
		return fmt.Errorf("chunk map of device %d, allocator %d: %s", d, a, text)
	}
	return nil
}

func (s *space) compare(m event.ChunkMap) string {
	live, regions := 0, 0
	for _, r := range m {
		if text := s.compareRegion(r, &live); text != "" {
			return text
		}
		for i := after(s.regions, r.Address); i < len(s.regions) && s.regions[i].addr < r.Address+uint64(r.Size); i++ {
			regions++
		}
	}
	if live != len(s.live) {
		return fmt.Sprintf("the map has %d blocks in use, there are %d", live, len(s.live))
	}
	if regions != len(s.regions) && s.rules.Page == 0 {
		return fmt.Sprintf("the map covers %d regions, there are %d", regions, len(s.regions))
	}
	return ""
}

func (s *space) compareRegion(r event.Region, live *int) string {
	if r.Size <= 0 || !s.inside(span{addr: r.Address, size: r.Size}) {
		return fmt.Sprintf("no regions cover the mapped one at %x of %d bytes", r.Address, r.Size)
	}
	at := r.Address
	for _, c := range r.Chunks {
		if c.Address != at || c.Size <= 0 {
			return fmt.Sprintf("a chunk of %d bytes at %x follows on one that ends at %x", c.Size, c.Address, at)
		}
		at += uint64(c.Size)
		b := span{addr: c.Address, size: c.Size}
		if !c.InUse {
			if o, hit := overlap(s.live, b); hit {
				return fmt.Sprintf("the chunk at %x is called free, but the block at %x is in use", c.Address, o.addr)
			}
			continue
		}
		*live++
		i := after(s.live, c.Address)
		if i == len(s.live) || s.live[i].addr != c.Address || s.live[i].size != c.Size {
			return fmt.Sprintf("no block in use matches the chunk at %x of %d bytes", c.Address, c.Size)
		}
	}
	if at != r.Address+uint64(r.Size) {
		return fmt.Sprintf("the chunks of the region at %x end at %x", r.Address, at)
	}
	return ""
}
