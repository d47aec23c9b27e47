package foreign

import (
	"fmt"
	"math"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/ortlog"
)

// ORT judges ONNX Runtime's arenas and the refused requests.
func ORT(rep *ortlog.Report) []*reading.Reading {
	var out []*reading.Reading
	for _, a := range rep.Arenas {
		if len(rep.Failures) > 0 && len(rep.Arenas) == 1 {
			continue // told with the failure
		}
		out = append(out, ortArena(a))
	}
	for _, f := range rep.Failures {
		var a *ortlog.Arena
		if len(rep.Arenas) == 1 {
			a = rep.Arenas[0]
		}
		out = append(out, ortFailure(f, a))
	}
	return out
}

func strategyName(n int64) string {
	switch n {
	case 0:
		return "kNextPowerOfTwo"
	case 1:
		return "kSameAsRequested"
	}
	return ""
}

// arenaSums are what the extensions come to, in bytes.
type arenaSums struct {
	requested, rounded, taken, total int64
	reserved                         int64
	exact                            bool // every region is what was asked, rounded
}

func sumArena(a *ortlog.Arena) arenaSums {
	s := arenaSums{total: -1, exact: true}
	for _, e := range a.Extensions {
		s.requested += max(0, e.Requested)
		s.rounded += max(0, e.Rounded)
		s.taken += max(0, e.By)
		if e.Total >= 0 {
			s.total = e.Total
		}
		if e.By >= 0 && e.Rounded >= 0 && e.By != (e.Rounded+255)/256*256 {
			s.exact = false
		}
	}
	for _, n := range a.Reserved {
		s.reserved += n
	}
	if s.total < 0 && len(a.Extensions) > 0 {
		s.total = s.taken + s.reserved
	}
	return s
}

func arenaFacts(f *reading.Facts, a *ortlog.Arena) arenaSums {
	s := sumArena(a)
	f.Text("device", a.Device)
	known := func(name string, n int64) { f.IntIf(name, n, n >= 0) }
	known("initial_chunk_size_bytes", a.InitialChunk)
	known("max_dead_bytes_per_chunk", a.MaxDead)
	known("initial_growth_chunk_size_bytes", a.InitialGrowth)
	known("max_power_of_two_extend_bytes", a.MaxPowerOfTwo)
	if a.Configured {
		f.Set("memory_limit", reading.Uint(a.Limit))
		f.Bool("limit_is_unlimited", a.Limit == math.MaxUint64)
	} else {
		f.Null("memory_limit")
		f.Null("limit_is_unlimited")
	}
	known("arena_extend_strategy", a.Strategy)
	f.Text("strategy_name", strategyName(a.Strategy))
	list := reading.List()
	for _, e := range a.Extensions {
		var o reading.Facts
		o.IntIf("bin", e.Bin, e.Bin >= 0)
		o.IntIf("requested", e.Requested, e.Requested >= 0)
		o.IntIf("extended_by", e.By, e.By >= 0)
		o.IntIf("total", e.Total, e.Total >= 0)
		o.Text("address_from", e.From)
		o.Text("address_to", e.To)
		list.List = append(list.List, reading.Object(o))
	}
	f.Set("extensions", list)
	f.Int("requested_sum_bytes", s.requested)
	f.IntIf("arena_total_bytes", s.total, s.total >= 0)
	f.Int("reserved_bytes", s.reserved)
	if s.requested > 0 && s.total >= 0 {
		f.Float("overhead_ratio", math.Round(1000*float64(s.total)/float64(s.requested))/1000)
	} else {
		f.Null("overhead_ratio")
	}
	return s
}

func ortArena(a *ortlog.Arena) *reading.Reading {
	r := &reading.Reading{Kind: "ort-bfcarena", Line: a.Line, Name: "ONNX Runtime's arena for " + a.Device}
	s := arenaFacts(&r.Facts, a)
	f := &r.Facts
	switch {
	case len(a.Extensions) == 0:
		r.Verdict = "parse_only"
		r.Why = "The arena has not grown in this text."
	case s.taken == 0:
		r.Verdict = string(analysis.UndeterminedTruncated)
		r.Why = "The lines that tell by how much the arena grew are missing."
	case s.exact || a.Strategy == 1:
		r.Verdict = "arena_growth_exact"
		r.Why = fmt.Sprintf("Each region is what was asked for, rounded to 256: %s for requests of %s.", event.FormatBytes(s.taken), event.FormatBytes(s.requested))
	default:
		r.Verdict = "arena_growth_rounding"
		r.Why = fmt.Sprintf("The regions double: %s hold requests of %s, %.2f times as much.", event.FormatBytes(s.taken), event.FormatBytes(s.requested), float64(s.taken)/float64(max(1, s.requested)))
		r.Next = []string{fmt.Sprintf("arena_extend_strategy kSameAsRequested would take %s for these requests; a cap on the doubling (max_power_of_two_extend_bytes) or max_mem bounds it.", event.FormatBytes(s.rounded))}
	}
	f.Int("extension_count", int64(len(a.Extensions)))
	r.Row("arena", event.FormatBytes(max(0, s.total)))
	r.Row("requests that made it grow", event.FormatBytes(s.requested))
	r.Row("regions", strconv.Itoa(len(a.Extensions)))
	r.Open = append(r.Open, "What is in use inside the arena is not in these lines, only what made it grow.")
	return r
}

// halves reads a size as two 32-bit floats, the higher first.
func halves(n uint64) (hi, lo float32) {
	return math.Float32frombits(uint32(n >> 32)), math.Float32frombits(uint32(n))
}

func plausible(x float32) bool {
	f := math.Abs(float64(x))
	return f > 1e-6 && f < 1e9
}

func ortFailure(x *ortlog.Failure, a *ortlog.Arena) *reading.Reading {
	r := &reading.Reading{Kind: "ort-bfcarena", Line: x.Line, Name: "ONNX Runtime"}
	f := &r.Facts
	f.Text("node", x.Node)
	f.Text("op", x.Op)
	f.IntIf("source_line", x.Source, x.Source >= 0)
	f.IntIf("available_bytes", x.Available, x.Available >= 0)
	sized := x.Kind != ortlog.CallRefused && x.Kind != ortlog.Unfinished
	if sized {
		f.Set("requested_rounded_bytes", reading.Uint(x.Huge))
		f.Text("requested_hex", "0x"+strconv.FormatUint(x.Huge, 16))
	} else {
		f.Null("requested_rounded_bytes")
		f.Null("requested_hex")
	}
	if x.Requested >= 0 {
		f.Text("requested_text", bfclog.Human(x.Requested))
	} else {
		f.Null("requested_text")
	}
	if x.Kind == ortlog.CallRefused {
		f.IntIf("device_ordinal", x.Device, x.Device >= 0)
		f.Text("refused_call", x.Call)
	}
	hi, lo := halves(x.Huge)
	nonsenseSize := x.Huge >= 1<<50
	if nonsenseSize && plausible(hi) && plausible(lo) {
		f.Floats("halves_as_float32", []float64{float64(hi), float64(lo)})
	} else {
		f.Null("halves_as_float32")
	}
	f.Int("repeated", int64(x.Count))
	total := int64(-1)
	if a != nil {
		total = arenaFacts(f, a).total
	}
	if sized {
		r.Row("asked for", event.FormatBytes(max(0, x.Requested)))
	}
	if x.Node != "" {
		r.Row("node", x.Node)
	}
	if x.Op != "" && x.Op != x.Node {
		r.Row("op", x.Op)
	}
	switch {
	case x.Kind == ortlog.Unfinished:
		r.Verdict = string(analysis.UndeterminedTruncated)
		r.Why = "The message breaks off before it says whether the device refused or the arena's limit, and how much was asked for."
		r.Next = []string{"Look for the whole message."}
	case x.Kind == ortlog.CallRefused:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = "The driver had no memory for a call"
		if x.Call != "" {
			r.Why += " (" + x.Call + ")"
		}
		r.Why += ". How much it wanted, and what the device had free, is not in the text."
		r.Next = []string{"See with nvidia-smi what is on the card; each session has an arena of its own, and streams and handles of the libraries take memory beside it."}
	case nonsenseSize:
		r.Verdict = string(analysis.NotMemory)
		r.Why = fmt.Sprintf("No device will ever have %s.", bfclog.Spaced(bfclog.Human(max(0, x.Requested))))
		if plausible(hi) && plausible(lo) {
			r.Why += fmt.Sprintf(" Bit for bit the size is the two 32-bit floats %g and %g: tensor data was taken for a size.", hi, lo)
		}
		r.Next = []string{"Look for memory corruption or a race in the program; no memory setting can help."}
	case x.Kind == ortlog.LimitReached:
		r.Verdict = "arena_limit"
		r.Why = fmt.Sprintf("The arena's configured limit leaves %d bytes, and %d were asked for. The limit counts every region ever taken, rounded and doubled, not the bytes in use.", max(0, x.Available), x.Huge)
		r.Next = []string{"Raise max_mem, or use arena_extend_strategy kSameAsRequested so that regions are not doubled."}
	case x.Requested > largestUsual:
		r.Verdict = string(analysis.RequestExceedsDevice)
		r.Why = "The request alone is more than a device has."
	case x.Kind == ortlog.NoBlock:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = "The arena grew and found no block all the same, which the text does not explain."
	case total >= 0 && total+x.Requested < 2<<30:
		r.Verdict = "device_refused_shared_card"
		r.Why = fmt.Sprintf("The device refused %s while this arena holds only %s: less than any card has, so somebody else holds it.", event.FormatBytes(x.Requested), event.FormatBytes(total))
		r.Next = []string{"See with nvidia-smi what else is on the card."}
	default:
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = "The device refused, even smaller regions. What it had free and who held the rest is not in the text."
		r.Next = []string{"See with nvidia-smi what is on the card, and log at verbose level to see the arena grow."}
	}
	if total < 0 {
		r.Open = append(r.Open, "How much the arena held is not in the text.")
	}
	return r
}
