package remedy

import (
	"fmt"
	"sort"

	"tideline/shared/alloc"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/torch"
)

// candidate is something to try.
type candidate struct {
	setting  string
	kind     string
	own      bool
	capacity int64 // 0 means that of the original
	assumes  string
	telling  bool // tried also where a replay is long and no request failed
	make     func(capacity int64) (machine, error)
}

func ofKind(setting, kind string, settings ...kinds.Setting) candidate {
	c := candidate{setting: setting, kind: kind}
	k, err := kinds.ByName(kind)
	if err == nil && k.Modelled {
		c.assumes = "its pool is modelled, not exact"
	}
	c.make = func(capacity int64) (machine, error) {
		if err != nil {
			return nil, fmt.Errorf("replay through another allocator: %w", err)
		}
		x, err := k.New(kinds.Env{Limit: capacity, Card: alloc.NewCard(capacity)}, settings)
		if err != nil {
			return nil, fmt.Errorf("replay through another allocator: %w", err)
		}
		return some{x}, nil
	}
	return c
}

// conf words settings as their user writes them.
func conf(s *torch.Settings, off string) string {
	text := s.String()
	if off != "" {
		if text != "" {
			text += ","
		}
		text += off
	}
	return "PYTORCH_CUDA_ALLOC_CONF=" + text
}

// maxSplits are the limits that are tried, in MiB.
var maxSplits = []int64{512, 256, 128, 64, 32, 20}

// candidates are other settings of the caching allocator, and other allocators.
func (t *caching) candidates() (list []candidate) {
	base := t.in.Settings
	own := func(off string, change func(*torch.Settings)) {
		s := base
		change(&s)
		if s == base || s.Validate() != nil {
			return
		}
		list = append(list, candidate{
			setting: conf(&s, off), kind: "torch", own: true,
			telling: s.Expandable != base.Expandable || s.MaxSplit == 128<<20,
			make:    func(capacity int64) (machine, error) { return t.machine(&s, capacity) },
		})
	}
	if base.Expandable {
		own("expandable_segments:False", func(s *torch.Settings) { s.Expandable = false })
	} else {
		own("", func(s *torch.Settings) { s.Expandable = true })
	}
	largest := t.largestSegment()
	for _, mb := range maxSplits {
		if mb<<20 > largest && !base.Expandable {
			continue // no block is ever that large
		}
		own("", func(s *torch.Settings) { s.MaxSplit = mb << 20 })
	}
	if t.live == 0 || !t.failed {
		for _, n := range []int64{16, 8, 4} {
			own("", func(s *torch.Settings) {
				for i := range s.Divisions {
					s.Divisions[i] = n
				}
			})
		}
		own("roundup_power2_divisions:1", func(s *torch.Settings) { s.Divisions = torch.Settings{}.Divisions })
	} else {
		// Of made programs of which the state and the tail were kept, a third
		// of what this seemed to serve it did not.
		t.out.say("Rounding of sizes was not tried: what it does comes of all requests, and those before the trace are not known.")
	}
	if t.limited {
		own("", func(s *torch.Settings) { s.GarbageCollection = 0.8 })
		own("", func(s *torch.Settings) { s.GarbageCollection = 0.6 })
		if t.beyond > t.capacity {
			list = append(list, candidate{
				setting: "torch.cuda.set_per_process_memory_fraction(1.0)", kind: "torch", own: true, capacity: t.beyond,
				make: func(capacity int64) (machine, error) { return t.machine(&base, capacity) },
			})
		}
	}
	if t.how == inPlace {
		return list // another allocator cannot begin in this one's state
	}
	async := ofKind("PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync", "async")
	async.telling = true
	list = append(append(list, async), others("torch", "async")...)
	// Those that tell most first, should the budget not do for all.
	sort.SliceStable(list, func(i, j int) bool { return list[i].telling && !list[j].telling })
	return list
}

// largestSegment is the largest that the driver was ever asked for.
func (t *caching) largestSegment() (n int64) {
	for i := range t.begin {
		n = max(n, t.begin[i].Total)
	}
	for i := range t.in.Trace[:t.end] {
		if e := &t.in.Trace[i]; e.Action == torch.ActionSegmentAlloc || e.Action == torch.ActionOOM {
			n = max(n, t.in.Settings.Segment(t.in.Settings.Round(max(1, e.Size))))
		}
	}
	return n
}

// others are the other allocators of devices, but for those named.
func others(but ...string) (list []candidate) {
next:
	for _, c := range []candidate{
		ofKind("the allocator bfc of TensorFlow", "bfc", kinds.Setting{Name: "growth", Value: "false"}),
		ofKind("the allocator bfc of TensorFlow, growing", "bfc", kinds.Setting{Name: "growth", Value: "true"}),
		ofKind("the caching allocator of PyTorch", "torch"),
		ofKind("the caching allocator of PyTorch with expandable segments", "torch", kinds.Setting{Name: "expandable_segments", Value: "true"}),
		ofKind("the arena of ONNX Runtime", "ort", kinds.Setting{Name: "arena_extend_strategy", Value: "same_as_requested"}),
		ofKind("the pool of RMM", "rmm-pool"),
		ofKind("CUDA's stream-ordered pool (cudaMallocAsync)", "async"),
		ofKind("the driver alone, without an allocator", "direct"),
	} {
		for _, b := range but {
			if c.kind == b {
				continue next
			}
		}
		list = append(list, c)
	}
	return list
}
