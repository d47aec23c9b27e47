package reading

import (
	"strconv"

	"tideline/protocol/event"
)

// Copies is how much of the recorded time goes into copies between host and
// device. Times are nanoseconds.
type Copies struct {
	Busy  int64 // in which at least one ran
	Of    int64 // of the steps, else of all that was recorded
	Steps int64 // 0: Of is all that was recorded
	Count int64
	Bytes int64
	// Longest is the op or name of the copy that took longest, "" when it has
	// none.
	Longest      string
	LongestBytes int64
	LongestTime  int64
	ToDevice     bool // the longest
	Pinned       bool // the longest is told to be of pinned memory
}

func (c *Copies) facts() Facts {
	var f Facts
	f.Int("busy_ns", c.Busy)
	f.Int("of_ns", c.Of)
	f.IntIf("steps", c.Steps, c.Steps > 0)
	f.Int("count", c.Count)
	f.Int("bytes", c.Bytes)
	f.Text("longest", c.Longest)
	f.Int("longest_bytes", c.LongestBytes)
	f.Int("longest_ns", c.LongestTime)
	f.Bool("longest_to_device", c.ToDevice)
	f.Bool("longest_pinned", c.Pinned)
	return f
}

// Sentence says it for people.
func (c *Copies) Sentence() string {
	of := "of what was recorded"
	if c.Steps > 0 {
		of = "of the steps"
	}
	where := "to the host"
	if c.ToDevice {
		where = "to the device"
	}
	s := "Copies between host and device take " + percent(c.Busy, c.Of) + " " + of + " (" + millis(c.Busy) + " of " + millis(c.Of) + "). The longest takes " +
		millis(c.LongestTime) + ": " + event.FormatBytes(c.LongestBytes) + " " + where
	if c.Longest != "" {
		s += " for " + c.Longest
	}
	if c.LongestTime > 0 {
		s += ", at " + strconv.FormatFloat(float64(c.LongestBytes)/float64(c.LongestTime), 'f', 2, 64) + " GB/s"
	}
	if c.Pinned {
		s += ", from or to pinned memory"
	}
	return s + "."
}

func millis(ns int64) string { return strconv.FormatFloat(float64(ns)/1e6, 'f', 3, 64) + " ms" }

// percent is a part in whole percents; one that would round to nothing says so.
func percent(n, of int64) string {
	switch p := 100 * float64(n) / float64(max(of, 1)); {
	case n > 0 && p < 1:
		return "under 1 %"
	default:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	}
}
