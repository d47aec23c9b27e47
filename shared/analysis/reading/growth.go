package reading

import (
	"strconv"

	"tideline/protocol/event"
)

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
		keeps := " keeps "
		if x.Sized {
			keeps = " keep "
		}
		out = append(out, who+keeps+size(x.PerRepeat)+" more each time: "+size(x.Bytes)+" in "+count(x.Blocks, "block")+" at the last low point.")
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
