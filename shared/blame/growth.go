package blame

import (
	"sort"
	"strings"

	"tideline/shared/analysis/reading"
)

// maxRepeats bounds the low points that are looked at; of more, every so
// manieth is.
const maxRepeats = 512

// growth is whether what a pool holds grows.
//
// A repeat is a rise and fall of the use: a fall by at least half of the
// largest fall there is, and a rise of as much. Where a single fall at the
// beginning hides the others, as after loading, what follows it is looked at
// alone. At the low points only what is kept from one repeat to the next is
// there, so a stack grows steadily when its bytes at the low points fall at
// most at one of five and rise at three of five, and rise in the last third as
// well; a stack that rose in the first half only has come to rest. Both are only told where they
// amount to a two-hundredth of what is in use, or a block of every repeat.
func (r *Recorder) growth(p *pool) (reading.Growth, bool) {
	if p.base == p.n {
		return reading.Growth{}, false // an instant
	}
	g := reading.Growth{Pool: p.name}
	r.left(p, &g)
	lows, fell := p.repeats()
	if g.Repeats = int64(max(0, len(lows)-1)); g.Repeats < reading.MinRepeats {
		g.Verdict = reading.TooShort
		return g, true
	}
	lines, total := p.lines(lows)
	n := len(total) - 1
	g.PerRepeat = (total[n] - total[0]) / g.Repeats
	g.Released = fell / g.Repeats
	var steady, rested []reading.Grower
	var grown int64
	for _, key := range p.order(lines) {
		l := &lines[key]
		if !l.matters(total[n], n) {
			continue
		}
		w := p.keys[key]
		if w.op == 0 && (p.named() || w.size == 0) {
			continue
		}
		x := reading.Grower{PerRepeat: l.rise() / g.Repeats, Bytes: l.now.bytes, Blocks: l.now.blocks}
		x.Name, x.Caller = r.names(w)
		x.Sized = w.op == 0
		switch {
		case l.steady(n):
			steady = append(steady, x)
			grown += l.rise()
		case l.rested(n):
			x.PerRepeat, x.Until = 0, max(1, int64(l.lastRise)*g.Repeats/int64(n))
			rested = append(rested, x)
		}
	}
	switch {
	case len(steady) > 0:
		g.Verdict, g.Growing = reading.Steady, steady
		if r.inModule(p) || grown/g.Repeats > g.Released/2 {
			g.Verdict = reading.KeptWhole
		}
	case rises(total):
		g.Verdict = reading.Spread
	case len(rested) > 0:
		g.Verdict, g.Growing = reading.Levelled, rested
	default:
		g.Verdict = reading.NoGrowth
	}
	g.Growing = g.Growing[:min(len(g.Growing), reading.MaxHolders)]
	return g, true
}

// left sums what was made after the first moment and is still there at the end.
func (r *Recorder) left(p *pool, g *reading.Growth) {
	before, after := p.usageAt(p.base), p.usageAt(p.n)
	for i, u := range after {
		g.Left += max(0, u.bytes-before[i].bytes)
		g.LeftBlocks += max(0, u.blocks-before[i].blocks)
	}
}

// repeats finds the low points between the rises, as numbers of changes, and
// the bytes that the falls between them gave back in all.
func (p *pool) repeats() (lows []int, fell int64) {
	from := p.base
	for range 4 {
		drop, trough := p.largestFall(from)
		if drop == 0 {
			break
		}
		if lows, fell = p.zigzag(from, (drop+1)/2); len(lows)-1 >= reading.MinRepeats {
			return lows, fell
		}
		from = trough
	}
	return lows, fell
}

// largestFall is the largest fall of the use after a change, and where it ends.
func (p *pool) largestFall(from int) (drop int64, trough int) {
	use := int64(0)
	high := int64(0)
	p.changes(0, from, func(_ int, c change) { use += c.bytes })
	high = use
	p.changes(from, p.n, func(i int, c change) {
		use += c.bytes
		high = max(high, use)
		if high-use > drop {
			drop, trough = high-use, i+1
		}
	})
	return drop, trough
}

// zigzag follows the use from turn to turn: a turn is a change of direction by
// at least so many bytes.
func (p *pool) zigzag(from int, least int64) (lows []int, fell int64) {
	use, at := int64(0), from
	p.changes(0, from, func(_ int, c change) { use += c.bytes })
	rising := true
	high, low := use, use
	p.changes(from, p.n, func(i int, c change) {
		use += c.bytes
		if rising {
			high = max(high, use)
			if high-use >= least {
				rising, low, at = false, use, i+1
			}
			return
		}
		if use < low {
			low, at = use, i+1
		}
		if use-low >= least {
			lows = append(lows, at)
			if len(lows) > 1 {
				fell += high - low
			}
			rising, high = true, use
		}
	})
	if !rising {
		lows = append(lows, at)
		if len(lows) > 1 {
			fell += high - low
		}
	}
	return lows, fell
}

// line is what a key holds at the low points.
type line struct {
	now          usage // at the one looked at
	first, prev  int64
	falls, rises int
	late         int // rises in the last third
	lastRise     int // number of the last low point that is higher than the one before
	moved        bool
}

func (l *line) rise() int64 { return l.now.bytes - l.first }

// lines follows every key, and the sum, over the low points.
func (p *pool) lines(lows []int) (lines []line, total []int64) {
	if len(lows) > maxRepeats {
		thin := make([]int, 0, maxRepeats+1)
		for i := range maxRepeats {
			thin = append(thin, lows[i*(len(lows)-1)/(maxRepeats-1)])
		}
		lows = thin
	}
	lines = make([]line, len(p.keys))
	var touched []int32
	use, at := int64(0), 0
	for i, low := range lows {
		p.changes(at, low, func(_ int, c change) {
			l := &lines[c.key]
			l.now.add(c)
			use += c.bytes
			if !l.moved {
				l.moved = true
				touched = append(touched, c.key)
			}
		})
		at = low
		for _, k := range touched {
			lines[k].look(i, len(lows)-1)
		}
		touched = touched[:0]
		total = append(total, use)
	}
	return lines, total
}

// look compares with the low point before. A key that nothing happened to is as
// high as it was.
func (l *line) look(i, last int) {
	l.moved = false
	if i == 0 {
		l.first, l.prev = l.now.bytes, l.now.bytes
		return
	}
	switch {
	case l.now.bytes > l.prev:
		l.rises++
		l.lastRise = i
		if 3*i > 2*last {
			l.late++
		}
	case l.now.bytes < l.prev:
		l.falls++
	}
	l.prev = l.now.bytes
}

func (l *line) matters(inUse int64, n int) bool {
	return l.rise() > 0 && (l.rise() >= max(inUse/200, 1) || 5*l.rises >= 4*n && l.now.blocks >= int64(n))
}

func (l *line) steady(n int) bool { return 5*l.falls <= n && 5*l.rises >= 3*n && l.late > 0 }

func (l *line) rested(n int) bool { return 5*l.falls <= n && 2*l.lastRise <= n }

// order lists the keys whose bytes grew, those that grew most first.
func (p *pool) order(lines []line) (out []int32) {
	for i := range lines {
		if lines[i].rise() > 0 {
			out = append(out, int32(i))
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return lines[out[i]].rise() > lines[out[j]].rise() })
	return out
}

// rises says the same of the whole.
func rises(total []int64) bool {
	var l line
	n := len(total) - 1
	for i, use := range total {
		l.now.bytes = use
		l.look(i, n)
	}
	return l.steady(n) && l.rise() >= max(total[n]/20, 1)
}

// inModule says whether all that is known of the recording happened inside of
// calls of a module: what repeats there may be equal layers, not steps.
func (r *Recorder) inModule(p *pool) bool {
	some := false
	for _, w := range p.keys {
		if w.op == 0 {
			continue
		}
		if w.stack == 0 || !withinModule(r.strs.At(w.stack)) {
			return false
		}
		some = true
	}
	return some
}

func withinModule(stack string) bool {
	for f := range strings.SplitSeq(stack, "\n") {
		if strings.HasPrefix(f, "_call_impl ") || strings.HasPrefix(f, "_wrapped_call_impl ") {
			return true
		}
	}
	return false
}
