package bridge

import (
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/finding"
	"tideline/shared/analysis/ledger"
	"tideline/shared/analysis/pins"
	"tideline/shared/store"
)

// causeWords is a cause in a few words.
func causeWords(c event.OOMCause) string {
	switch c {
	case event.OOMFull:
		return "the pool is full"
	case event.OOMFragmented:
		return "fragmented"
	case event.OOMLimitTooLow:
		return "the limit is below the need"
	case event.OOMOtherProcess:
		return "somebody else holds the card"
	case event.OOMRequestExceedsDevice:
		return "larger than the device"
	case event.OOMHostPinnedLimit:
		return "the pinned host pool is exhausted"
	case event.OOMRetryable:
		return "waiting would have sufficed"
	case event.OOMNotMemory:
		return "the size is nonsense"
	default:
		return "the cause is open"
	}
}

// causeText explains a cause: what it means and what to look at.
func causeText(c event.OOMCause) string {
	switch c {
	case event.OOMFull:
		return "Even with all free bytes in one piece the request would not fit: less must be alive at this moment. The tables show what was."
	case event.OOMFragmented:
		return "There are enough free bytes, but no single hole is large enough. The blocks around the largest hole keep it from growing."
	case event.OOMLimitTooLow:
		return "The allocator's own limit is below what the run needs; the device could give more."
	case event.OOMOtherProcess:
		return "The driver had too little left because another process holds part of the card."
	case event.OOMRequestExceedsDevice:
		return "No setting of the allocator helps: this one request is larger than the memory of the device. Split the tensor or the batch."
	case event.OOMHostPinnedLimit:
		return "Page-locked host memory ran out, not the device: fewer or smaller transfers must be in flight."
	case event.OOMRetryable:
		return "Frees that were already on their way would have made room."
	case event.OOMNotMemory:
		return "The number of bytes asked for is impossible: look for an overflow or an uninitialised size, not for memory."
	default:
		return "What is known does not decide between the causes."
	}
}

// oom explains the failed request at or before the cursor, else the first.
func (s *Session) oom(a *answer, r *request) {
	list := r.sl.tl.OOMs()
	if len(list) == 0 {
		a.key("text").text("No request failed in this timeline.")
		return
	}
	n := 0
	for i := range list {
		if list[i].Time <= r.at {
			n = i
		}
	}
	o := &list[n]
	a.note(failureWords(n, len(list)) + r.sl.atClock(o.Time))
	m, _ := event.ParseChunkMap(r.sl.tl.Text(o.ChunkMap))
	pool := s.oomPool(r.sl, o)
	if len(m) == 0 && (pool == nil || untaught(pool)) || r.sl.origin == "log" && partial(pool) {
		partOOM(a, r.sl.tl, o, m)
		return
	}
	if len(m) == 0 && pool != nil {
		m = pool.ChunkMapIn(o.Moment)
	}
	held, used, free, largest := m.Totals()
	a.verdict("Out of memory: "+causeWords(o.Cause), false, oomSentence(r.sl.tl, o, pool, free, largest), causeText(o.Cause))
	f := []figure{
		{name: "Asked", value: size(o.Requested), sub: roundedNote(o)},
		{name: "Free", value: size(free), sub: "in " + plural(int64(holes(m)), "hole")},
		{name: "Largest hole", value: size(largest), tone: toneIf(largest < o.Size, "bad")},
		{name: "In use", value: size(used), sub: percent(used, held)},
		{name: "Reserved", value: size(held)},
	}
	if pool != nil && pool.Limit > 0 {
		f = append(f, figure{name: "Limit", value: size(pool.Limit)})
	}
	if pool != nil {
		if last, ok := changeBeside(r.sl, pool, o.Time, -1); ok && o.Time-last > 1e9 {
			a.key("facts").list().text("The allocator waited " + clock(o.Time-last) + " for somebody to free memory before it gave up.").endList()
		}
	}
	a.figures(f...)
	if pool != nil {
		advise(a, r.sl.tl, o, pool)
	}
	a.strip(m)
	a.key("tables").list()
	oomTable(a, r.sl.tl, list)
	if pool != nil {
		ids := pool.LiveIn(nil, o.Moment)
		if r.sl.origin == "log" { // which names nobody
			sizeTable(a, m)
		} else {
			s.heldBy(a, r.sl.tl, pool, ids, o.Time)
		}
		ledgerTable(a, finding.Ledger(r.sl.tl, pool, o.Moment, o))
		pinTable(a, r.sl.tl, pool, ids, m)
	}
	holeTable(a, m)
	a.endList()
}

// advise says what may help, in the words of tideline explain. Whether it does,
// a rerun shows.
func advise(a *answer, tl *store.Timeline, o *store.OOM, pool *store.Pool) {
	var table event.Strings
	r, err := analysis.FromOutOfMemory(&event.Event{
		Kind: event.OutOfMemory, Time: o.Time, Device: o.Device, Size: o.Size, Requested: o.Requested, Step: o.Step, Cause: uint8(o.Cause),
		Op: table.ID(tl.Text(o.Op)), Tensor: table.ID(tl.Text(o.Tensor)), Text: table.ID(tl.Text(o.ChunkMap)),
	}, &table, analysis.FailureFrom(tl.Device(o.Device).Facts, pool.Facts, pool.Limit))
	if err != nil || len(r.Map) == 0 {
		return // without the map there is nothing to advise from
	}
	a.key("advice").list()
	for _, x := range r.Advice() {
		a.text(x.Text)
	}
	a.endList()
}

// ledgerTable says where all of a card's memory was.
func ledgerTable(a *answer, l *ledger.Ledger) {
	if l == nil {
		return
	}
	a.table(l.Title(), 0, []column{{"Where", kText}, {"Bytes", kBytes}, {"", kShare}}, func() {
		for _, x := range l.Lines() {
			a.row().text(x.Name).num(x.Bytes).num(max(0, x.Bytes)).endRow(rowEnd{})
		}
	})
}

// pinTable lists the regions of which little keeps much, and by whom.
func pinTable(a *answer, tl *store.Timeline, p *store.Pool, live []int32, m event.ChunkMap) {
	if len(m) < 2 {
		return // the holes say it
	}
	list := pins.Of(m)
	if len(list) == 0 {
		return
	}
	op := map[uint64]event.StringID{}
	for _, i := range live {
		x := p.Alloc(int(i))
		op[x.Address] = x.Op
	}
	more := max(0, len(list)-maxRows)
	a.table("Regions kept by few bytes", more, []column{{"Idle", kBytes}, {"Region", kBytes}, {"Kept by", kBytes}, {"Blocks", kCount}, {"Largest of", kText}, {"", kShare}}, func() {
		for i := range list[:len(list)-more] {
			x := &list[i]
			a.row().num(x.Idle).num(x.Size).num(x.Live).num(int64(x.Blocks)).text(firstOf(tl.Text(op[x.Largest]), "–")).num(x.Idle).endRow(rowEnd{})
		}
	})
}

func failureWords(n, of int) string { return "failure " + itoa(int64(n)+1) + " of " + itoa(int64(of)) }

// atClock is a time behind a note. A log tells of moments without a clock that
// can be trusted: theirs is not told, for it is made up.
func (sl *slot) atClock(t int64) string {
	if sl.origin == "log" {
		return ""
	}
	return " · at " + clock(t)
}

func (s *Session) oomPool(sl *slot, o *store.OOM) *store.Pool {
	if o.Pool >= 0 && o.Pool < len(sl.tl.Pools()) {
		return sl.tl.Pools()[o.Pool]
	}
	return nil
}

func roundedNote(o *store.OOM) string {
	if o.Size > o.Requested {
		return "rounded to " + size(o.Size)
	}
	return ""
}

func toneIf(on bool, t string) string {
	if on {
		return t
	}
	return ""
}

func oomSentence(tl *store.Timeline, o *store.OOM, p *store.Pool, free, largest int64) string {
	var b strings.Builder
	if op := tl.Text(o.Op); op != "" {
		b.WriteString(op)
	} else {
		b.WriteString("A request")
	}
	if o.Step >= 0 {
		b.WriteString(" in step " + itoa(int64(o.Step)+1))
	}
	b.WriteString(" asked for " + size(o.Requested))
	if p != nil {
		b.WriteString(" of " + p.Name)
	}
	b.WriteString(" while " + size(free) + " were free, the largest hole being " + size(largest) + ".")
	return b.String()
}

func oomTable(a *answer, tl *store.Timeline, list []store.OOM) {
	if len(list) < 2 {
		return
	}
	more := max(0, len(list)-maxRows)
	a.table("All failed requests", more, []column{{"Time", kTime}, {"Cause", kText}, {"Asked", kBytes}, {"Op", kText}, {"Step", kCount}}, func() {
		for i := range list[:len(list)-more] {
			o := &list[i]
			a.row().num(o.Time).text(causeWords(o.Cause)).num(o.Requested).text(tl.Text(o.Op))
			if o.Step >= 0 {
				a.num(int64(o.Step) + 1)
			} else {
				a.null()
			}
			a.endRow(rowEnd{goes: true, t: o.Time})
		}
	})
}

// heldBy says which ops hold the memory.
func (s *Session) heldBy(a *answer, tl *store.Timeline, p *store.Pool, ids []int32, at int64) {
	th := theme(s.theme)
	list := p.TotalsByOp(ids, 0)
	more := max(0, len(list)-maxRows)
	a.table("What held the memory, by op", more, []column{{"Op", kText}, {"Category", kText}, {"Bytes", kBytes}, {"Blocks", kCount}, {"", kShare}}, func() {
		for _, t := range list[:len(list)-more] {
			a.row().text(firstOf(tl.Text(t.Op), "–")).text(p.CategoryName(t.Category)).num(t.Bytes).num(int64(t.Count)).num(t.Bytes).
				endRow(rowEnd{color: th.Category[t.Category].Hex(), goes: true, t: at})
		}
	})
}

// partOOM is a failure whose text does not list all chunks, or none: of part of a
// map nothing follows about holes. What the text says is the reader's to tell, and
// of a text that is no dump the cause is too.
func partOOM(a *answer, tl *store.Timeline, o *store.OOM, m event.ChunkMap) {
	title, why := "Out of memory: "+causeWords(o.Cause), causeText(o.Cause)
	if o.Cause == event.OOMUndetermined {
		if why = conclusion(tl, o); why != "" {
			title = "Out of memory"
		} else {
			why = causeText(o.Cause)
		}
	}
	lacks := "The text lists no chunks"
	if len(m) > 0 {
		lacks = "The text does not list all chunks"
	}
	a.verdict(title, false, why, lacks+", so that its holes cannot be seen here. “What it says” has what follows from it.")
	a.figures(append([]figure{{name: "Asked", value: size(o.Requested), sub: roundedNote(o)}}, reported(tl, o.Device, o.Time)...)...)
	a.key("tables").list()
	oomTable(a, tl, tl.OOMs())
	if len(m) > 0 {
		sizeTable(a, m)
		regionTable(a, m)
	}
	a.endList()
}

// sizeTable groups the chunks in use by size, as the dump's own summary does.
func sizeTable(a *answer, m event.ChunkMap) {
	count := map[int64]int64{}
	var sizes []int64
	for _, r := range m {
		for _, c := range r.Chunks {
			if c.InUse {
				if count[c.Size] == 0 {
					sizes = append(sizes, c.Size)
				}
				count[c.Size]++
			}
		}
	}
	sortByTotal(sizes, count)
	more := max(0, len(sizes)-60)
	a.table("Chunks in use by size, most bytes first", more, []column{{"Size", kBytes}, {"Chunks", kCount}, {"Together", kBytes}, {"", kShare}}, func() {
		for _, n := range sizes[:len(sizes)-more] {
			a.row().num(n).num(count[n]).num(n * count[n]).num(n * count[n]).endRow(rowEnd{})
		}
	})
}
