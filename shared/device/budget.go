package device

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
