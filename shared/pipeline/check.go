package pipeline

import (
	"errors"
	"fmt"
)

// ErrInvalidArgument is what TensorFlow answers to a dataset that cannot be.
var ErrInvalidArgument = errors.New("InvalidArgument")

// graphLimit is the size of the largest graph, in bytes.
const graphLimit = 1<<31 - 1

func invalid(stage, format string, args ...any) error {
	return fmt.Errorf("pipeline: %s: %s: %w", stage, fmt.Sprintf(format, args...), ErrInvalidArgument)
}

// Check finds what cannot be in a chain; the error names the stage, the value
// and what would do, and is an ErrInvalidArgument.
func (d Dataset) Check() error {
	if len(d.Stages) == 0 {
		return fmt.Errorf("pipeline: no stages: begin with a source: %w", ErrInvalidArgument)
	}
	names := d.Names()
	files := false // what comes are files that nobody has opened
	for i := range d.Stages {
		s := &d.Stages[i]
		if s.Op >= numOps {
			return invalid(names[i], "there is no op %d", s.Op)
		}
		if source := s.Op <= OpFiles; source != (i == 0) {
			return invalid(names[i], "stage %d: a source comes first, and nothing else does", i)
		}
		if err := s.check(names[i]); err != nil {
			return err
		}
		if s.Op == OpInterleave && !files {
			return invalid(names[i], "there are no files to read: it takes them from a source of files")
		}
		if s.Op == OpDevice && i < len(d.Stages)-1 {
			return invalid(names[i], "%s follows: it must be the last stage", names[i+1])
		}
		files = s.Op == OpFiles || files && s.Op != OpInterleave
	}
	return nil
}

func (s *Stage) check(name string) error {
	for _, c := range []struct {
		what  string
		value int64
		least int64
	}{
		{"elements or count", int64(s.N), s.leastCount()},
		{"first element", int64(s.First), 0},
		{"bytes", s.Bytes, NoBytes},
		{"open cost", s.Open, 0},
		{"cost", s.Cost, 0},
		{"parallel calls", int64(s.Parallel), Auto},
		{"cores", int64(s.Cores), 0},
		{"budget", s.Budget, 0},
	} {
		if c.value < c.least {
			return invalid(name, "%s %d: must be at least %d", c.what, c.value, c.least)
		}
	}
	for _, c := range s.Costs {
		if c < 0 {
			return invalid(name, "cost %d: must be at least 0", c)
		}
	}
	switch s.Op {
	case OpSlices:
		if s.InGraph && s.N > 0 && s.Bytes > graphLimit/int64(s.N) {
			return invalid(name, "%d elements of %d bytes are constants of a graph, which holds no more than 2 GB: read them from files", s.N, s.Bytes)
		}
	case OpFiles:
		return s.checkFiles(name)
	case OpInterleave:
		if s.Cycle < 1 || s.Block < 1 {
			return invalid(name, "cycle %d, block %d: both must be at least 1", s.Cycle, s.Block)
		}
		if s.Parallel > s.Cycle {
			return invalid(name, "%d parallel calls over a cycle of %d: there must be no more calls than files", s.Parallel, s.Cycle)
		}
	case OpShard:
		if s.Index < 0 || s.Index >= s.N {
			return invalid(name, "index %d of %d shards: must be from 0 to %d", s.Index, s.N, s.N-1)
		}
	case OpBatch, OpMapBatch:
		if len(s.Sizes) == 0 {
			return invalid(name, "no size given")
		}
		for _, n := range s.Sizes {
			if n < 1 {
				return invalid(name, "size %d: must be at least 1", n)
			}
		}
	default:
	}
	return nil
}

// leastCount is the least that N may be.
func (s *Stage) leastCount() int64 {
	switch s.Op {
	case OpRepeat, OpTake, OpSkip, OpPrefetch:
		return -1 // all, for ever, Auto
	case OpShuffle, OpDevice, OpShard:
		return 1
	default:
		return 0
	}
}

func (s *Stage) checkFiles(name string) error {
	if s.N != len(s.Files) {
		return invalid(name, "%d files named, %d given", s.N, len(s.Files))
	}
	for i, f := range s.Files {
		if f.Elements < 0 || f.First < 0 || f.Open < 0 || f.Read < 0 || f.Bytes < 0 {
			return invalid(name, "file %d: %+v: nothing of it may be negative", i, f)
		}
	}
	return nil
}

// Names are the stages' names.
func (d Dataset) Names() []string {
	out := make([]string, len(d.Stages))
	count := map[string]int{}
	for i := range d.Stages {
		name := d.Stages[i].Name
		if name == "" {
			name = d.Stages[i].Op.String()
		}
		out[i] = name
		if n := count[name]; n > 0 {
			out[i] = fmt.Sprintf("%s_%d", name, n)
		}
		count[name]++
	}
	return out
}
