package bfc

import (
	"errors"
	"fmt"
	"math"

	"tideline/shared/alloc"
)

// The constants of bfc_allocator.h.
const (
	// MinAllocation is the granule: every address and chunk size is a multiple.
	MinAllocation = 256
	minBits       = 8
	// NumBins is the number of size bins; bin b begins at 256 << b bytes.
	NumBins = 21
	// FirstRegion is the first region asked for with growth, in bytes.
	FirstRegion = 2 << 20
	// SplitWaste is the surplus from which a chunk is always split, in bytes.
	SplitWaste = 128 << 20
	// RetryNanos is how long a failed request waits for memory.
	RetryNanos = int64(10_000_000_000)
	// InvalidHandle stands for no chunk in texts.
	InvalidHandle = math.MaxUint64
)

// Profile selects the generation of the upstream code.
type Profile uint8

// The profiles.
const (
	Current Profile = iota // OpenXLA TSL, August 2026
	Classic                // TensorFlow up to TSL of June 2024
)

// String is the profile's name.
func (p Profile) String() string {
	if p == Classic {
		return "classic"
	}
	return "current"
}

// Generation of spatial partitioning.
type Generation uint8

// The generations. Gen1 existed for two months in 2026 and is kept because
// recorded answers of the original exist for it.
const (
	Gen2 Generation = iota
	Gen1
)

// HoleSplit says when a reused hole of a partitioned region is split.
type HoleSplit uint8

// The rules: as elsewhere in the allocator, or whenever the hole is larger.
const (
	SplitBFC HoleSplit = iota
	SplitExact
)

// HoleOrder says which of several holes of equal size is reused first.
type HoleOrder uint8

// The orders, by address.
const (
	Ascending HoleOrder = iota
	Descending
)

// EndPolicy is how one end of a partitioned region reuses its holes.
type EndPolicy struct {
	Split HoleSplit
	Order HoleOrder
}

// Partition makes one fixed region serve two kinds of request from its two
// ends, with one gap between them. It needs Growth off and no timing counter.
type Partition struct {
	On           bool
	Generation   Generation
	Lower, Upper EndPolicy // Gen2 only
}

// Options configure an allocator. The zero value of a field is TensorFlow's
// default for a GPU unless said otherwise.
type Options struct {
	Name    string // shown in logs: GPU_0_bfc
	Limit   int64  // most bytes to take from the driver, not rounded
	Growth  bool   // doubling regions instead of one region of the whole limit
	NoRetry bool   // disallow_retry_on_allocation_failure
	// GarbageCollection gives wholly free regions back before failing.
	// TensorFlow switches it on for GPUs.
	GarbageCollection bool
	// Fragmentation, above 0, makes that fraction of Limit the surplus from
	// which a chunk is always split.
	Fragmentation float64
	Profile       Profile
	Partition     Partition
	// Failures is shared by the allocators of a process; nil: one of its own.
	Failures *alloc.FailureLog
	// Observer hears of regions, waits and texts; nil hears nothing.
	Observer alloc.Observer
	// OnFailure, if set, is called at every failed attempt, where upstream
	// writes its memory map when TF_BFC_MEMORY_DUMP is set.
	OnFailure func()
}

// ErrOptions is wrapped by every error of New.
var ErrOptions = errors.New("bfc allocator")

func (o *Options) check() error {
	switch {
	case o.Limit < 0:
		return fmt.Errorf("%w: the limit %d is negative", ErrOptions, o.Limit)
	case o.Limit > math.MaxInt64-MinAllocation:
		return fmt.Errorf("%w: the limit %d leaves no room for rounding", ErrOptions, o.Limit)
	case math.IsNaN(o.Fragmentation) || o.Fragmentation < 0 || o.Fragmentation > 1:
		return fmt.Errorf("%w: the fragmentation fraction %v is not between 0 and 1", ErrOptions, o.Fragmentation)
	case o.Fragmentation > 0 && o.Fragmentation*float64(o.Limit) < 1:
		// Upstream then splits off chunks of size zero and corrupts itself.
		return fmt.Errorf("%w: the fragmentation fraction %v of %d bytes is less than a byte; use 0 for the default",
			ErrOptions, o.Fragmentation, o.Limit)
	case o.Partition.On && o.Profile == Classic:
		return fmt.Errorf("%w: partitioning does not exist in the classic profile", ErrOptions)
	case o.Partition.On && o.Growth:
		return fmt.Errorf("%w: partitioning needs one fixed region, so growth must be off", ErrOptions)
	}
	return nil
}
