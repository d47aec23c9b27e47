package reading

import (
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

// The verdicts of a Growth.
const (
	Steady    = "steady"     // it grows with every repeat
	KeptWhole = "kept_whole" // it grows, but one pass over equal layers looks the same
	Spread    = "spread"     // the whole grows, and no single stack accounts for it
	Levelled  = "levelled"   // what grew at first has come to rest
	NoGrowth  = "none"
	TooShort  = "too_short" // nothing repeats often enough
)

// Growth is whether what an allocator holds grows from repeat to repeat. A
// repeat is one rise and fall of the use, mostly a step.
type Growth struct {
	Pool    string
	Verdict string
	Repeats int64 // from the first low point to the last
	// PerRepeat is by how much the low points rise, bytes; Released is what a
	// repeat gives back.
	PerRepeat, Released int64
	Growing             []Grower // the largest first
	// Left are the bytes and blocks made while it was recorded that are still
	// there at its end.
	Left, LeftBlocks int64
}

// Grower is a stack whose blocks become more.
type Grower struct {
	Name, Caller string
	Sized        bool  // the name is of blocks of a size
	PerRepeat    int64 // bytes
	Bytes        int64 // at the last low point
	Blocks       int64 // at the last low point
	// Until is the repeat after which it grew no more; 0 while it grows.
	Until int64
}

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
	return float64((n*10000+of/2)/max(of, 1)) / 10000
}

func (g *Growth) facts() Facts {
	var f Facts
	f.Text("allocator", g.Pool)
	f.Text("verdict", g.Verdict)
	f.Int("repeats", g.Repeats)
	f.Int("bytes_per_repeat", g.PerRepeat)
	f.Int("released_per_repeat", g.Released)
	f.Int("left_bytes", g.Left)
	f.Int("left_blocks", g.LeftBlocks)
	list := make([]Value, len(g.Growing))
	for i := range g.Growing {
		x := &g.Growing[i]
		var o Facts
		o.Text("name", x.Name)
		o.Text("caller", x.Caller)
		o.Int("bytes_per_repeat", x.PerRepeat)
		o.Int("bytes", x.Bytes)
		o.Int("blocks", x.Blocks)
		o.IntIf("grew_until_repeat", x.Until, x.Until > 0)
		list[i] = Object(o)
	}
	f.Set("growing", List(list...))
	return f
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

// Sentences say it for people.
func (g *Growth) Sentences() (out []string) {
	size := event.FormatBytes
	n := count(g.Repeats, "time")
	switch g.Verdict {
	case Steady:
		out = append(out, g.Pool+": the use fell and rose "+n+", and what is left at its low points grows by "+size(g.PerRepeat)+" each time.")
	case KeptWhole:
		out = append(out, g.Pool+": the use fell and rose "+n+", and each time more was kept ("+size(g.PerRepeat)+") than half of what was given back ("+size(g.Released)+
			"). A loop over batches that keeps their results looks so, such as validation without no_grad; so does one pass over equal layers, or over weights whose optimizer state is made, that is not at its end. A longer recording tells them apart.")
	case Spread:
		out = append(out, g.Pool+": the use fell and rose "+n+", and its low points rise by "+size(g.PerRepeat)+" each time, of which no single stack holds the most.")
	case Levelled:
		out = append(out, g.Pool+": the use fell and rose "+n+", and what grew at first came to rest: a cache, or state that is made once, and no leak.")
	case NoGrowth:
		out = append(out, g.Pool+": nothing grows. The use fell and rose "+n+", and its low points do not rise.")
	}
	for i := range g.Growing {
		if i == MaxLines {
			out = append(out, strconv.Itoa(len(g.Growing)-i)+" more grow.")
			break
		}
		x := &g.Growing[i]
		who := x.Name
		if x.Caller != "" {
			who += ", from " + x.Caller + ","
		}
		if x.Until > 0 {
			out = append(out, who+" rose to "+size(x.Bytes)+" and grew no more after the "+ordinal(x.Until)+" time.")
			continue
		}
		out = append(out, who+" keeps "+size(x.PerRepeat)+" more each time: "+size(x.Bytes)+" in "+count(x.Blocks, "block")+" at the last low point.")
	}
	return out
}

// Short says what is not known of a recording that is too short for growth and
// leaves something behind; "" of others.
func (g *Growth) Short() string {
	if g.Verdict != TooShort || g.LeftBlocks == 0 {
		return "" // nothing is left that might grow
	}
	return "Whether " + g.Pool + " holds more from step to step: its use must fall and rise " + strconv.Itoa(MinRepeats) + " times to tell that from a step's own work. " +
		count(g.LeftBlocks, "block") + " made while it was recorded, " + event.FormatBytes(g.Left) + ", " + are(g.LeftBlocks) + " still there at its end."
}

// MinRepeats is how often the use must fall and rise before anything is said
// about growth.
const MinRepeats = 3

func are(n int64) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

func ordinal(n int64) string {
	s := strconv.FormatInt(n, 10)
	switch {
	case n%100 >= 11 && n%100 <= 13:
		return s + "th"
	case n%10 == 1:
		return s + "st"
	case n%10 == 2:
		return s + "nd"
	case n%10 == 3:
		return s + "rd"
	}
	return s + "th"
}

// GrowthTitle heads the sentences about growth.
const GrowthTitle = "What grows"

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
