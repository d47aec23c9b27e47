package synthetic

import (
	"fmt"
	"io"
	"strconv"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/torch/random"
)

// Shape is what a snapshot is like. Zero fields mean the defaults.
type Shape struct {
	Requests int // allocations and frees; 0 means 10000
	Live     int // blocks alive at a time; 0 means 2000
	Devices  int // 0 means 1; all but the first have an empty trace
	Stacks   int // different stacks; 0 means 500
	Depth    int // frames of a stack; 0 means 24
	Protocol int // of the pickle, 2 to 5; 0 means 4
	Keep     int // trace entries that the ring keeps; 0 means all
	NoTimes  bool
	Settings string // of the allocator, such as expandable_segments:True
	Most     int64  // bytes of the largest request; 0 means 64 MiB
	Seed     uint64
}

func (s Shape) complete() (Shape, error) {
	for _, d := range []struct {
		field *int
		value int
	}{{&s.Requests, 10_000}, {&s.Live, 2000}, {&s.Devices, 1}, {&s.Stacks, 500}, {&s.Depth, 24}, {&s.Protocol, 4}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if s.Protocol < 2 || s.Protocol > 5 {
		return s, fmt.Errorf("synthetic snapshot: protocol %d, expected 2 to 5", s.Protocol)
	}
	return s, nil
}

// Write makes a snapshot and returns how many entries its trace has. Equal
// shapes give equal bytes.
func Write(w io.Writer, s Shape) (entries int, err error) {
	if s, err = s.complete(); err != nil {
		return 0, err
	}
	settings, err := torch.ParseSettings(s.Settings)
	if err != nil {
		return 0, fmt.Errorf("synthetic snapshot: %w", err)
	}
	ops, err := random.Make(random.Shape{Ops: s.Requests, Live: s.Live, Most: s.Most, Seed: s.Seed})
	if err != nil {
		return 0, err
	}
	r := &recorder{keep: s.Keep, requests: s.Requests}
	a, err := torch.New(torch.NewDevice(alloc.NewCard(0), 0x7f0000000000), torch.Options{Settings: settings, Tracer: r})
	if err != nil {
		return 0, err
	}
	if err := live(a, &ops); err != nil {
		return 0, err
	}
	f := file{Shape: s, pickler: newPickler(w, s.Protocol), settings: settings}
	f.write(a.Snapshot(), r.kept())
	return len(r.kept()), f.finish()
}

func live(a *torch.Allocator, t *random.Trace) error {
	slots := make([]uint64, t.Slots)
	for _, op := range t.Ops {
		if op.Bytes == 0 {
			if err := a.Free(slots[op.Slot]); err != nil {
				return err
			}
			slots[op.Slot] = 0
			continue
		}
		b, ok := a.AllocateOn(torch.Request{Bytes: op.Bytes, Stream: torch.Stream(op.Stream)})
		if !ok {
			return fmt.Errorf("synthetic snapshot: %w", a.Failure())
		}
		slots[op.Slot] = b.Address
	}
	return nil
}

type recorder struct {
	all            []torch.TraceEntry
	keep, requests int
}

// Trace implements torch.Tracer.
func (r *recorder) Trace(e torch.TraceEntry) {
	if r.all == nil {
		r.all = make([]torch.TraceEntry, 0, 2*r.requests)
	}
	r.all = append(r.all, e)
}

func (r *recorder) kept() []torch.TraceEntry {
	if r.keep > 0 && len(r.all) > r.keep {
		return r.all[len(r.all)-r.keep:]
	}
	return r.all
}

type file struct {
	Shape
	*pickler
	settings torch.Settings
	stacks   []uint32 // memo numbers, 0 before a stack was written
	frames   []uint32
}

func (f *file) write(segments []torch.SnapshotSegment, trace []torch.TraceEntry) {
	f.stacks, f.frames = make([]uint32, f.Stacks), make([]uint32, f.Stacks*3+f.Depth)
	f.dict(func() {
		f.text("segments")
		f.list(len(segments), func(i int) { f.segment(&segments[i]) })
		f.text("device_traces")
		f.list(f.Devices, func(d int) {
			if d > 0 {
				f.list(0, nil)
				return
			}
			f.list(len(trace), func(i int) { f.entry(i, &trace[i]) })
		})
		f.text("allocator_settings")
		f.dict(func() {
			f.text("PYTORCH_CUDA_ALLOC_CONF")
			f.text(f.Settings)
			f.text("expandable_segments")
			f.boolean(f.settings.Expandable)
			f.key("max_split_size", -1)
		})
	})
}

func (f *file) segment(s *torch.SnapshotSegment) {
	f.dict(func() {
		f.key("device", int64(s.Device))
		f.key("address", int64(s.Address))
		f.key("total_size", s.Total)
		f.key("allocated_size", s.Allocated)
		f.key("active_size", s.Active)
		f.key("requested_size", s.Requested)
		f.key("stream", int64(s.Stream))
		f.text("segment_type")
		f.text(s.Type())
		f.text("segment_pool_id")
		f.pair(int64(s.Pool.A), int64(s.Pool.B))
		f.text("is_expandable")
		f.boolean(s.Expandable)
		f.text("frames")
		f.stack(int(s.Address>>21) % f.Stacks)
		f.text("blocks")
		f.list(len(s.Blocks), func(i int) { f.block(&s.Blocks[i]) })
	})
}

func (f *file) block(b *torch.SnapshotBlock) {
	f.dict(func() {
		f.key("address", int64(b.Address))
		f.key("size", b.Size)
		f.key("requested_size", b.Requested)
		f.text("state")
		f.text(b.State.String())
		f.text("frames")
		f.stack(int(b.Requested) % f.Stacks)
	})
}

func (f *file) entry(i int, e *torch.TraceEntry) {
	f.dict(func() {
		f.text("action")
		f.text(e.Action.String())
		if e.Action == torch.ActionOOM {
			f.key("device_free", int64(e.Addr))
		} else {
			f.key("addr", int64(e.Addr))
		}
		f.key("size", e.Size)
		f.key("stream", int64(e.Stream))
		if !f.NoTimes {
			f.key("time_us", 1_760_000_000_000_000+3*int64(i))
		}
		if e.Action != torch.ActionSnapshot {
			f.text("frames")
			f.stack(int(e.Size) % f.Stacks)
		}
	})
}

// stack writes a stack, or refers to it. Neighbouring stacks share frames.
func (f *file) stack(n int) {
	if f.stacks[n] != 0 {
		f.get(f.stacks[n])
		return
	}
	f.stacks[n] = f.list(f.Depth, func(i int) { f.frame(3*n + i) })
}

func (f *file) frame(n int) {
	if f.frames[n] != 0 {
		f.get(f.frames[n])
		return
	}
	f.frames[n] = f.dict(func() {
		f.text("name")
		f.text("function_" + strconv.Itoa(n%997))
		f.text("filename")
		f.text("/srv/model/layers/part_" + strconv.Itoa(n%211) + ".py")
		f.key("line", int64(1+n%1500))
	})
}
