package ort

import (
	"fmt"
	"math"

	"tideline/shared/alloc"
	"tideline/shared/alloc/stream"
)

// The defaults and constants of the arena, in bytes.
const (
	// Granule is the multiple of every address and chunk size.
	Granule = 256
	// NumBins is the number of size classes in dumps; the last begins at 256 MiB.
	NumBins = 21
	// DefaultInitialChunk is the first region.
	DefaultInitialChunk = 1 << 20
	// DefaultMaxDead is the surplus from which a chunk is always split.
	DefaultMaxDead = 128 << 20
	// DefaultGrowthChunk is the next region after a shrink.
	DefaultGrowthChunk = 2 << 20
	// DefaultMaxExtend is where doubling ends.
	DefaultMaxExtend = 1 << 30
	// leastAsk is where asking for less and less ends.
	leastAsk = 8 << 10
)

// Strategy is how the arena grows: arena_extend_strategy.
type Strategy uint8

// The strategies.
const (
	NextPowerOfTwo Strategy = iota
	SameAsRequested
)

// Profile selects the generation of the upstream code.
type Profile uint8

// The profiles.
const (
	Core   Profile = iota // the runtime's own arena
	Plugin                // the CUDA plugin's, 2026
)

// Options configure an arena. In numbers, 0 and -1 stand for the default.
type Options struct {
	Name         string // the device in texts; "" means Cuda
	MaxMemory    int64  // max_mem: limit of all that is taken; default: none
	Strategy     Strategy
	InitialChunk int64 // initial_chunk_size_bytes
	MaxDead      int64 // max_dead_bytes_per_chunk
	GrowthChunk  int64 // initial_growth_chunk_size_bytes
	MaxExtend    int64 // max_power_of_two_extend_bytes; NoCap for none
	Profile      Profile
	// CrossStream lets a request that finds nothing else take a chunk of
	// another stream, unsplit, after a wait.
	CrossStream bool
	// Dump writes the arena's whole state to the log when a request fails.
	Dump bool
	// Order says what streams are behind of; nil means that no stream ever
	// waits for another.
	Order *stream.Order
	// OnWait hears of the waits of CrossStream: by waits for on.
	OnWait   func(by, on stream.ID)
	Observer alloc.Observer
}

// NoCap as MaxExtend lets regions double without end.
const NoCap = math.MaxInt64

func (o *Options) normalise() error {
	if o.Name == "" {
		o.Name = "Cuda"
	}
	if o.Observer == nil {
		o.Observer = alloc.NoObserver{}
	}
	for _, f := range []struct {
		option string
		n      *int64
		std    int64
	}{
		{"max_mem", &o.MaxMemory, math.MaxInt64},
		{"initial_chunk_size_bytes", &o.InitialChunk, DefaultInitialChunk},
		{"max_dead_bytes_per_chunk", &o.MaxDead, DefaultMaxDead},
		{"initial_growth_chunk_size_bytes", &o.GrowthChunk, DefaultGrowthChunk},
		{"max_power_of_two_extend_bytes", &o.MaxExtend, DefaultMaxExtend},
	} {
		if *f.n == 0 || *f.n == -1 {
			*f.n = f.std
		}
		if *f.n < 0 {
			return fmt.Errorf("ort arena: %s is %d, expected a number of bytes, or -1 for the default", f.option, *f.n)
		}
	}
	if o.Strategy > SameAsRequested {
		return fmt.Errorf("ort arena: arena_extend_strategy is %d, expected 0 (next power of two) or 1 (same as requested)", o.Strategy)
	}
	return nil
}
