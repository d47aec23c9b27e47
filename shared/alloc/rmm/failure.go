package rmm

import (
	"fmt"
	"strings"

	"tideline/shared/alloc"
)

// ArenaFailure tells of a request that failed after a defragmentation. Bytes.
type ArenaFailure struct {
	Requested   int64
	TotalFree   int64
	LargestFree int64 // of what the request could have used
	// Stranded is free, but in superblocks of other arenas that have blocks in
	// use, or in any stream's arena when the request is for the global one.
	Stranded int64
	// Largest of the stranded runs.
	LargestStranded int64
}

// Fragmentation is upstream's figure in its dump, in percent: what lies
// outside of the largest free run.
func (f *ArenaFailure) Fragmentation() float64 {
	if f.TotalFree == 0 {
		return 0
	}
	return (1 - float64(max(f.LargestFree, f.LargestStranded))/float64(f.TotalFree)) * 100
}

// Error says what failed and where free memory is out of reach.
func (f *ArenaFailure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "std::bad_alloc: out_of_memory: RMM failure: Maximum pool size exceeded (request %d bytes, %d free, the largest run within reach %d)",
		f.Requested, f.TotalFree, f.LargestFree)
	if f.Stranded > 0 {
		fmt.Fprintf(&b, ": %d bytes are stranded in another arena, %d in one run", f.Stranded, f.LargestStranded)
	}
	return b.String()
}

// Failure is the last request that failed, or nil.
func (a *Arena) Failure() *ArenaFailure { return a.failure }

func (a *Arena) fail(bytes, size int64) {
	f := &ArenaFailure{Requested: bytes}
	for i, x := range a.arenas {
		n, largest := x.free.Bytes(), x.free.Largest()
		f.TotalFree += n
		if i == global || uint32(i) == a.current && size <= SuperblockSize {
			f.LargestFree = max(f.LargestFree, largest)
		} else {
			f.Stranded += n
			f.LargestStranded = max(f.LargestStranded, largest)
		}
	}
	a.failure = f
	a.o.Observer.Log(alloc.Warning, f.Error())
}
