package cause

import "tideline/protocol/event"

// Amount is a number of bytes that may be unknown. The zero value is unknown,
// so that a forgotten field never passes for a measured zero.
type Amount struct {
	N     int64
	Known bool
}

// Of is a known amount.
func Of(n int64) Amount { return Amount{n, true} }

// Or is the amount itself, or other when it is unknown.
func (a Amount) Or(other Amount) Amount {
	if a.Known {
		return a
	}
	return other
}

// Inputs are the facts of one failed request, in bytes. Any of them may be
// unknown; what is left unknown falls back as its comment says.
type Inputs struct {
	Request Amount // what the caller asked for
	Rounded Amount // what the allocator looks for; falls back to Request
	Grow    Amount // what it would have to get from the driver; falls back to Rounded

	DeviceTotal Amount // the whole device
	Limit       Amount // the allocator's own limit; falls back to DeviceTotal
	DriverFree  Amount // what the driver had left; unknown: no bound but Limit
	Reserved    Amount // held by the allocator, used or not; falls back to Limit
	InUse       Amount // handed out, without Pending
	Pending     Amount // freed, but waiting for a stream or an event
	LargestFree Amount // longest free run that this request could use
	MergedRun   Amount // longest run once Pending has landed

	OtherStream Amount // idle, but kept for another stream
	OtherPool   Amount // idle, but in another pool or arena

	Others  Amount // held by other processes
	Outside Amount // this process outside the allocator (driver context, libraries)

	HostPinned bool // the allocator hands out page-locked host memory
	Refused    bool // the driver is known to have refused to give more
}

// Kind says which sort of free bytes could not be used by a fragmented pool.
type Kind uint8

// The kinds of fragmentation.
const (
	NoKind      Kind = iota
	SplitRule        // a run is long enough, and a rule forbids to use it
	Holes            // the free bytes lie between blocks in use
	OtherStream      // they are kept for another stream
	OtherPool        // they lie in another pool or arena
)

// String is the kind's word in text and JSON.
func (k Kind) String() string {
	switch k {
	case SplitRule:
		return "split_rule"
	case Holes:
		return "holes"
	case OtherStream:
		return "other_stream"
	case OtherPool:
		return "other_pool"
	default:
		return ""
	}
}

// Verdict is the cause and the numbers that it follows from.
type Verdict struct {
	Cause event.OOMCause
	Kind  Kind // set for OOMFragmented only

	Need            Amount // bytes that the allocator looked for
	Grow            Amount // bytes it would have had to get from the driver
	Room            Amount // bytes the driver could still have given
	LargestRun      Amount // longest free run usable by the request
	AfterCompaction Amount // bytes to be had if everything in use were moved together
	Missing         Amount // what lacks even then; 0 when compaction suffices

	// TinyLimit: the limit is so small that it explains little use: under
	// 512 MiB, or under one twentieth of the device.
	TinyLimit bool
}

const (
	nonsense   = int64(1) << 50 // no device holds a pebibyte
	tinyLimit  = int64(512) << 20
	foreignMin = int64(1536) << 20 // a driver context alone stays below this
)

// Decide applies the rules in their order; the first that holds is the cause.
func Decide(in Inputs) Verdict {
	var d decision
	d.init(in)
	d.out.Cause, d.out.Kind = d.decide()
	return d.out
}

// FromChunkMap fills in what a chunk map tells: held, in use, largest hole.
func (in *Inputs) FromChunkMap(m event.ChunkMap) {
	pool, used, _, largest := m.Totals()
	in.Reserved, in.InUse, in.LargestFree = Of(pool), Of(used), Of(largest)
}

// decision holds the inputs with their fall-backs applied.
type decision struct {
	in                      Inputs
	r, g, limit, total      Amount
	reserved, used, ceiling Amount // used includes what is pending
	out                     Verdict
}

func (d *decision) init(in Inputs) {
	d.in, d.total = in, in.DeviceTotal
	d.r = in.Rounded.Or(in.Request)
	d.g = in.Grow.Or(d.r)
	d.limit = in.Limit.Or(in.DeviceTotal)
	d.reserved = in.Reserved.Or(d.limit)
	d.used = in.InUse
	if d.used.Known && in.Pending.Known {
		d.used.N += in.Pending.N
	}
	d.fillNumbers()
}

func (d *decision) fillNumbers() {
	o := &d.out
	o.Need, o.Grow, o.LargestRun = d.r, d.g, d.in.LargestFree
	d.ceiling = d.limit
	if d.reserved.Known && d.limit.Known {
		o.Room = Of(max(0, d.limit.N-d.reserved.N))
	}
	if d.in.DriverFree.Known {
		if !o.Room.Known || d.in.DriverFree.N < o.Room.N {
			o.Room = d.in.DriverFree
		}
		if d.reserved.Known && (!d.ceiling.Known || d.reserved.N+d.in.DriverFree.N < d.ceiling.N) {
			d.ceiling = Of(d.reserved.N + d.in.DriverFree.N)
		}
	}
	if d.ceiling.Known && d.used.Known {
		o.AfterCompaction = Of(d.ceiling.N - d.used.N)
		if d.r.Known && d.r.N >= 0 && d.r.N < nonsense {
			o.Missing = Of(max(0, d.r.N-o.AfterCompaction.N))
		}
	}
	o.TinyLimit = d.limit.Known && !d.limitIsAll() && (d.limit.N < tinyLimit ||
		d.total.Known && d.limit.N < d.total.N && d.limit.N < d.total.N/20)
}

// limitIsAll says that the device has nothing beyond the limit, however small
// that is.
func (d *decision) limitIsAll() bool {
	return d.total.Known && d.in.Others.Known && d.limit.N >= d.total.N-d.in.Others.N-d.in.Outside.N
}

func (d *decision) decide() (event.OOMCause, Kind) {
	switch {
	case d.notMemory():
		return event.OOMNotMemory, NoKind
	case d.exceedsDevice():
		return event.OOMRequestExceedsDevice, NoKind
	case d.limitTooLow():
		return d.hostOr(event.OOMLimitTooLow), NoKind
	case !d.r.Known || !d.used.Known || !d.ceiling.Known:
		return event.OOMUndetermined, NoKind
	case d.retryable():
		return event.OOMRetryable, NoKind
	case d.otherProcess():
		return event.OOMOtherProcess, NoKind
	case d.used.N+d.r.N <= d.ceiling.N:
		return event.OOMFragmented, d.kind()
	}
	return d.hostOr(event.OOMFull), NoKind
}

// hostOr names a full or small pinned pool for what it is: not the device.
func (d *decision) hostOr(c event.OOMCause) event.OOMCause {
	if d.in.HostPinned {
		return event.OOMHostPinnedLimit
	}
	return c
}

func (d *decision) notMemory() bool {
	n := d.in.Request.Or(d.r)
	if !n.Known {
		return false
	}
	// More than a thousand devices, to the byte: a product could overflow.
	return n.N < 0 || n.N >= nonsense ||
		d.total.Known && d.total.N > 0 && (n.N-1)/1000 >= d.total.N
}

func (d *decision) exceedsDevice() bool {
	return d.r.Known && d.total.Known && d.r.N > d.total.N-d.in.Outside.N
}

func (d *decision) limitTooLow() bool {
	if !d.limit.Known {
		return false
	}
	if d.r.Known && d.r.N > d.limit.N {
		return true
	}
	if d.used.Known && d.out.TinyLimit && d.used.N < d.limit.N/10 {
		return true
	}
	if !d.r.Known || !d.used.Known || !d.total.Known || d.limit.N >= d.total.N {
		return false
	}
	want := d.used.N + d.r.N
	mine, known := d.obtainable()
	return known && want > d.limit.N && want <= mine
}

// obtainable is what this allocator could hold if its limit were lifted: the
// device without others and without this process's own overhead.
func (d *decision) obtainable() (int64, bool) {
	if d.in.Others.Known {
		return d.total.N - d.in.Others.N - d.in.Outside.N, true
	}
	if d.in.DriverFree.Known && d.reserved.Known {
		return d.reserved.N + d.in.DriverFree.N, true
	}
	return 0, false
}

func (d *decision) retryable() bool {
	if d.in.MergedRun.Known {
		return d.in.Pending.N > 0 && d.in.MergedRun.N >= d.r.N
	}
	return d.in.Pending.N > 0 && d.in.LargestFree.Known &&
		d.in.Pending.N+d.in.LargestFree.N >= d.r.N
}

// otherProcess: the allocator was still allowed to grow, and the driver had
// nothing to give because somebody else held it.
func (d *decision) otherProcess() bool {
	if !d.reserved.Known || !d.limit.Known || d.reserved.N+d.g.N > d.limit.N {
		return false
	}
	free := d.in.DriverFree
	if !free.Known {
		// It failed although growth was allowed, so the driver must have
		// refused, whether or not the text says so.
		return true
	}
	if free.N >= d.g.N {
		return false
	}
	lack := d.g.N - free.N
	switch {
	case d.in.Others.Known:
		return d.in.Others.N >= lack
	case d.total.Known:
		return d.total.N-free.N-d.reserved.N-d.in.Outside.N > max(foreignMin, lack)
	default:
		return d.in.Refused
	}
}

func (d *decision) kind() Kind {
	if d.in.LargestFree.Known && d.in.LargestFree.N >= d.r.N {
		return SplitRule
	}
	own := d.reserved.N - d.used.N - d.in.OtherStream.N - d.in.OtherPool.N + d.out.Room.N
	switch {
	case own >= d.r.N:
		return Holes
	case own+d.in.OtherStream.N >= d.r.N:
		return OtherStream
	default:
		return OtherPool
	}
}
