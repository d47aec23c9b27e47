package pipeline

import "fmt"

// Auto as Prefetch lets the buffer grow when it was full and then ran empty.
const Auto = -1

// Settings describe a pipeline. Times are nanoseconds.
type Settings struct {
	Elements     int   // in the source
	First        int   // number of the first of them: what skip leaves out
	Epochs       int   // passes over the source; 0: for ever
	SourceBytes  int64 // of one element in the source
	ElementBytes int64 // of one element after map

	OpenCost  int64 // before the first element of every epoch
	FetchCost int64 // to read one element, one after the other
	Map       Map
	Shuffle   int    // elements in the shuffle buffer; 0: none
	Seed      uint64 // of the shuffle

	Batch         []int // elements a batch; more than one value: batches take them in turn
	DropRemainder bool  // no smaller last batch
	Batches       int   // stop after so many; 0: at the end of the source
	CopyCost      int64 // to copy one element into its batch

	Prefetch  int   // batches buffered ahead; 0: none; Auto
	RAMBudget int64 // bytes that Auto may let the buffer hold; 0: no limit
}

// Map is the map stage.
type Map struct {
	Parallel int   // calls in flight; 1 and 0 run in the asking thread
	Cost     int64 // of one call
	Cores    int   // calls that really run at a time; 0: all in flight
}

// The stages by name, in the order in which elements pass them.
const (
	StageSource   = "from_slices"
	StageMap      = "map"
	StageShuffle  = "shuffle"
	StageBatch    = "batch"
	StagePrefetch = "prefetch"
)

// Check finds impossible settings; the error names the field, the value and
// what would do.
func (s *Settings) Check() error {
	for _, c := range []struct {
		field string
		value int64
		least int64
	}{
		{"elements", int64(s.Elements), 0},
		{"first", int64(s.First), 0},
		{"epochs", int64(s.Epochs), 0},
		{"source bytes", s.SourceBytes, 0},
		{"element bytes", s.ElementBytes, 0},
		{"open cost", s.OpenCost, 0},
		{"fetch cost", s.FetchCost, 0},
		{"map.cost", s.Map.Cost, 0},
		{"map.parallel", int64(s.Map.Parallel), 0},
		{"map.cores", int64(s.Map.Cores), 0},
		{"shuffle", int64(s.Shuffle), 0},
		{"batches", int64(s.Batches), 0},
		{"copy cost", s.CopyCost, 0},
		{"prefetch", int64(s.Prefetch), Auto},
		{"ram budget", s.RAMBudget, 0},
	} {
		if c.value < c.least {
			return fmt.Errorf("pipeline: %s %d: must be at least %d", c.field, c.value, c.least)
		}
	}
	if len(s.Batch) == 0 {
		return fmt.Errorf("pipeline: no batch size given")
	}
	for _, n := range s.Batch {
		if n < 1 {
			return fmt.Errorf("pipeline: batch %d: must be at least 1", n)
		}
	}
	return nil
}

// parallel says whether the map stage has a runner of its own.
func (s *Settings) parallel() bool { return s.Map.Parallel > 1 }

// total is the number of elements that the source gives in all, -1 for no end.
func (s *Settings) total() int64 {
	if s.Epochs == 0 && s.Elements > 0 {
		return -1
	}
	return int64(s.Elements) * int64(s.Epochs)
}

// largestBatch is the largest of the batch sizes.
func (s *Settings) largestBatch() int {
	n := 0
	for _, b := range s.Batch {
		n = max(n, b)
	}
	return n
}

// Buffer is host memory that a stage holds for as long as the pipeline runs:
// Count pieces of Bytes each.
type Buffer struct {
	Stage string
	Bytes int64
	Count int
}

// Buffers lists the memory that the pipeline holds on the host once it is
// full, for an executor to take from the host's allocator: the source's
// arrays, the results of a parallel map, the shuffled elements, and the
// batches buffered ahead, one more being made. limit is the prefetch buffer's
// present limit (Batch.Limit); before the first batch it is Settings.Limit.
// The batch that a step is given is the step's own and not counted, nor are
// the elements on their way between stages.
func (s *Settings) Buffers(limit int) []Buffer {
	b := []Buffer{{StageSource, int64(s.Elements) * s.SourceBytes, 1}}
	if s.parallel() {
		b = append(b, Buffer{StageMap, s.ElementBytes, s.Map.Parallel})
	}
	if s.Shuffle > 0 {
		held := s.Shuffle
		if s.Elements > 0 && s.Epochs == 0 {
			held = min(held, maxEpochsInBuffer*s.Elements+1)
		} else {
			held = int(min(int64(held), s.total()))
		}
		b = append(b, Buffer{StageShuffle, s.ElementBytes, held})
	}
	if s.Prefetch != 0 {
		b = append(b, Buffer{StagePrefetch, s.ElementBytes * int64(s.largestBatch()), limit + 1})
	}
	return b
}

// Limit is the number of batches that prefetch buffers at first.
func (s *Settings) Limit() int {
	if s.Prefetch == Auto {
		return 1
	}
	return s.Prefetch
}
