package snapshot

import (
	"tideline/shared/alloc/torch"
)

// TorchSettings are the allocator settings that the file records; the defaults where
// it records none or they do not parse.
func (s *Snapshot) TorchSettings() torch.Settings {
	text, _ := s.Setting("PYTORCH_CUDA_ALLOC_CONF")
	if text == "" {
		text, _ = s.Setting("PYTORCH_ALLOC_CONF")
	}
	settings, err := torch.ParseSettings(text)
	if err != nil {
		settings = torch.Settings{}
	}
	if on, ok := s.Setting("expandable_segments"); ok {
		settings.Expandable = on == "true"
	}
	return settings
}

// TorchSegments are a device's segments at the end, as the allocator's model
// has them.
func (s *Snapshot) TorchSegments(device int) []torch.SnapshotSegment {
	var out []torch.SnapshotSegment
	for i := range s.Segments() {
		g := &s.Segments()[i]
		if g.Device != device {
			continue
		}
		id := s.Pool(g.Pool)
		x := torch.SnapshotSegment{
			Device: device, Address: g.Address, Total: g.Total, Allocated: g.Allocated, Active: g.Active, Requested: max(g.Requested, 0),
			Stream: torch.Stream(s.Stream(g.Stream)), Large: g.Large, Pool: torch.PoolID{A: uint64(id.A), B: uint64(id.B)},
			Expandable: g.Expandable, Blocks: make([]torch.SnapshotBlock, 0, g.n),
		}
		s.Blocks(g, func(b *Block) {
			x.Blocks = append(x.Blocks, torch.SnapshotBlock{
				Address: b.Address, Size: b.Size, Requested: max(b.Requested, 0), State: torch.BlockState(b.State),
			})
		})
		out = append(out, x)
	}
	return out
}

var torchActions = map[Action]torch.Action{
	Alloc: torch.ActionAlloc, FreeRequested: torch.ActionFreeRequested, FreeCompleted: torch.ActionFreeCompleted,
	SegmentAlloc: torch.ActionSegmentAlloc, SegmentFree: torch.ActionSegmentFree, SegmentMap: torch.ActionSegmentMap,
	SegmentUnmap: torch.ActionSegmentUnmap, Snap: torch.ActionSnapshot, OOM: torch.ActionOOM,
}

// TorchTrace is a device's trace as the allocator's model has it. The single
// free of old files becomes the two entries that it stands for; entries of
// unknown actions are left out.
func (s *Snapshot) TorchTrace(device int) []torch.TraceEntry {
	var out []torch.TraceEntry
	for _, t := range s.Traces {
		if t.Device != device {
			continue
		}
		out = make([]torch.TraceEntry, 0, t.n)
		for i := range t.n {
			e := s.Event(t, i)
			x := torch.TraceEntry{Addr: e.Addr, Size: e.Size, Stream: torch.Stream(s.Stream(e.Stream))}
			if e.Action == Free {
				x.Action = torch.ActionFreeRequested
				out = append(out, x)
				x.Action = torch.ActionFreeCompleted
			} else if k, ok := torchActions[e.Action]; ok {
				x.Action = k
			} else {
				continue
			}
			out = append(out, x)
		}
	}
	return out
}
