package pipeline

import "slices"

// Buffer is memory that a stage holds for as long as the pipeline runs: Count
// pieces of Bytes each.
type Buffer struct {
	Stage  string
	Bytes  int64
	Count  int
	Device bool // in the accelerator's memory, not the host's
}

// Buffers lists the memory that a dataset holds once it is full, for an
// executor to take from the host's allocator (or the device's): the source's
// arrays, what an interleave has read ahead, the results of a parallel map, a
// cache, the shuffled elements, and what is buffered ahead, one more being
// made. limit is the limit of prefetch buffers of automatic size at present, 1
// before the first element. Automatic calls count as the one that they begin
// with: see Tuned for what they come to. The element that the consumer has is the
// consumer's and not counted, nor are those on their way between stages.
func (d Dataset) Buffers(limit int) []Buffer {
	var out []Buffer
	names := d.Names()
	for i := range d.Stages {
		bytes := d.bytes(i)
		count := d.held(i, limit)
		s := &d.Stages[i]
		switch {
		case s.Op == OpSlices:
			copies := 1
			if s.InGraph {
				copies = 2
			}
			out = append(out, Buffer{Stage: names[i], Bytes: int64(s.N) * bytes, Count: copies})
		case count > 0:
			out = append(out, Buffer{Stage: names[i], Bytes: bytes, Count: count, Device: s.Op == OpDevice})
		}
	}
	return out
}

// held is the number of elements that stage i holds when it is full.
func (d Dataset) held(i, limit int) int {
	s := &d.Stages[i]
	switch s.Op {
	case OpMap:
		if s.async() {
			return max(1, s.Parallel)
		}
	case OpMapBatch:
		return max(1, s.Parallel)
	case OpInterleave:
		if s.async() {
			return (1 + aheadPerCycle) * s.Cycle * s.perFile()
		}
	case OpShuffle:
		return d.shuffled(i)
	case OpCache:
		return int(max(0, d.count(i-1, true)))
	case OpPrefetch:
		if s.N == Auto {
			return limit + 1
		}
		if s.N > 0 {
			return s.N + 1
		}
	case OpDevice:
		return s.N + 1
	default:
	}
	return 0
}

// Tuned is the chain with the calls that the optimizer comes to where they are
// automatic, by the costs that the chain says.
func (d Dataset) Tuned() Dataset {
	root, list := d.Performance(DefaultCores)
	HillClimb(root, DefaultCores, d.Budget())
	out := Dataset{slices.Clone(d.Stages)}
	for i, p := range list {
		if p != nil {
			out.Stages[i].Parallel = p.Value
		}
	}
	return out
}

// Budget is the bytes that automatic buffers may take; 0: no limit.
func (d Dataset) Budget() int64 {
	var b int64
	for i := range d.Stages {
		b = max(b, d.Stages[i].Budget)
	}
	return b
}

// shuffled is the number of elements that a shuffle buffer comes to hold.
func (d Dataset) shuffled(i int) int {
	s := &d.Stages[i]
	n := d.count(i-1, true)
	switch {
	case s.Fused && s.Times < 0 && n > 0:
		n = maxEpochsInBuffer*n + 1
	case s.Fused:
		n = times(n, s.Times)
	case s.ByEpoch && n == Infinite:
		if one := d.epoch(i); one > 0 {
			n = maxEpochsInBuffer*one + 1
		}
	}
	if n < 0 {
		return s.N
	}
	return int(min(int64(s.N), n))
}

// epoch is the number of elements that reach stage i within one turn of the
// last repeat before it.
func (d Dataset) epoch(i int) int64 {
	last := i - 1
	for last > 0 && d.Stages[last].Op != OpRepeat {
		last--
	}
	if last == 0 {
		return Unknown
	}
	n := d.count(last-1, true)
	for k := last + 1; k < i; k++ {
		n = d.Stages[k].countOf(n)
	}
	return n
}

// bytes is the size of the largest element that leaves stage i.
func (d Dataset) bytes(i int) int64 {
	s := &d.Stages[i]
	switch {
	case s.Bytes == NoBytes:
		return 0
	case s.Op == OpBatch, s.Op == OpMapBatch:
		return d.entering(i) * int64(s.largest())
	case s.Op == OpInterleave && s.Bytes == 0:
		var n int64
		for _, f := range d.Stages[0].Files {
			n = max(n, f.Bytes)
		}
		return n
	case s.Bytes == 0 && i > 0:
		return d.bytes(i - 1)
	}
	return s.Bytes
}

// entering is the size of an element that a batch is made of.
func (d Dataset) entering(i int) int64 {
	if s := &d.Stages[i]; s.Op == OpMapBatch && s.Bytes != 0 {
		return max(0, s.Bytes)
	}
	return d.bytes(i - 1)
}

// largest is the largest of a batch's sizes.
func (s *Stage) largest() int {
	n := 0
	for _, b := range s.Sizes {
		n = max(n, b)
	}
	return n
}

// async says whether the stage has a thread of its own.
func (s *Stage) async() bool {
	switch s.Op {
	case OpMap, OpInterleave:
		return s.Parallel > 1 || s.Parallel == Auto
	case OpMapBatch, OpDevice:
		return true
	case OpPrefetch:
		return s.N != 0
	default:
		return false
	}
}
