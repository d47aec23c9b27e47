package device

import "strconv"

const mib = 1 << 20

// Reserve is what TensorFlow leaves to the system of a card with so many free
// bytes and this major compute capability (gpu_device.cc, current rule).
func Reserve(free int64, major int) int64 {
	switch {
	case free < 2048*mib:
		return 225 * mib
	case major <= 6:
		return 500 * mib
	case major == 7:
		return 1050 * mib
	case major == 8:
		return 1536 * mib
	default:
		return 1800 * mib
	}
}

// ReserveOld is the rule of TensorFlow up to 2.1 and some later releases.
func ReserveOld(free int64) int64 {
	if free < 2048*mib {
		return 225 * mib
	}
	return max(300*mib, free/20)
}

// DefaultLimit is what a logical device may take when nothing is configured:
// what is free now but for the reserve, or all of it where the reserve is not
// to be had.
func DefaultLimit(free, reserve int64) int64 {
	if reserve < free {
		return free - reserve
	}
	return free
}

// Memory is what the driver says of a card's memory when a device is made,
// after the contexts of all cards in use.
type Memory struct {
	Total, Free int64 // bytes
	Major       int   // compute capability
}

// Budget is the limit of a logical device and how it came about.
type Budget struct {
	Limit   int64 // bytes
	Reserve int64 // bytes of Free that the limit leaves; 0 where the limit does not follow from Free
	Unified bool  // the limit may exceed the card: memory pages to and from the host
	Warning []string
}

// Limit is the limit of a GPU that is not cut into logical devices
// (gpu_device.cc). The name is for messages.
func (o *Options) Limit(m Memory, env Env, name string) (Budget, error) {
	var b Budget
	b.Unified = o.Fraction > 1 || o.UseUnifiedMemory
	if b.Unified && m.Major < 6 {
		return b, &Error{
			Kind: Internal, Device: name, Setting: "unified memory",
			Message: "needs compute capability 6.0 or newer, this card has " + decimal(int64(m.Major)) + "; use a fraction of at most 1",
		}
	}
	if o.Fraction < 0 || o.Fraction != o.Fraction {
		return b, &Error{Kind: InvalidArgument, Device: name, Setting: "per_process_gpu_memory_fraction", Message: "is negative or no number"}
	}
	fromFree := func(limit int64) { b.Limit, b.Reserve = limit, m.Free-limit }
	if o.Fraction == 0 {
		fromFree(DefaultLimit(m.Free, o.reserve(m)))
	} else {
		b.Limit = int64(float64(m.Total) * o.Fraction)
	}
	if o.SystemMemoryMiB > 0 {
		if want := int64(o.SystemMemoryMiB) * mib; want <= m.Free {
			fromFree(m.Free - want)
		} else {
			b.warn("gpu_system_memory_size_in_mb=" + decimal(int64(o.SystemMemoryMiB)) + " is more than the " + decimal(m.Free/mib) + " MiB that " + name + " has free: ignored")
		}
	}
	n, bad, ok := env.number("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", 0)
	if bad != "" {
		b.warn("TF_DEVICE_MIN_SYS_MEMORY_IN_MB=" + bad + " is no number of MiB: ignored")
	}
	if ok {
		fromFree(m.Free - min(n, m.Free/mib+1)*mib)
	}
	if b.Limit <= 0 {
		return b, &Error{
			Kind: InvalidArgument, Device: name, Setting: "memory limit",
			Message: "comes to " + decimal(b.Limit) + " bytes of " + decimal(m.Free) + " free, with which every allocation would fail: leave less to the system, or free memory",
		}
	}
	return b, nil
}

func (o *Options) reserve(m Memory) int64 {
	if o.ReserveRule == ReserveTF21 {
		return ReserveOld(m.Free)
	}
	return Reserve(m.Free, m.Major)
}

func (b *Budget) warn(text string) { b.Warning = append(b.Warning, text) }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
