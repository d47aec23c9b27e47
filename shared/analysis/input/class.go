package input

import (
	"cmp"
	"slices"
	"strconv"
)

// Class is what a moment of a step was spent on. Where two overlap, the
// greater one has the moment: time on the device hides what the host does.
type Class uint8

// The classes, by rising priority.
const (
	Unknown Class = iota
	HostCompute
	Preprocess
	Postprocess
	Batching
	Runtime
	Compile
	HostToHost
	HostToDevice
	HostPrepare // kernel launches
	DeviceCollectives
	HostWaitInput
	DeviceToDevice
	DeviceToHost
	DeviceCompute32
	DeviceCompute16
	DeviceWaitDevice
	DeviceWaitHost
	numClasses
)

// NumClasses is the number of classes.
const NumClasses = int(numClasses)

// priorities are the profiler's own numbers, for those who compare.
var priorities = [numClasses]int{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 160, 170}

var classNames = [numClasses]string{
	"unknown", "host compute", "preprocess", "postprocess", "batching", "runtime", "compile", "host to host",
	"host to device", "host prepare", "device collectives", "host wait input", "device to device", "device to host",
	"device compute fp32", "device compute fp16", "device wait device", "device wait host",
}

func (c Class) String() string {
	if c >= numClasses {
		return "class " + strconv.Itoa(int(c))
	}
	return classNames[c]
}

// Priority is the profiler's number of a class; -1 for one that does not exist.
func (c Class) Priority() int {
	if c >= numClasses {
		return -1
	}
	return priorities[c]
}

// Span is a stretch of time, in nanoseconds, that something took.
type Span struct {
	Begin, End int64
	Class      Class
}

// Step is a step's time by class, in nanoseconds. What no span covers is
// Unknown's.
type Step struct {
	Nanos   int64
	ByClass [NumClasses]int64
}

// StepOf gives every moment from begin to end to the greatest class of the
// spans that cover it. Spans may lie in any order and reach beyond the step;
// they are sorted in place.
func StepOf(begin, end int64, spans []Span) Step {
	s := Step{Nanos: max(0, end-begin)}
	slices.SortFunc(spans, func(a, b Span) int { // for each step of a run: not sort.Slice
		switch {
		case a.Begin != b.Begin:
			return cmp.Compare(a.Begin, b.Begin)
		case a.Class != b.Class:
			return cmp.Compare(b.Class, a.Class)
		}
		return cmp.Compare(b.End, a.End)
	})
	// until is, by class, when the last span that has begun ends.
	var until [NumClasses]int64
	at, next := begin, 0
	for at < end {
		for next < len(spans) && spans[next].Begin <= at {
			if x := spans[next]; x.Class < numClasses {
				until[x.Class] = max(until[x.Class], x.End)
			}
			next++
		}
		c := NumClasses - 1
		for c > 0 && until[c] <= at {
			c--
		}
		to := end
		if next < len(spans) {
			to = min(to, spans[next].Begin)
		}
		if c > 0 {
			to = min(to, until[c])
		}
		s.ByClass[c] += to - at
		at = to
	}
	return s
}

// Add adds another step's time.
func (s *Step) Add(o Step) {
	s.Nanos += o.Nanos
	for i := range s.ByClass {
		s.ByClass[i] += o.ByClass[i]
	}
}

// Percent is the part that classes have of the step, 0 without any time.
func (s *Step) Percent(classes ...Class) float64 {
	if s.Nanos == 0 {
		return 0
	}
	var n int64
	for _, c := range classes {
		n += s.ByClass[c]
	}
	return 100 * float64(n) / float64(s.Nanos)
}
