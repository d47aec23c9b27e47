package input

import "strings"

// HostClass is what the host does for the input.
type HostClass uint8

// The host's classes.
const (
	Preprocessing HostClass = iota // what is left of the data ops
	DemandedRead                   // files, read when they are asked for
	AdvancedRead                   // files, read ahead or from memory
	Enqueue                        // sending to the device
	numHostClasses
)

// NumHostClasses is the number of the host's classes.
const NumHostClasses = int(numHostClasses)

func (c HostClass) String() string {
	switch c {
	case Preprocessing:
		return "preprocessing"
	case DemandedRead:
		return "demanded file reads"
	case AdvancedRead:
		return "advanced file reads"
	case Enqueue:
		return "enqueue"
	default:
		return "unknown"
	}
}

// readers and ahead are parts of op names, without case or underscores: what
// reads files, and what makes of a read one ahead of its time.
var (
	readers = []string{"tfrecord", "textline", "fixedlengthrecord", "sstable", "recordio"}
	ahead   = []string{"memoryreader", "memorywriter", "interleave", "prefetch", "parallelmap"}
)

// ClassifyHost tells what a data op does by its name, TensorFlow's
// ("Iterator::Prefetch::TFRecord") or that of one of our own stages.
func ClassifyHost(name string) HostClass {
	n := strings.ReplaceAll(strings.ToLower(name), "_", "")
	switch n {
	case "fromslices", "files":
		return DemandedRead
	case "interleave":
		return AdvancedRead
	case "prefetchtodevice":
		return Enqueue
	}
	if !contains(n, readers) {
		return Preprocessing
	}
	if contains(n, ahead) {
		return AdvancedRead
	}
	return DemandedRead
}

func contains(name string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(name, p) {
			return true
		}
	}
	return false
}

// HostTime is the host's time for the input by class, in nanoseconds.
type HostTime [NumHostClasses]float64

// BreakDown scales the raw time of host ops to the time that the host spent on
// the input. enqueue is the host's time to send, hostToDevice the part of the
// step that copies took. The others get what they would need if the ratio of
// enqueue to all were that of copies to the step, each in proportion. Without
// copies in the step nothing is known of the ratio and the times stay raw.
func BreakDown(raw HostTime, enqueue, hostToDevice, step int64) HostTime {
	out := raw
	out[Enqueue] = float64(enqueue)
	var sum float64
	for c, n := range raw {
		if HostClass(c) != Enqueue {
			sum += n
		}
	}
	if step <= 0 || hostToDevice <= 0 || sum == 0 {
		return out
	}
	r := min(1, float64(hostToDevice)/float64(step))
	rest := float64(enqueue) * (1 - r) / r
	for c := range out {
		if HostClass(c) != Enqueue {
			out[c] = raw[c] / sum * rest
		}
	}
	return out
}
