package explain

import (
	"fmt"
	"math"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
)

// words puts a reading into sentences: why it failed, what stays open, and
// what to do. Every sentence follows from a number or a line of the input.
func (f *failure) words() (why string, open, next []string) {
	for _, a := range f.Advice() {
		next = append(next, a.Text)
	}
	return f.why(), f.open(), next
}

func bytesOf(n int64) string { return event.FormatBytes(n) }

func (f *failure) why() string {
	switch f.Verdict {
	case analysis.Full:
		return f.whyFull()
	case analysis.Fragmented:
		return f.whyFragmented()
	case analysis.LimitTooLow:
		return f.whyLimit()
	case analysis.OtherProcess:
		return f.whyOther()
	case analysis.HostPinnedLimit:
		return fmt.Sprintf("The page-locked host memory pool %s is at its limit%s. This is not the device's memory, and not the machine's RAM.",
			f.Allocator, ofLimit(f.Reading))
	case analysis.LeakManyEqualChunks:
		share, _ := f.DominantShare()
		return fmt.Sprintf("The pool is full, and %.1f %% of it is %s of exactly %s. The same tensor is made again and again and never released.",
			100*share, plural(f.DominantCount.N, "chunk"), bytesOf(f.DominantSize.N))
	case analysis.Retryable:
		return "Enough memory was already being freed: waiting for the device to catch up would have sufficed."
	case analysis.RequestExceedsDevice:
		return fmt.Sprintf("The request (%s) is larger than all the memory of the device%s.", f.asked(), ofTotal(f.Reading))
	case analysis.NotMemory:
		return "The size asked for makes no sense: " + decode(f.Requested.N) + ". This is a bug elsewhere, not a lack of memory."
	case analysis.FullOrFragmentedByBar:
		return "Only the usage bar is there. The pool is either full or too broken up; the bar is too coarse to tell which."
	case analysis.FragmentedPoolOrCached:
		return fmt.Sprintf("The driver had %s free of %s, while only %s was in use here: the rest is cached in the driver's pool or held by others.",
			bytesOf(f.DriverFree.N), bytesOf(f.DeviceTotal.N), bytesOf(f.InUse.N))
	case analysis.DriverRefusedDespiteFree:
		return fmt.Sprintf("The driver refused %s although it reported %s free.", f.asked(), bytesOf(f.DriverFree.N))
	case analysis.UndeterminedNoState:
		if f.NotFailure {
			return "This is a warning, not a failure: the caller said that it can do without the memory."
		}
		return "The text names a failed request, but nothing about the state of the memory."
	default:
		return "The text is cut where it would decide why."
	}
}

func ofLimit(r *analysis.Reading) string {
	if !r.Limit.Known {
		return ""
	}
	return " of " + bytesOf(r.Limit.N)
}

func ofTotal(r *analysis.Reading) string {
	if !r.DeviceTotal.Known {
		return ""
	}
	return " (" + bytesOf(r.DeviceTotal.N) + ")"
}

func (f *failure) whyFull() string {
	if f.TailsHoldIt() {
		return fmt.Sprintf("%s are free, %s were asked for, and packed tightly the blocks as they are would still leave %s too little. But %s of what is in use are unused tails: the allocator hands out a chunk of less than twice the request whole. Without them the request would fit.",
			bytesOf(f.Free.N), f.asked(), bytesOf(f.Shortfall().N), known(f.Waste.N, f.Waste.Known, f.WasteText))
	}
	s := "There is too little memory for this request in any arrangement"
	if f.Free.Known && f.Requested.Known {
		s = fmt.Sprintf("%s are free, %s were asked for: too little in any arrangement", bytesOf(f.Free.N), f.asked())
	} else if n := strings.Count(f.Bar, "_"); len(f.Bar) == 100 {
		s = fmt.Sprintf("Only %d of the bar's 100 cells are free; for %s to fit in there, the pool would have to be larger than any device", n, f.asked())
	}
	if m := f.Shortfall(); m.Known && m.N > 0 {
		s += fmt.Sprintf("; even perfectly packed, %s would be missing", bytesOf(m.N))
	}
	return s + "." + f.wasted()
}

// wasted tells of memory that is in use only because chunks were handed out
// larger than asked for.
func (f *failure) wasted() string {
	text := known(f.Waste.N, f.Waste.Known && f.InUse.Known && f.Waste.N >= f.InUse.N/20 && f.Waste.N > 0, f.WasteText)
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" %s of what is in use are unused tails: the allocator hands out a chunk of less than twice the request whole.", text)
}

func (f *failure) whyFragmented() string {
	s := "Enough bytes are free for this request, but not in one piece"
	if f.Free.Known && f.Requested.Known {
		s = fmt.Sprintf("%s are free and %s were asked for, but the free memory lies in pieces", bytesOf(f.Free.N), f.asked())
		if f.Pool.Known && f.Rounded.Known && f.Free.N < f.Rounded.N && f.Available.Known {
			s = fmt.Sprintf("%s are free in pieces and %s more were allowed, which together would hold the %s asked for; neither does alone",
				bytesOf(f.Free.N), bytesOf(f.Available.N), f.asked())
		}
	}
	if f.LargestFree.Known && f.Rounded.Known {
		s += fmt.Sprintf("; the largest hole is %s, %s too small", bytesOf(f.LargestFree.N), bytesOf(f.Rounded.N-f.LargestFree.N))
	}
	return s + "."
}

func (f *failure) whyLimit() string {
	if f.Rounded.Known && f.Limit.Known && f.Rounded.N > f.Limit.N {
		return fmt.Sprintf("The request alone (%s) is larger than the allocator's limit (%s).", f.asked(), bytesOf(f.Limit.N))
	}
	s := "The allocator's limit is too low"
	if f.Limit.Known {
		s = fmt.Sprintf("The allocator was given only %s", bytesOf(f.Limit.N))
	}
	if f.InUse.Known {
		s += fmt.Sprintf(", of which %s was in use", bytesOf(f.InUse.N))
	}
	if f.LikelyCause == "other_process_before_start" {
		return s + ". Without a configured limit TensorFlow takes what is free at its start, so nearly the whole card was probably held by something else by then."
	}
	return s + "; without that limit the device would have had room." + f.wasted()
}

func (f *failure) whyOther() string {
	s := "The limit still left room to grow"
	if f.Available.Known {
		s = fmt.Sprintf("The limit still left room for %s", bytesOf(f.Available.N))
	}
	s += ", but the driver had no memory to give"
	if n := len(f.Refusals); n > 0 {
		s += fmt.Sprintf(" (it refused %s, the last for %s)", times(n), bytesOf(f.Refusals[n-1]))
	}
	s += ": somebody else holds it"
	if f.LargestFree.Known {
		s += fmt.Sprintf(". Inside the pool the largest hole is %s", bytesOf(f.LargestFree.N))
	}
	return s + "."
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// decode guesses what a nonsensical size really is.
func decode(n int64) string {
	if n < 0 {
		return fmt.Sprintf("%d is negative", n)
	}
	if n == math.MaxInt64 {
		return "it is beyond 2^61 bytes, as a negative number read as a size is"
	}
	hi, lo := uint32(uint64(n)>>32), uint32(uint64(n))
	a, b := math.Float32frombits(hi), math.Float32frombits(lo)
	if plausible(a) && plausible(b) {
		return fmt.Sprintf("%d bytes are, bit for bit, the two 32-bit floats %g and %g", n, b, a)
	}
	return fmt.Sprintf("%d bytes are more than any device has, as when two sizes are multiplied by mistake", n)
}

func plausible(f float32) bool {
	x := math.Abs(float64(f))
	return x > 1e-4 && x < 1e6
}

// open lists what the input leaves undecided.
func (f *failure) open() []string {
	var out []string
	if f.Truncated {
		out = append(out, "The text is cut: it lacks "+strings.Join(f.Missing, ", ")+".")
	}
	out = append(out, f.Assumed...)
	if f.Requested.Known && !f.Exact {
		out = append(out, "The request is known as rounded text only, to about a hundredth of its unit.")
	}
	if !f.Requested.Known {
		out = append(out, f.unknownRequest())
	}
	if !f.LargestFree.Known && f.Verdict != analysis.UndeterminedNoState {
		out = append(out, f.unknownHole())
	}
	if f.Verdict == analysis.OtherProcess && f.recorded == nil {
		out = append(out, "Who holds the card's memory is not in the text.")
	}
	if f.FreeOnlyBins {
		out = append(out, "The bins of this generation count free chunks only; their zeros do not mean an empty pool.")
	}
	return out
}

// certain lists what holds although the verdict is open.
func (f *failure) certain() []string {
	if !f.Verdict.Undetermined() {
		return nil
	}
	out := make([]string, len(f.Certain))
	for i, s := range f.Certain {
		out[i] = strings.ToUpper(s[:1]) + s[1:] + "."
	}
	return out
}

func (f *failure) unknownRequest() string {
	s := "How much was asked for is not in the text"
	if f.LargestFree.Known {
		return s + fmt.Sprintf("; it was more than the largest hole, %s.", bytesOf(f.LargestFree.N))
	}
	if f.Free.Known {
		return s + fmt.Sprintf("; it was more than %s or than any single hole within that.", bytesOf(f.Free.N))
	}
	return s + "."
}

func (f *failure) unknownHole() string {
	s := "The largest hole is not listed"
	switch {
	case f.LargestFreeText != "":
		s = fmt.Sprintf("The largest hole is known as rounded text only, %s", spaced(f.LargestFreeText))
	case f.Free.Known:
		s += fmt.Sprintf("; it cannot exceed the %s that are free", bytesOf(f.Free.N))
	}
	return s + "."
}
