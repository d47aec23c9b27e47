package torch

import (
	"strconv"

	"tideline/shared/alloc"
)

// OutOfMemory tells of a request that failed, after everything idle that could
// be given back was given back, unless it says otherwise. Bytes.
type OutOfMemory struct {
	Device    int
	Requested int64
	Rounded   int64
	Segment   int64 // what the driver was asked for; the text's "tried"
	Stream    Stream
	Pool      PoolID
	Absurd    bool // beyond 2^60 bytes: nothing was tried, and nothing below is set
	// Preempted: refused by throw_on_cudamalloc_oom. The driver was not asked, and
	// nothing idle was given back.
	Preempted bool

	DeviceTotal int64 // 0 when unknown
	DeviceFree  int64
	Limit       int64 // 0 when there is none
	Reserved    int64
	Allocated   int64
	Pending     int64 // freed, but waiting for a stream
	DriverRoom  int64 // what could still have been had: the less of limit and device

	IdleSameStream        int64 // free blocks of the request's pool and stream
	LargestIdleSameStream int64
	IdleOtherStreams      int64 // of the same pool
	IdleOtherPool         int64 // small instead of large, private instead of default
	IdlePrivate           int64 // free blocks of all private pools
}

// Failure is the last request that failed, or nil.
func (a *Allocator) Failure() *OutOfMemory { return a.failure }

func (a *Allocator) outOfMemory(q *ask) {
	free, total := a.memory()
	o := &OutOfMemory{
		Device: a.o.Device, Requested: q.bytes, Rounded: q.rounded, Segment: a.settings.Segment(q.rounded),
		Stream: q.arena.stream, Pool: q.arena.id(), DeviceTotal: total, DeviceFree: free, Limit: a.Limit(), Reserved: a.reserved,
		Allocated:  a.stats.counters[all][allocatedBytes].current,
		DriverRoom: min(free, a.limit-a.reserved),
	}
	o.Pending = a.stats.counters[all][activeBytes].current - o.Allocated
	for _, ar := range a.arenas {
		bytes := ar.free.bytes
		if ar.pool.owner != nil {
			o.IdlePrivate += bytes
		}
		switch {
		case ar == q.arena:
			o.IdleSameStream += bytes
			o.LargestIdleSameStream = ar.free.largest()
		case ar.pool == q.arena.pool:
			o.IdleOtherStreams += bytes
		default:
			o.IdleOtherPool += bytes
		}
	}
	a.failure = o
	if o.Preempted = q.preempted; !o.Preempted {
		a.stats.ooms++
		a.trace(ActionOOM, uint64(free), q.rounded, q.arena.stream)
	}
	a.obs.Log(alloc.Warning, o.Error())
}

// Error is the text that PyTorch 2.2 and later raise, without the sentences
// about processes, which only the device's owner can know.
func (o *OutOfMemory) Error() string { return o.Text("") }

// Text is Error with sentences about processes put where they belong; they end
// with a blank.
func (o *OutOfMemory) Text(processes string) string {
	if o.Absurd {
		return "CUDA out of memory. Tried to allocate more than 1EB memory."
	}
	if o.Preempted {
		return "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit." +
			" Requested size: " + FormatSize(o.Requested)
	}
	s := "CUDA out of memory. Tried to allocate " + FormatSize(o.Segment) +
		". GPU " + strconv.Itoa(o.Device) + " has a total capacity of " + FormatSize(o.DeviceTotal) +
		" of which " + FormatSize(o.DeviceFree) + " is free. " + processes
	if o.Limit > 0 {
		s += FormatSize(o.Limit) + " allowed; "
	}
	s += "Of the allocated memory " + FormatSize(o.Allocated+o.IdlePrivate) + " is allocated by PyTorch, "
	if o.IdlePrivate > 0 {
		s += "with " + FormatSize(o.IdlePrivate) + " allocated in private pools (e.g., CUDA Graphs), "
	}
	return s + "and " + FormatSize(o.Reserved-o.Allocated-o.IdlePrivate) + " is reserved by PyTorch but unallocated." + advice
}

// advice is what every such text ends with, whatever is set.
const advice = " If reserved but unallocated memory is large try setting" +
	" PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation." +
	"  See documentation for Memory Management " +
	" (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"

// FormatSize writes bytes as PyTorch's texts do: plain up to 1024, then with
// two decimals in KiB, MiB or GiB, which is the largest.
func FormatSize(n int64) string {
	switch {
	case n <= 1<<10:
		return strconv.FormatInt(n, 10) + " bytes"
	case n <= 1<<20:
		return hundredths(n, 1<<10) + " KiB"
	case n <= 1<<30:
		return hundredths(n, 1<<20) + " MiB"
	default:
		return hundredths(n, 1<<30) + " GiB"
	}
}

func hundredths(n, unit int64) string {
	return strconv.FormatFloat(float64(n)/float64(unit), 'f', 2, 64)
}
