package reading

import (
	"math"
	"strconv"

	"tideline/protocol/event"
)

// MaxHolders bounds the holders that a Held lists.
const MaxHolders = 200

// Held is who holds the memory of one allocator at one moment.
type Held struct {
	Pool    string   // the allocator's name
	At      string   // "peak", "end", or "instant" of an input that has no time
	Time    int64    // nanoseconds since the beginning
	Bytes   int64    // in use
	Blocks  int64    // in use
	Holders []Holder // the largest first, at most MaxHolders
	// More holders than are listed, and their bytes.
	More, MoreBytes int64
	// Unknown are the bytes and blocks that no stack or op is known for;
	// UnknownBefore is how many of the bytes were there when the recording began.
	Unknown       int64
	UnknownBlocks int64
	UnknownBefore int64
}

// Holder is one line of the user's code, an op, or a size of blocks, with what
// it holds.
type Holder struct {
	Name   string // the frame to blame, the op, or "blocks of 2.00 MiB"
	Caller string // who called it, the user's own code before a library's; "" when not known
	Bytes  int64
	Blocks int64
	Sized  bool  // the name is of blocks of a size
	Stacks int64 // how many stacks lead there; 0 when there are no stacks
}

// holding is what of this the report for programs has.
func (r *Reading) holding() (f Facts) {
	f.Null("held")
	if len(r.Held) > 0 {
		list := make([]Value, len(r.Held))
		for i := range r.Held {
			list[i] = Object(r.Held[i].facts())
		}
		f.Set("held", List(list...))
	}
	f.Null("growth")
	if len(r.Growth) > 0 {
		list := make([]Value, len(r.Growth))
		for i := range r.Growth {
			list[i] = Object(r.Growth[i].facts())
		}
		f.Set("growth", List(list...))
	}
	f.Null("copy_time")
	if r.Copies != nil {
		f.Set("copy_time", Object(r.Copies.facts()))
	}
	return f
}

func (h *Held) facts() Facts {
	var f Facts
	f.Text("allocator", h.Pool)
	f.Text("at", h.At)
	f.IntIf("time_ns", h.Time, h.At != "instant")
	f.Int("bytes", h.Bytes)
	f.Int("blocks", h.Blocks)
	list := make([]Value, len(h.Holders))
	for i := range h.Holders {
		x := &h.Holders[i]
		var o Facts
		o.Text("name", x.Name)
		o.Text("caller", x.Caller)
		o.Int("bytes", x.Bytes)
		o.Int("blocks", x.Blocks)
		o.Float("share", share(x.Bytes, h.Bytes))
		o.IntIf("stacks", x.Stacks, x.Stacks > 0)
		list[i] = Object(o)
	}
	f.Set("holders", List(list...))
	f.Int("more_holders", h.More)
	f.Int("more_bytes", h.MoreBytes)
	f.Int("unknown_bytes", h.Unknown)
	f.Int("unknown_blocks", h.UnknownBlocks)
	f.Int("unknown_before_bytes", h.UnknownBefore)
	return f
}

// share is a part with four digits, 0 to 1.
func share(n, of int64) float64 {
	return math.Round(1e4*float64(n)/float64(max(of, 1))) / 1e4
}

// MaxLines is how many holders are named to people.
const MaxLines = 5

// Title heads the list of holders.
func (h *Held) Title() string {
	s := "Who holds " + event.FormatBytes(h.Bytes) + " of " + h.Pool
	switch h.At {
	case "peak":
		return s + " at the peak"
	case "end":
		return s + " at the end"
	default:
		return s
	}
}

// UnknownWhy says of the bytes without a stack or op what is known.
func (h *Held) UnknownWhy() string {
	switch {
	case h.UnknownBefore == h.Unknown:
		return "allocated before the recording began, no stack or op is known"
	case h.UnknownBefore > 0:
		return "no stack or op is known; " + event.FormatBytes(h.UnknownBefore) + " of it was allocated before the recording began"
	default:
		return "no stack or op is known"
	}
}

// Lines name the holders to people: bytes and part, then who.
func (h *Held) Lines() (out []Row) {
	line := func(bytes, blocks int64, who string) {
		out = append(out, Row{event.FormatBytes(bytes), percent(bytes, h.Bytes) + " in " + count(blocks, "block") + ": " + who})
	}
	named := 0
	rest, blocks := h.Bytes-h.Unknown, h.Blocks-h.UnknownBlocks
	for i := range h.Holders {
		x := &h.Holders[i]
		if i == MaxLines || i > 0 && x.Bytes < h.Bytes/100 {
			break
		}
		named++
		rest, blocks = rest-x.Bytes, blocks-x.Blocks
		who := x.Name
		if x.Caller != "" {
			who += ", from " + x.Caller
		}
		line(x.Bytes, x.Blocks, who)
	}
	if n := int64(len(h.Holders)) - int64(named) + h.More; n > 0 {
		line(rest, blocks, strconv.FormatInt(n, 10)+" more")
	}
	if h.UnknownBlocks > 0 {
		line(h.Unknown, h.UnknownBlocks, h.UnknownWhy())
	}
	return out
}

func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.FormatInt(n, 10) + " " + what
}

// Heading is the verdict as people read it, or "" where nothing was asked: a
// recording is not judged.
func (r *Reading) Heading() string {
	if r.Verdict == "timeline" {
		return ""
	}
	return Phrase(r.Verdict)
}

// Headline is the verdict with why it is so.
func (r *Reading) Headline() string {
	h := r.Heading()
	if h == "" || r.Why == "" {
		return h + r.Why
	}
	return h + ": " + r.Why
}

// Added are the holders, growth and copies as lines of the reading's table, for
// who shows one table.
func (r *Reading) Added() (out []Row) {
	for i := range r.Held {
		h := &r.Held[i]
		if h.Shown(r.Held) {
			for k, l := range h.Lines() {
				label := ""
				if k == 0 {
					label = h.Title()
				}
				out = append(out, Row{label, l.Label + ", " + l.Value})
			}
		}
	}
	for k, s := range r.GrowthSentences() {
		label := ""
		if k == 0 {
			label = GrowthTitle
		}
		out = append(out, Row{label, s})
	}
	if r.Copies != nil {
		out = append(out, Row{"copies", r.Copies.Sentence()})
	}
	return out
}

// GrowthSentences say what grows, of the allocators whose holders are shown.
func (r *Reading) GrowthSentences() (out []string) {
	for i := range r.Growth {
		if r.Shows(r.Growth[i].Pool) {
			out = append(out, r.Growth[i].Sentences()...)
		}
	}
	return out
}

// Shows says whether the holders of an allocator are shown to people.
func (r *Reading) Shows(pool string) bool {
	for i := range r.Held {
		if h := &r.Held[i]; h.Pool == pool && h.Shown(r.Held) {
			return true
		}
	}
	return false
}

// Shown says whether people are shown an allocator's holders: those of one that
// holds under a hundredth of the largest only stand in the report for programs.
func (h *Held) Shown(all []Held) bool {
	most := int64(0)
	for i := range all {
		most = max(most, all[i].Bytes)
	}
	return h.Bytes > 0 && h.Bytes >= most/100
}
