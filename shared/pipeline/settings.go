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

	OpenCost   int64 // before the first element of every epoch, or of every file
	FetchCost  int64 // to read one element, one after the other
	Interleave Interleave
	Map        Map
	Cache      bool   // keep what was read and mapped in the first epoch
	Shuffle    int    // elements in the shuffle buffer; 0: none
	Seed       uint64 // of the shuffle

	Batch         []int // elements a batch; more than one value: batches take them in turn
	DropRemainder bool  // no smaller last batch
	Batches       int   // stop after so many; 0: at the end of the source
	CopyCost      int64 // to copy one element into its batch

	Prefetch  int   // batches buffered ahead; 0: none; Auto
	RAMBudget int64 // bytes that Auto may let the buffer hold; 0: no limit
}

// Map is the map stage.
type Map struct {
	Parallel  int   // calls in flight; 1 and 0 run in the asking thread; Auto
	Cost      int64 // of one call
	Cores     int   // calls that really run at a time; 0: all in flight. Bounds Auto, which goes up to DefaultCores otherwise
	Unordered bool  // whose call ends first comes first
}

// Interleave is the stage that reads several files at once. Its zero value is
// none: the source is one array.
type Interleave struct {
	Cycle    int // files open at a time; 0: none
	Block    int // elements taken from one before the next; 0: one
	Parallel int // files read at a time; 1 and 0 read in the asking thread; Auto
	Files    int // files that the elements lie in, in equal parts; 0: as many as Cycle
}

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
		{"map.parallel", int64(s.Map.Parallel), Auto},
		{"interleave.cycle", int64(s.Interleave.Cycle), 0},
		{"interleave.block", int64(s.Interleave.Block), 0},
		{"interleave.parallel", int64(s.Interleave.Parallel), Auto},
		{"interleave.files", int64(s.Interleave.Files), 0},
		{"map.cores", int64(s.Map.Cores), 0},
		{"shuffle", int64(s.Shuffle), 0},
		{"batches", int64(s.Batches), 0},
		{"copy cost", s.CopyCost, 0},
		{"prefetch", int64(s.Prefetch), Auto},
		{"ram budget", s.RAMBudget, 0},
	} {
		if c.value < c.least {
			return fmt.Errorf("pipeline: %s %d: must be at least %d: %w", c.field, c.value, c.least, ErrInvalidArgument)
		}
	}
	if len(s.Batch) == 0 {
		return fmt.Errorf("pipeline: no batch size given: %w", ErrInvalidArgument)
	}
	for _, n := range s.Batch {
		if n < 1 {
			return fmt.Errorf("pipeline: batch %d: must be at least 1: %w", n, ErrInvalidArgument)
		}
	}
	return s.Dataset().Check()
}

// Dataset is the chain of stages that the settings stand for: the source or
// files and an interleave, then cache, epochs, map, shuffle, batch and
// prefetch. The shuffle buffer goes on from epoch to epoch without mixing them,
// as if shuffle and repeat were fused; with a cache the map comes before it,
// otherwise the map goes on from epoch to epoch, too.
func (s *Settings) Dataset() Dataset {
	d := s.source()
	m := Stage{
		Op: OpMap, Cost: s.Map.Cost, Parallel: s.Map.Parallel, Cores: s.Map.Cores, Unordered: s.Map.Unordered,
		Bytes: sized(s.ElementBytes), Budget: s.RAMBudget,
	}
	epochs := s.Epochs
	if epochs == 0 {
		epochs = -1
	}
	if s.Cache {
		d = d.With(m).Cache().Repeat(epochs)
	} else {
		d = d.Repeat(epochs).With(m)
	}
	if s.Shuffle > 0 {
		d = d.With(Stage{Op: OpShuffle, N: s.Shuffle, Seed: s.Seed, ByEpoch: true})
	}
	d = d.With(Stage{Op: OpBatch, Sizes: s.Batch, Drop: s.DropRemainder, Cost: s.CopyCost})
	if s.Batches > 0 {
		d = d.Take(s.Batches)
	}
	if s.Prefetch != 0 {
		d = d.With(Stage{Op: OpPrefetch, N: s.Prefetch, Budget: s.RAMBudget})
	}
	return d
}

func sized(bytes int64) int64 {
	if bytes == 0 {
		return NoBytes
	}
	return bytes
}

// source is what the elements come from.
func (s *Settings) source() Dataset {
	x := s.Interleave
	if x.Cycle == 0 {
		d := FromSlices(s.Elements, sized(s.SourceBytes))
		d.Stages[0].First, d.Stages[0].Open, d.Stages[0].Cost = s.First, s.OpenCost, s.FetchCost
		return d
	}
	n := x.Files
	if n == 0 {
		n = x.Cycle
	}
	files := make([]File, n)
	for i := range files {
		from, to := i*s.Elements/n, (i+1)*s.Elements/n
		files[i] = File{Elements: to - from, First: int32(s.First + from), Open: s.OpenCost, Read: s.FetchCost, Bytes: s.SourceBytes}
	}
	return FromFiles(files...).Interleave(x.Cycle, max(1, x.Block), x.Parallel)
}

// Buffers lists the memory that the pipeline holds on the host once it is
// full; see Dataset.Buffers. limit is the prefetch buffer's present limit
// (Batch.Limit); before the first batch it is Settings.Limit.
func (s *Settings) Buffers(limit int) []Buffer { return s.Dataset().Buffers(limit) }

// Limit is the number of batches that prefetch buffers at first.
func (s *Settings) Limit() int {
	if s.Prefetch == Auto {
		return 1
	}
	return s.Prefetch
}
