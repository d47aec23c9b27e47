package xspace_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/analysis/profiler"
	"tideline/shared/export/xspace"
	"tideline/shared/ingest"
	read "tideline/shared/ingest/xspace"
)

// kept is what an allocator's events tell, counted by itself.
type kept struct {
	limit, reserved, most int64 // most in regions while blocks came and went
	inUse, peak, lifetime int64
	regions               bool
	live                  map[uint64]int64
}

// count follows the events of one input by the allocators' names.
type count struct {
	strs *event.Strings
	pool map[event.AllocatorID]*kept
	name map[event.AllocatorID]string
}

func (c *count) Emit(e *event.Event) {
	p := c.pool[e.Allocator]
	if p == nil {
		p = &kept{live: map[uint64]int64{}}
		c.pool[e.Allocator] = p
	}
	changed := false
	switch e.Kind {
	case event.AllocatorFacts:
		f, _ := event.ParseFields(c.strs.At(e.Text))
		if f.Text("within") == "" {
			c.name[e.Allocator] = f.Text("name")
		}
		p.limit, p.lifetime = e.Size, f.Int(profiler.LifetimePeak)
	case event.RegionAdd:
		p.reserved, p.regions = p.reserved+e.Size, true
	case event.RegionRemove:
		p.reserved -= e.Size
	case event.Alloc:
		p.inUse, p.live[e.Address], changed = p.inUse+e.Size, e.Size, true
	case event.Free:
		if n, ok := p.live[e.Address]; ok {
			p.inUse -= n
			delete(p.live, e.Address)
			changed = true
		}
	default:
	}
	if changed {
		p.peak = max(p.peak, p.inUse)
		p.most = max(p.most, p.reserved, p.inUse)
	}
}

// capacity is what the profile may call so: the limit, else what was reserved,
// else nothing.
func (p *kept) capacity() int64 {
	switch {
	case p.limit > 0:
		return max(p.limit, p.peak)
	case p.regions:
		return p.most
	}
	return 0
}

// TestTheExamplesKeepPeakAndCapacity: the profile of every example that has a
// timeline tells the peak and the capacity that the example's events tell, and
// says nothing of what they do not tell.
func TestTheExamplesKeepPeakAndCapacity(t *testing.T) {
	files, err := filepath.Glob("../../../examples/files/*")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	pools, without, life := 0, 0, 0
	for _, name := range files {
		if filepath.Base(name)[0] == '.' || filepath.Ext(name) == ".md" || testing.Short() && filepath.Base(name) == "llm-step.pickle.gz" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		in, err := ingest.Open(filepath.Base(name), bytes.NewReader(b), ingest.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		strs := new(event.Strings)
		c := count{strs, map[event.AllocatorID]*kept{}, map[event.AllocatorID]string{}}
		var file bytes.Buffer
		w := xspace.NewWriter(&file, strs)
		if err := in.Emit(strs, event.SinkFunc(func(e *event.Event) { c.Emit(e); w.Emit(e) })); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := read.Decode(file.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := map[string]read.Window{}
		for _, x := range s.Windows() {
			got[x.Allocator] = x
		}
		for id, pool := range c.name {
			p := c.pool[id]
			if p.peak == 0 {
				continue
			}
			pools++
			x := got[pool]
			if x.Peak.InUse != p.peak || x.Capacity != p.capacity() || x.LifetimePeak != max(p.peak, p.lifetime) || x.Fragments != p.regions {
				t.Errorf("%s, %s: peak %d, capacity %d, highest %d, fragmentation told %v; want %d, %d, %d, %v", filepath.Base(name), pool,
					x.Peak.InUse, x.Capacity, x.LifetimePeak, x.Fragments, p.peak, p.capacity(), max(p.peak, p.lifetime), p.regions)
			}
			if p.capacity() == 0 {
				without++
			}
			if p.lifetime > p.peak {
				life++
			}
		}
	}
	if pools < 10 || without < 1 || life < 1 {
		t.Errorf("%d pools, %d without a capacity, %d fuller before", pools, without, life)
	}
	t.Logf("%d pools, %d without a capacity, %d fuller before", pools, without, life)
}
