package input

import "fmt"

// The thresholds of the profiler, in percent of the step time.
const (
	InputModerate  = 5.0
	InputHigh      = 20.0
	OutputModerate = 5.0
	OutputHigh     = 20.0
	OtherModerate  = 3.0 // of unexplained time, kernel launches and collectives each
	OtherHigh      = 15.0
)

// Verdict is how much a run is bound by its input.
type Verdict uint8

// The verdicts.
const (
	NoData Verdict = iota // there are no steps with time
	NotBound
	PotentiallyBound // little waiting, but unexplained time
	ModeratelyBound
	HighlyBound
)

var verdictNames = [...]string{"no data", "NOT input-bound", "POTENTIALLY input-bound", "MODERATELY input-bound", "HIGHLY input-bound"}

func (v Verdict) String() string {
	if int(v) >= len(verdictNames) {
		return "verdict " + fmt.Sprint(uint8(v))
	}
	return verdictNames[v]
}

// Bottleneck is where to look, by the profiler's words: unknown, host, both,
// device.
func (v Verdict) Bottleneck() string {
	switch v {
	case HighlyBound:
		return "host"
	case ModeratelyBound, PotentiallyBound:
		return "both"
	case NotBound:
		return "device"
	default:
		return "unknown"
	}
}

// Level is how much of the step something takes.
type Level uint8

// The levels.
const (
	Low Level = iota
	Moderate
	High
)

func (l Level) String() string {
	switch l {
	case High:
		return "high"
	case Moderate:
		return "moderate"
	default:
		return "low"
	}
}

func level(percent, moderate, high float64) Level {
	switch {
	case percent >= high:
		return High
	case percent >= moderate:
		return Moderate
	}
	return Low
}

// Summary is what the time of one or more steps says. All parts are percent
// of the step time.
type Summary struct {
	Verdict                                              Verdict
	Input, Output, Compute, Collectives, Launches, Other float64
	Idle                                                 float64 // what input, output, compute and collectives leave
	OutputLevel, LaunchLevel, CollectiveLevel            Level
	OtherLevel                                           Level
}

// Judge gives the verdict on a step's time, or on that of many added.
func Judge(s Step) Summary {
	out := Summary{
		Input:       s.Percent(HostWaitInput, HostToDevice, DeviceWaitHost),
		Output:      s.Percent(DeviceToHost),
		Compute:     s.Percent(DeviceCompute32, DeviceCompute16),
		Collectives: s.Percent(DeviceCollectives),
		Launches:    s.Percent(HostPrepare),
		Other:       s.Percent(Unknown),
	}
	out.Idle = max(0, 100-out.Input-out.Output-out.Compute-out.Collectives)
	out.OutputLevel = level(out.Output, OutputModerate, OutputHigh)
	out.LaunchLevel = level(out.Launches, OtherModerate, OtherHigh)
	out.CollectiveLevel = level(out.Collectives, OtherModerate, OtherHigh)
	out.OtherLevel = level(out.Other, OtherModerate, OtherHigh)
	switch {
	case s.Nanos == 0:
		out.Verdict, out.Idle = NoData, 0
	case out.Input >= InputHigh:
		out.Verdict = HighlyBound
	case out.Input >= InputModerate:
		out.Verdict = ModeratelyBound
	case out.Other >= OtherModerate:
		out.Verdict = PotentiallyBound
	default:
		out.Verdict = NotBound
	}
	return out
}
