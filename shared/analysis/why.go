package analysis

import (
	"fmt"
	"math"
	"strings"

	"tideline/protocol/event"
)

func bytesOf(n int64) string { return event.FormatBytes(n) }

// Why says in a few sentences why the request failed. Each follows from a
// number or a line of the input.
func (r *Reading) Why() string {
	switch r.Verdict {
	case Full:
		return r.whyFull()
	case Fragmented:
		return r.whyFragmented()
	case LimitTooLow:
		return r.whyLimit()
	case OtherProcess:
		return r.whyOther()
	case HostPinnedLimit:
		if len(r.Pinned) > 0 && r.Allocator == "" && !r.Limit.Known {
			return fmt.Sprintf("The driver could not lock %s of the host's memory for the pool of page-locked memory, and each further try was for a tenth less. This is RAM, not the device's memory; whether a smaller piece sufficed is not in the text.", bytesOf(r.Pinned[0]))
		}
		return fmt.Sprintf("The page-locked host memory pool %s is at its limit%s. This is not the device's memory, and not the machine's RAM.",
			r.Allocator, ofLimit(r))
	case LeakManyEqualChunks:
		share, _ := r.DominantShare()
		return fmt.Sprintf("The pool is full, and %.1f %% of it is %s of exactly %s. The same tensor is made again and again and never released.",
			100*share, plural(r.DominantCount.N, "chunk"), bytesOf(r.DominantSize.N))
	case Retryable:
		return "Enough memory was already being freed: waiting for the device to catch up would have sufficed."
	case RequestExceedsDevice:
		return fmt.Sprintf("The request (%s) is larger than all the memory of the device%s.", r.asked(), ofTotal(r))
	case NotMemory:
		return "The size asked for makes no sense: " + decode(r.Requested.N) + ". This is a bug elsewhere, not a lack of memory."
	case FullOrFragmentedByBar:
		return "Only the usage bar is there. The pool is either full or too broken up; the bar is too coarse to tell which."
	case FragmentedPoolOrCached:
		return fmt.Sprintf("The driver had %s free of %s, while only %s was in use here: the rest is cached in the driver's pool or held by others.",
			bytesOf(r.DriverFree.N), bytesOf(r.DeviceTotal.N), bytesOf(r.InUse.N))
	case DriverRefusedDespiteFree:
		return fmt.Sprintf("The driver refused %s although it reported %s free.", r.asked(), bytesOf(r.DriverFree.N))
	case UndeterminedNoState:
		if r.NotFailure {
			return "This is a warning, not a failure: the caller said that it can do without the memory."
		}
		return "The text names a failed request, but nothing about the state of the memory."
	case UndeterminedNoRequest:
		return r.whyNoRequest()
	default:
		if r.FromMap {
			return "The memory map is cut, and it does not tell how much was asked for."
		}
		return "The text is cut where it would decide why."
	}
}

// whyNoRequest tells the state of which only the request is missing.
func (r *Reading) whyNoRequest() string {
	s := "A memory map shows what lay in the pool when a request failed, but not how much was asked for, nor what the limit was."
	switch {
	case r.Stamped:
		return s + fmt.Sprintf(" %s were free, the largest piece of it %s; not all of that need have been usable yet.", bytesOf(r.Free.N), bytesOf(r.LargestFree.N))
	case r.Pool.N == 0:
		return s + " The pool was empty."
	case r.Free.N == 0:
		return s + " Nothing in the pool was free."
	case !r.LargestFree.Known || r.LargestFree.N == r.Free.N:
		return s + fmt.Sprintf(" %s were free, in one piece: more than that was asked for, and whether the pool could have grown is not told.", bytesOf(r.Free.N))
	}
	return s + fmt.Sprintf(" %s were free, the largest piece of it %s. For a request between the two the bytes were there, in pieces; whether the pool could have grown is not told.",
		bytesOf(r.Free.N), bytesOf(r.LargestFree.N)) + r.wasted()
}

func ofLimit(r *Reading) string {
	if !r.Limit.Known {
		return ""
	}
	return " of " + bytesOf(r.Limit.N)
}

func ofTotal(r *Reading) string {
	if !r.DeviceTotal.Known {
		return ""
	}
	return " (" + bytesOf(r.DeviceTotal.N) + ")"
}

func (r *Reading) whyFull() string {
	if r.TailsHoldIt() {
		return fmt.Sprintf("%s are free, %s were asked for, and packed tightly the blocks as they are would still leave %s too little. But %s of what is in use are unused tails: the allocator hands out a chunk of less than twice the request whole. Without them the request would fit.",
			bytesOf(r.Free.N), r.asked(), bytesOf(r.Shortfall().N), known(r.Waste.N, r.Waste.Known, r.WasteText))
	}
	s := "There is too little memory for this request in any arrangement"
	if r.Free.Known && r.Requested.Known {
		s = fmt.Sprintf("%s are free, %s were asked for: too little in any arrangement", bytesOf(r.Free.N), r.asked())
	} else if n := strings.Count(r.Bar, "_"); len(r.Bar) == 100 {
		s = fmt.Sprintf("Only %d of the bar's 100 cells are free; for %s to fit in there, the pool would have to be larger than any device", n, r.asked())
	}
	if m := r.Shortfall(); m.Known && m.N > 0 {
		s += fmt.Sprintf("; even perfectly packed, %s would be missing", bytesOf(m.N))
	}
	s += "."
	if r.Decision.TinyLimit {
		s += r.startWhy()
	}
	return s + r.wasted()
}

// wasted tells of memory that is in use only because chunks were handed out
// larger than asked for.
func (r *Reading) wasted() string {
	text := known(r.Waste.N, r.Waste.Known && r.InUse.Known && r.Waste.N >= r.InUse.N/20 && r.Waste.N > 0, r.WasteText)
	if text == "" {
		return ""
	}
	return fmt.Sprintf(" %s of what is in use are unused tails: the allocator hands out a chunk of less than twice the request whole.", text)
}

func (r *Reading) whyFragmented() string {
	s := "Enough bytes are free for this request, but not in one piece"
	if r.Free.Known && r.Requested.Known {
		s = fmt.Sprintf("%s are free and %s were asked for, but the free memory lies in pieces", bytesOf(r.Free.N), r.asked())
		if r.Pool.Known && r.Rounded.Known && r.Free.N < r.Rounded.N && r.Available.Known {
			s = fmt.Sprintf("%s are free in pieces and %s more were allowed, which together would hold the %s asked for; neither does alone",
				bytesOf(r.Free.N), bytesOf(r.Available.N), r.asked())
		}
	}
	if r.LargestFree.Known && r.Rounded.Known {
		s += fmt.Sprintf("; the largest hole is %s, %s too small", bytesOf(r.LargestFree.N), bytesOf(r.Rounded.N-r.LargestFree.N))
	}
	return s + "."
}

func (r *Reading) whyLimit() string {
	if r.Rounded.Known && r.Limit.Known && r.Rounded.N > r.Limit.N {
		return fmt.Sprintf("The request alone (%s) is larger than the allocator's limit (%s).", r.asked(), bytesOf(r.Limit.N)) + r.startWhy()
	}
	if r.PoolAtMost.Known {
		cells, _ := BarCells(r.Bar)
		return fmt.Sprintf("The pool is all but empty (%d of the bar's 100 cells are free), and %s still do not fit: all of it is no more than about %s. It is too small for this request, or could not grow.",
			cells, r.asked(), bytesOf(r.PoolAtMost.N))
	}
	s := "The allocator's limit is too low"
	if r.Limit.Known {
		s = fmt.Sprintf("The allocator was given only %s", bytesOf(r.Limit.N))
	}
	if r.InUse.Known {
		s += fmt.Sprintf(", of which %s was in use", bytesOf(r.InUse.N))
	}
	if w := r.startWhy(); w != "" {
		return s + "." + w
	}
	if r.LikelyCause == othersBefore {
		return s + ". Without a configured limit TensorFlow takes what is free at its start, so nearly the whole card was probably held by something else by then."
	}
	return s + "; without that limit the device would have had room." + r.wasted()
}

func (r *Reading) whyOther() string {
	s := "The limit still left room to grow"
	if r.Available.Known {
		s = fmt.Sprintf("The limit still left room for %s", bytesOf(r.Available.N))
	}
	s += ", but the driver had no memory to give"
	if n := len(r.Refusals); n > 0 {
		s += fmt.Sprintf(" (it refused %s, the last for %s)", times(n), bytesOf(r.Refusals[n-1]))
	}
	s += ": somebody else holds it"
	if r.LargestFree.Known {
		s += fmt.Sprintf(". Inside the pool the largest hole is %s", bytesOf(r.LargestFree.N))
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

// Undecided lists what the input leaves open; foreign says that it is another
// program's text, not the record of a run.
func (r *Reading) Undecided(foreign bool) []string {
	var out []string
	if r.Truncated && r.FromMap {
		out = append(out, "The memory map is not whole, or its parts contradict each other: it lacks "+strings.Join(r.Missing, ", ")+".")
	} else if r.Truncated {
		out = append(out, "The text is cut: it lacks "+strings.Join(r.Missing, ", ")+".")
	}
	out = append(out, r.Assumed...)
	if r.Requested.Known && !r.Exact {
		out = append(out, "The request is known as rounded text only, to about a hundredth of its unit.")
	}
	if !r.Requested.Known {
		out = append(out, r.unknownRequest())
	}
	if !r.LargestFree.Known && r.Verdict != UndeterminedNoState {
		out = append(out, r.unknownHole())
	}
	if r.Verdict == OtherProcess && foreign {
		out = append(out, "Who holds the card's memory is not in the text.")
	}
	if r.FreeOnlyBins {
		out = append(out, "The bins of this generation count free chunks only; their zeros do not mean an empty pool.")
	}
	return out
}

func (r *Reading) unknownRequest() string {
	s := "How much was asked for is not in the text"
	if r.FromMap {
		s = "How much was asked for is not in a memory map"
	}
	if r.Stamped {
		return s + ". Free chunks carry stamps of the timing counter, so that one that is large enough need not have been usable."
	}
	if r.LargestFree.Known {
		return s + fmt.Sprintf("; it was more than the largest hole, %s.", bytesOf(r.LargestFree.N))
	}
	if r.Free.Known {
		return s + fmt.Sprintf("; it was more than %s or than any single hole within that.", bytesOf(r.Free.N))
	}
	return s + "."
}

func (r *Reading) unknownHole() string {
	s := "The largest hole is not listed"
	switch {
	case r.LargestFreeText != "":
		s = fmt.Sprintf("The largest hole is known as rounded text only, %s", spacedText(r.LargestFreeText))
	case r.Free.Known:
		s += fmt.Sprintf("; it cannot exceed the %s that are free", bytesOf(r.Free.N))
	}
	return s + "."
}

func known(n int64, ok bool, text string) string {
	if ok {
		return event.FormatBytes(n)
	}
	return spacedText(text)
}

// spacedText writes "132.16MiB" as "132.16 MiB".
func spacedText(text string) string {
	i := strings.IndexAny(text, "KMGTPEB")
	if i <= 0 {
		return text
	}
	return text[:i] + " " + text[i:]
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r *Reading) asked() string {
	if !r.Requested.Known {
		return "unknown"
	}
	if !r.Exact {
		return spacedText(r.RequestedText)
	}
	return event.FormatBytes(r.Requested.N)
}

// Figure is one of the numbers that matter, in words.
type Figure struct{ Name, Value string }

// Figures are what the input says of the request and of the memory around it.
func (r *Reading) Figures() (out []Figure) {
	row := func(name, value string) {
		if value != "" {
			out = append(out, Figure{name, value})
		}
	}
	row("asked for", r.asked())
	row("limit", known(r.Limit.N, r.Limit.Known, r.LimitText))
	row("device", r.Device)
	row("pool", known(r.Pool.N, r.Pool.Known, ""))
	row("in use", known(r.InUse.N, r.InUse.Known, r.InUseText))
	row("peak in use", known(r.Peak.N, r.Peak.Known, r.PeakText))
	row("free", known(r.Free.N, r.Free.Known, ""))
	row("largest hole", known(r.LargestFree.N, r.LargestFree.Known, r.LargestFreeText))
	if r.HasFragmentation && r.Free.N > 0 {
		row("fragmentation", fmt.Sprintf("%.1f %%", 100*r.Fragmentation))
	}
	return out
}
