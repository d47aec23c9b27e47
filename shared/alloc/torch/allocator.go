package torch

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"tideline/shared/alloc"
)

// Options configure an allocator.
type Options struct {
	Name     string // "" means GPU_0_torch
	Settings Settings
	// Device is the device's ordinal, for texts and snapshots.
	Device int
	// DeviceTotal is the device's memory in bytes where the driver does not
	// tell it (MemoryInfo); 0 means unlimited.
	DeviceTotal int64
	// Fraction limits what is reserved to a part of the device's memory; 1 means
	// no limit, 0 what the settings say.
	Fraction float64
	Streams  Streams // nil means that recorded work is done at the next request
	Observer alloc.Observer
	Tracer   Tracer
	// FreeSome is asked, on a miss, to free blocks of this allocator; it says
	// whether it did.
	FreeSome func() bool
}

// Allocator is the caching allocator of one device. It is not safe for
// concurrent use.
type Allocator struct {
	o        Options
	settings Settings
	split    int64 // settings.maxSplit()
	collect  bool  // garbage collection is on
	divide   bool  // some size is rounded to a step
	limit    int64 // unlimited when there is none
	total    int64 // the device's bytes; 0 when unlimited
	driver   alloc.SubAllocator
	virtual  VirtualMemory // nil where the driver cannot map
	info     MemoryInfo    // nil where the driver does not tell
	obs      alloc.Observer
	tracer   Tracer

	blocks     []block
	spareBlock uint32
	index      index

	pools       [numKinds]*pool
	arenas      []*arena
	spareArenas []*arena
	privates    []*private // ascending by id
	freeable    []*private // in the order in which they lost their last user
	captures    []capture
	places      []reservation
	surplus     map[uint64]int64 // what the driver gave beyond a segment's size

	queues   []queue      // outstanding events, one queue per stream
	pending  int          // events in all queues
	deferred []uint32     // freed during a capture, with recorded streams
	useLists [][]recorded // recorded streams of blocks; entry 0 is unused
	spareUse []uint32
	scratch  []uint32

	reserved int64
	stats    table
	nextID   int64
	largest  int64 // largest block handed out
	stream   Stream
	pool     PoolID
	failure  *OutOfMemory
}

var _ alloc.Allocator = (*Allocator)(nil)

// New returns an empty allocator over a driver.
func New(driver alloc.SubAllocator, o Options) (*Allocator, error) {
	if driver == nil {
		return nil, errors.New("torch: no driver to take segments from")
	}
	if o.Name == "" {
		o.Name = "GPU_" + strconv.Itoa(o.Device) + "_torch"
	}
	a := &Allocator{
		o: o, driver: driver, obs: o.Observer, tracer: o.Tracer, limit: unlimited, nextID: 1,
		spareBlock: none, useLists: make([][]recorded, 1),
	}
	a.virtual, _ = driver.(VirtualMemory)
	a.info, _ = driver.(MemoryInfo)
	if a.obs == nil {
		a.obs = alloc.NoObserver{}
	}
	a.total = o.DeviceTotal
	if a.info != nil {
		if _, total := a.info.Memory(); total > 0 {
			a.total = total
		}
	}
	for k := small; k <= large; k++ {
		a.pools[k] = &pool{kind: k}
	}
	if err := a.SetSettings(o.Settings); err != nil {
		return nil, err
	}
	f := o.Fraction
	if f == 0 {
		f = o.Settings.Fraction
	}
	if f != 0 {
		if err := a.SetFraction(f); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// SetSettings changes the settings from the next request on. What is held
// stays as it is.
func (a *Allocator) SetSettings(s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Backend != Native {
		return fmt.Errorf("torch: backend %s is another allocator; this one is backend native", s.Backend)
	}
	if s.Expandable && a.virtual == nil {
		return errors.New("torch: expandable_segments needs a driver that maps pages, and this one only hands out segments; use a torch.Device")
	}
	a.settings = s
	a.split = s.maxSplit()
	a.divide = s.Divisions != [divisionSlots]int64{}
	a.stats.maxSplit = a.split
	a.updateCollect()
	return nil
}

// Settings are the present ones.
func (a *Allocator) Settings() Settings { return a.settings }

// SetFraction limits what is reserved to a part of the device's memory; 1
// removes the limit.
func (a *Allocator) SetFraction(f float64) error {
	switch {
	case !(f > 0 && f <= 1):
		return fmt.Errorf("torch: memory fraction %v, expected above 0 and at most 1", f)
	case f == 1:
		a.limit = unlimited
	case a.total == 0:
		return fmt.Errorf("torch: a memory fraction of %v needs a device with a known size", f)
	default:
		a.limit = int64(f * float64(a.total))
	}
	a.updateCollect()
	return nil
}

func (a *Allocator) updateCollect() {
	a.collect = a.limit != unlimited && a.settings.GarbageCollection > 0
}

// Name implements alloc.Allocator.
func (a *Allocator) Name() string { return a.o.Name }

// Limit implements alloc.Allocator.
func (a *Allocator) Limit() int64 {
	if a.limit == unlimited {
		return 0
	}
	return a.limit
}

// EmptyCache gives every segment back that holds no block in use, after
// waiting for all streams. Within a capture, which may not wait, only private
// pools without users lose theirs.
func (a *Allocator) EmptyCache() {
	if len(a.captures) == 0 {
		a.releaseAll()
	} else {
		a.releaseUnused()
	}
}

// Stats implements alloc.Allocator. Pool is what is reserved.
func (a *Allocator) Stats() alloc.Stats {
	bytes := &a.stats.counters[all][allocatedBytes]
	held := &a.stats.counters[all][reservedBytes]
	s := alloc.Stats{
		NumAllocs: a.stats.counters[all][allocations].total, InUse: bytes.current, PeakInUse: bytes.peak,
		LargestAlloc: a.largest, Limit: a.Limit(), PeakAllocated: bytes.peak, Pool: held.current, PeakPool: held.peak,
	}
	for _, ar := range a.arenas {
		s.LargestFree = max(s.LargestFree, ar.free.largest())
	}
	return s
}

// ClearStats implements alloc.Allocator.
func (a *Allocator) ClearStats() {
	a.ResetAccumulated()
	a.ResetPeaks()
	a.largest = 0
}

// memory is what the driver could still give and what the device has.
func (a *Allocator) memory() (free, total int64) {
	if a.info != nil {
		if free, total = a.info.Memory(); total > 0 {
			return free, total
		}
	}
	if a.total > 0 {
		return max(0, a.total-a.reserved), a.total
	}
	return math.MaxInt64, 0
}
