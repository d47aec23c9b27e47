package foreign

import (
	"fmt"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/driverlog"
)

// Begun gives each dump what lines before it tell of its device at the start.
func Begun(rep *driverlog.Report, log *bfclog.Log) {
	for _, d := range log.Dumps {
		n, ok := deviceOf(d.Allocator)
		if !ok {
			continue
		}
		if s := rep.Started(n, d.Line); s != nil {
			d.Start = bfclog.Start{Card: s.Name, Total: s.Total, Free: s.Free, Promised: s.Promised}
		}
	}
}

// deviceOf is the number of the device whose pool has such a name: GPU_0_bfc.
// An unnamed allocator, as old dumps have it, is that of the first.
func deviceOf(allocator string) (int64, bool) {
	if allocator == "" {
		return 0, true
	}
	s, ok := strings.CutPrefix(allocator, "GPU_")
	if !ok {
		return 0, false
	}
	num, _, _ := strings.Cut(s, "_")
	n, err := strconv.ParseInt(num, 10, 32)
	return n, err == nil && n >= 0
}

// Starts judges what TensorFlow said of its devices when it began, where nothing
// else in the text tells of memory. It is nil where it said nothing of how much
// it may have.
func Starts(rep *driverlog.Report) *reading.Reading {
	var list []reading.Value
	var first, worst *driverlog.Start
	for i := range rep.Starts {
		s := &rep.Starts[i]
		if !s.Promised.Known {
			continue
		}
		if first == nil {
			first = s
		}
		if worst == nil || promise(s) < promise(worst) {
			worst = s
		}
		list = append(list, reading.Object(startFacts(s)))
	}
	if worst == nil {
		return nil
	}
	r := &reading.Reading{Kind: "tf-device-start", Line: first.Line, Name: "TensorFlow's start"}
	r.Facts.Set("devices", reading.List(list...))
	for i := range rep.Starts {
		if s := &rep.Starts[i]; s.Promised.Known {
			label := "GPU:" + strconv.FormatInt(s.Device, 10)
			r.Row(label, strings.TrimSpace(fmt.Sprintf("%s for the allocator%s", event.FormatBytes(s.Promised.N), within(s))))
		}
	}
	r.Verdict, r.Why = startVerdict(worst)
	if r.Verdict == "other_process" || r.Verdict == "limit_too_low" {
		r.Open = append(r.Open, "Who holds the memory, or which limit was set, is not in the text.")
		r.Next = []string{"See with nvidia-smi, before the program starts, what else is on the card; if a memory limit or a fraction is set, raise it."}
	} else {
		r.Open = append(r.Open, "What the program used of it is not in the text.")
	}
	return r
}

func startFacts(s *driverlog.Start) (f reading.Facts) {
	f.Int("device", s.Device)
	f.Text("card", s.Name)
	f.Text("start_total_text", s.Total.Text)
	f.Text("start_free_text", s.Free.Text)
	f.Int("promised_bytes", s.Promised.N)
	return f
}

// within is what else the start tells of the device's memory.
func within(s *driverlog.Start) string {
	switch {
	case s.Total.Known && s.Free.Known:
		return fmt.Sprintf(", %s of %s were free", bfclog.Spaced(s.Free.Text), bfclog.Spaced(s.Total.Text))
	case s.Total.Known:
		return " of " + bfclog.Spaced(s.Total.Text)
	default:
		return ""
	}
}

// promise is how much of its device an allocator may have, 0 to 1; of a device
// of unknown size as if it had 8 GiB.
func promise(s *driverlog.Start) float64 {
	of := int64(8) << 30
	if s.Total.Known && s.Total.N > 0 {
		of = s.Total.N
	}
	return float64(s.Promised.N) / float64(of)
}

// smallPart is the part of its device below which an allocator's share is no
// whole card's.
const smallPart = 0.5

func startVerdict(s *driverlog.Start) (verdict, why string) {
	gpu := "GPU:" + strconv.FormatInt(s.Device, 10)
	has := event.FormatBytes(s.Promised.N)
	switch {
	case s.Promised.N < startFree && full(s):
		return "other_process", fmt.Sprintf("The allocator of %s may have only %s, because only %s of the device were free when the program began: others hold the rest.", gpu, has, bfclog.Spaced(s.Free.Text))
	case promise(s) >= smallPart || !s.Total.Known && s.Promised.N >= startFree:
		return "parse_only", fmt.Sprintf("The allocator of %s may have %s%s.", gpu, has, within(s))
	case s.Free.Known && s.Total.Known && s.Free.N < s.Total.N/2:
		return "other_process", fmt.Sprintf("The allocator of %s may have only %s, because only %s of the device's %s were free when the program began: others hold the rest.", gpu, has, bfclog.Spaced(s.Free.Text), bfclog.Spaced(s.Total.Text))
	case s.Free.Known:
		return "limit_too_low", fmt.Sprintf("The allocator of %s may have only %s although %s of the device were free when the program began: a limit or a fraction was set.", gpu, has, bfclog.Spaced(s.Free.Text))
	default:
		return "limit_too_low", fmt.Sprintf("The allocator of %s may have only %s. Without a limit of its own TensorFlow takes nearly all that is free, so either a limit was set or others held the card when the program began.", gpu, has)
	}
}

// full says whether a device was as good as full when the program began.
func full(s *driverlog.Start) bool {
	return s.Free.Known && (s.Free.Hi < startFree || s.Total.Known && s.Free.Hi < s.Total.Lo/startPart)
}
