package pipeline

import (
	"math"
	"slices"
)

// Op is what a stage does.
type Op uint8

// The ops. The first three are sources and come first in a chain.
const (
	OpSlices     Op = iota // from_tensor_slices: arrays in memory, one slice after the other
	OpRange                // 0 to N-1, made as they are asked for
	OpFiles                // names of files, which OpInterleave opens
	OpInterleave           // reads from several files in turn
	OpMap                  // a function of each element
	OpShuffle              // a random element of a buffer
	OpRepeat               // the same from the beginning
	OpBatch                // so many elements as one
	OpMapBatch             // map and batch as one: see Dataset.Rewrite
	OpCache                // what came the first time, from memory
	OpTake                 // no more than N
	OpSkip                 // without the first N
	OpShard                // every N-th, from element Index on
	OpPrefetch             // made ahead by a thread of its own
	OpDevice               // prefetch_to_device: made ahead in an accelerator's memory
	numOps
)

// The stages by name, as events and buffers tell them. Another stage of the
// same op is called map_1 and so on.
const (
	StageSource     = "from_slices"
	StageRange      = "range"
	StageFiles      = "files"
	StageInterleave = "interleave"
	StageMap        = "map"
	StageShuffle    = "shuffle"
	StageRepeat     = "repeat"
	StageBatch      = "batch"
	StageMapBatch   = "map_and_batch"
	StageCache      = "cache"
	StageTake       = "take"
	StageSkip       = "skip"
	StageShard      = "shard"
	StagePrefetch   = "prefetch"
	StageDevice     = "prefetch_to_device"
)

var opNames = [numOps]string{
	StageSource, StageRange, StageFiles, StageInterleave, StageMap, StageShuffle, StageRepeat, StageBatch,
	StageMapBatch, StageCache, StageTake, StageSkip, StageShard, StagePrefetch, StageDevice,
}

func (o Op) String() string {
	if o >= numOps {
		return "unknown"
	}
	return opNames[o]
}

// Stage is one step of a chain, with the fields that its op has; times are
// nanoseconds.
type Stage struct {
	Op   Op
	Name string // in events; empty: the op's name

	// N is a source's number of elements, a shuffle or prefetch buffer's size
	// (Auto grows), and how many times or elements repeat, take and skip speak
	// of, -1 for all; the number of shards.
	N     int
	First int // number of a source's first element
	Index int // of a shard, from 0

	// Bytes of one element that leaves the stage, 0 for as it came; NoBytes for
	// an element of no size. A source of slices holds all of its elements.
	Bytes  int64
	Shapes [][][]int64 // of a source or map: its elements' components, element after element in turn; nil: unknown

	Open  int64   // of slices: before the first element of a pass
	Cost  int64   // of one element: reading, mapping, copying into a batch, sending to the device
	Costs []int64 // of map: instead of Cost, call after call in turn

	Files        []File // of OpFiles
	Cycle, Block int    // of OpInterleave: files open at a time, elements taken from one before the next

	// InGraph says that a source's arrays are constants of a graph: they are
	// there twice, and a graph holds no more than 2 GB.
	InGraph bool

	Parallel  int  // of map and interleave: calls in flight; 0 and 1: in the asking thread; Auto
	Cores     int  // calls that really run at a time; 0: all in flight
	Unordered bool // of a parallel map: who is first comes first

	Sizes []int // of a batch: elements, batch after batch in turn
	Drop  bool  // no smaller last batch

	Seed    uint64 // of shuffle
	Fixed   bool   // shuffle: the same order in every iteration
	ByEpoch bool   // shuffle: do not mix what a repeat before it tells apart
	Fused   bool   // shuffle: starts its input Times times itself, see Dataset.Rewrite
	Times   int    // of a fused shuffle: passes over its input, -1 for ever

	Budget int64 // of an automatic prefetch or map: bytes that automatic buffers may hold; 0: no limit
}

// NoBytes as Bytes of a stage says that its elements have no size.
const NoBytes = -1

// File is one file of a source.
type File struct {
	Elements int
	First    int32 // number of its first element
	Open     int64 // nanoseconds before the first element
	Read     int64 // nanoseconds for each
	Bytes    int64 // of one element
}

// Dataset is a chain of stages, source first. The methods give a longer one
// and leave the receiver as it was; what cannot be is told by Check and Open.
type Dataset struct {
	Stages []Stage
}

// FromSlices is a source of n elements that lie in memory, of so many bytes
// each.
func FromSlices(n int, bytes int64) Dataset {
	return Dataset{[]Stage{{Op: OpSlices, N: n, Bytes: bytes}}}
}

// Component is one of the arrays that slices are taken of.
type Component struct {
	Shape []int64 // the first dimension is the number of slices
	Bytes int64   // of one value
}

// FromTensorSlices is a source of the slices of one or more arrays, which must
// have the same number of them: element i is slice i of each.
func FromTensorSlices(list ...Component) (Dataset, error) {
	if len(list) == 0 {
		return Dataset{}, invalid(StageSource, "no arrays to take slices of")
	}
	var n, bytes int64
	var shapes [][]int64
	for i, c := range list {
		if len(c.Shape) == 0 {
			return Dataset{}, invalid(StageSource, "component %d is a scalar, which has no slices", i)
		}
		if i == 0 {
			n = c.Shape[0]
		}
		if c.Shape[0] != n {
			return Dataset{}, invalid(StageSource, "component %d has %d slices, the first has %d: they must be equal", i, c.Shape[0], n)
		}
		each := c.Bytes
		for _, d := range c.Shape[1:] {
			if d < 0 || d > 0 && each > math.MaxInt64/d {
				return Dataset{}, invalid(StageSource, "component %d has the shape %v, which cannot be", i, c.Shape)
			}
			each *= d
		}
		bytes += each
		shapes = append(shapes, c.Shape[1:])
	}
	if n < 0 || n > math.MaxInt32 {
		return Dataset{}, invalid(StageSource, "%d slices: there may be 0 to %d", n, math.MaxInt32)
	}
	d := FromSlices(int(n), sized(bytes))
	d.Stages[0].Shapes = [][][]int64{shapes}
	return d, nil
}

// Range is a source of the numbers from 0 to n-1.
func Range(n int) Dataset {
	return Dataset{[]Stage{{Op: OpRange, N: n, Bytes: 8}}}
}

// FromFiles is a source of files, to be read by Interleave. Elements are
// numbered through unless a file says otherwise.
func FromFiles(files ...File) Dataset {
	files = slices.Clone(files)
	next := int32(0)
	for i := range files {
		if files[i].First == 0 {
			files[i].First = next
		}
		next = files[i].First + int32(files[i].Elements)
	}
	return Dataset{[]Stage{{Op: OpFiles, N: len(files), Files: files}}}
}

// With appends a stage.
func (d Dataset) With(s Stage) Dataset {
	return Dataset{append(slices.Clip(slices.Clone(d.Stages)), s)}
}

// Interleave reads cycle files at a time, block elements from one after the
// other. With parallel calls above 1 they are read ahead. A cycle of Auto is as
// many files as the host has cores.
func (d Dataset) Interleave(cycle, block, parallel int) Dataset {
	if cycle == Auto {
		cycle = DefaultCores
	}
	return d.With(Stage{Op: OpInterleave, Cycle: cycle, Block: block, Parallel: parallel})
}

// FlatMap reads one file after the other.
func (d Dataset) FlatMap() Dataset { return d.Interleave(1, 1, 1) }

// Map costs so many nanoseconds an element, parallel of them at a time.
func (d Dataset) Map(cost int64, parallel int) Dataset {
	return d.With(Stage{Op: OpMap, Cost: cost, Parallel: parallel})
}

// Shuffle takes a random element of a buffer of k; every iteration in another
// order.
func (d Dataset) Shuffle(k int, seed uint64) Dataset {
	return d.With(Stage{Op: OpShuffle, N: k, Seed: seed})
}

// Repeat gives the same n times, -1 for ever.
func (d Dataset) Repeat(n int) Dataset { return d.With(Stage{Op: OpRepeat, N: n}) }

// Batch makes one element of n.
func (d Dataset) Batch(n int, drop bool) Dataset {
	return d.With(Stage{Op: OpBatch, Sizes: []int{n}, Drop: drop})
}

// Cache keeps the elements of the first whole pass in memory.
func (d Dataset) Cache() Dataset { return d.With(Stage{Op: OpCache}) }

// Take gives no more than n elements, -1 for all.
func (d Dataset) Take(n int) Dataset { return d.With(Stage{Op: OpTake, N: n}) }

// Skip leaves the first n elements out, -1 for all.
func (d Dataset) Skip(n int) Dataset { return d.With(Stage{Op: OpSkip, N: n}) }

// Shard gives one of n workers its elements: those whose number leaves index
// when divided by n. All are read for that, so it belongs before what is dear.
func (d Dataset) Shard(n, index int) Dataset { return d.With(Stage{Op: OpShard, N: n, Index: index}) }

// Prefetch makes up to k elements ahead; Auto, 0 for none.
func (d Dataset) Prefetch(k int) Dataset { return d.With(Stage{Op: OpPrefetch, N: k}) }

// PrefetchToDevice keeps k elements ahead in an accelerator's memory, each
// sent there in so many nanoseconds. It is a chain's last stage.
func (d Dataset) PrefetchToDevice(k int, cost int64) Dataset {
	return d.With(Stage{Op: OpDevice, N: k, Cost: cost})
}

// Infinite and Unknown are cardinalities, by TensorFlow's numbers.
const (
	Infinite = -1
	Unknown  = -2
)

// Cardinality is the number of elements of a dataset as TensorFlow tells it:
// Infinite, Unknown after an interleave, or the number.
func (d Dataset) Cardinality() int64 { return d.count(len(d.Stages)-1, false) }

// Elements is the number of elements, Infinite for no end. It knows what is in
// the files.
func (d Dataset) Elements() int64 { return d.count(len(d.Stages)-1, true) }

// count is the number of elements that leave stage i.
func (d Dataset) count(i int, known bool) int64 {
	if i < 0 {
		return 0
	}
	s := &d.Stages[i]
	switch s.Op {
	case OpSlices, OpRange, OpFiles:
		return int64(s.N)
	case OpInterleave:
		if known {
			return d.inFiles(i)
		}
		return Unknown
	default:
	}
	return s.countOf(d.count(i-1, known))
}

// countOf is the number of elements that leave a stage which n enter.
func (s *Stage) countOf(n int64) int64 {
	switch s.Op {
	case OpRepeat:
		return times(n, s.N)
	case OpShuffle:
		if s.Fused {
			return times(n, s.Times)
		}
	case OpTake:
		if s.N < 0 || n == Unknown && s.N > 0 {
			return n
		}
		if n < 0 {
			return int64(s.N)
		}
		return min(n, int64(s.N))
	case OpSkip:
		if s.N < 0 {
			return 0
		}
		if n >= 0 {
			return max(0, n-int64(s.N))
		}
	case OpShard:
		if n >= 0 {
			return (max(0, n-int64(s.Index)) + int64(s.N) - 1) / int64(max(1, s.N))
		}
	case OpBatch, OpMapBatch:
		if n > 0 {
			return s.batches(n)
		}
	default:
	}
	return n
}

func times(n int64, k int) int64 {
	switch {
	case n == 0 || k == 0:
		return 0
	case k < 0:
		return Infinite
	case n < 0:
		return n
	}
	return n * int64(k)
}

// batches is the number of batches that n elements come to.
func (s *Stage) batches(n int64) int64 {
	var turn int64
	for _, b := range s.Sizes {
		turn += int64(b)
	}
	if turn < 1 {
		return 0
	}
	out := n / turn * int64(len(s.Sizes))
	n %= turn
	for _, b := range s.Sizes {
		if n < int64(b) {
			break
		}
		n -= int64(b)
		out++
	}
	if n > 0 && !s.Drop {
		out++
	}
	return out
}

// inFiles is the number of elements of the files that reach an interleave:
// what lies between, a take or a shuffle, speaks of files.
func (d Dataset) inFiles(i int) int64 {
	m, err := Dataset{d.Stages[:i]}.Open(nil, nil)
	if err != nil {
		return 0
	}
	files := d.Stages[0].Files
	if d.count(i-1, true) == Infinite {
		return Infinite
	}
	var n int64
	for now := int64(0); ; {
		b, err := m.Next(now)
		if err != nil {
			return n
		}
		for _, f := range b.Indices {
			n += int64(files[f].Elements)
		}
	}
}
