package bfclog

import (
	"fmt"
	"sort"
)

// finish sorts out what only the whole text tells: errors without a dump, the
// regions of old lists, and which parts are missing.
func (p *parser) finish() {
	for i := range p.loose {
		e := &p.loose[i]
		if d := p.latest(e.source, func(d *Dump) bool { return d.explains(e) }); d != nil {
			d.claim(e)
		}
	}
	if len(p.log.Dumps) == 0 {
		p.withoutDump()
	}
	for _, d := range p.log.Dumps {
		d.finish()
	}
}

// withoutDump makes readings of texts that hold an error or a notice only.
func (p *parser) withoutDump() {
	for i := range p.loose {
		e := &p.loose[i]
		if d := p.newDump(record{num: e.line, source: e.source}); d != nil {
			d.claim(e)
			d.takeRefusals(p, e.source)
		}
	}
	if len(p.loose) > 0 {
		return
	}
	for _, n := range p.log.Notices {
		d := p.newDump(record{num: n.Line})
		d.Allocator = n.Allocator
		d.Request = Request{Size: n.Requested, Short: true, NotFailure: n.NotFailure}
		d.takeRefusals(p, "")
	}
	if len(p.log.Notices) == 0 && len(p.refusals)+len(p.pinned) > 0 {
		d := p.newDump(record{num: 1})
		d.takeRefusals(p, p.firstSource())
	}
}

func (p *parser) firstSource() string {
	if len(p.refusals) > 0 {
		return p.refusals[0].source
	}
	return p.pinned[0].source
}

func (d *Dump) finish() {
	if len(d.rawList) > 0 {
		d.regionsFromList()
	}
	for i := range d.Regions {
		r := &d.Regions[i]
		if r.Address == 0 && len(r.Chunks) > 0 {
			r.Address = r.Chunks[0].Address
		}
		if d.RegionLines {
			r.Complete = r.tiled()
		}
	}
	if d.listGap && len(d.Regions) > 0 {
		d.Regions[len(d.Regions)-1].Complete = false
	}
	d.ListComplete = d.listComplete()
	d.findMissing()
}

// regionsFromList builds runs of touching chunks out of the lists without
// region lines, where used chunks come first and free ones after.
func (d *Dump) regionsFromList() {
	sort.SliceStable(d.rawList, func(i, j int) bool { return d.rawList[i].Address < d.rawList[j].Address })
	var end uint64
	for i, c := range d.rawList {
		if i == 0 || c.Address != end {
			d.Regions = append(d.Regions, Region{Address: c.Address})
		}
		r := &d.Regions[len(d.Regions)-1]
		r.Chunks = append(r.Chunks, c)
		r.Size += c.Size
		end = c.Address + uint64(c.Size)
	}
	d.rawList = nil
}

// tiled says whether the chunks cover the announced region without a gap.
func (r *Region) tiled() bool {
	at := r.Address
	for i := range r.Chunks {
		c := &r.Chunks[i]
		if c.Gap || c.Address != at {
			return false
		}
		at += uint64(c.Size)
	}
	return at-r.Address == uint64(r.Size)
}

// Listed sums the chunk list: numbers and bytes, in use and free.
func (d *Dump) Listed() (used, usedBytes, free, freeBytes int64) {
	for i := range d.Regions {
		for _, c := range d.Regions[i].Chunks {
			if c.InUse {
				used++
				usedBytes += c.Size
			} else {
				free++
				freeBytes += c.Size
			}
		}
	}
	return used, usedBytes, free, freeBytes
}

// listComplete checks the list against everything else that the dump tells. A
// list that nothing confirms is not taken for complete.
func (d *Dump) listComplete() bool {
	if d.Empty && len(d.Regions) == 0 {
		return true
	}
	if len(d.Regions) == 0 {
		return false
	}
	used, usedBytes, free, freeBytes := d.Listed()
	confirmed := d.RegionLines
	for i := range d.Regions {
		if d.RegionLines && !d.Regions[i].Complete {
			return false
		}
	}
	if d.InUse.Known {
		if usedBytes < d.InUse.Lo || usedBytes > d.InUse.Hi {
			return false
		}
		confirmed = true
	}
	if d.Pool.Known {
		if s := usedBytes + freeBytes; s < d.Pool.Lo || s > d.Pool.Hi {
			return false
		}
	} else if d.RegionLines && !d.HasSummary && !d.SumTotal.Known && !d.HasStats {
		return false // nothing after the list survives, so regions may follow
	}
	if n, ok := d.FreeInBins(); ok && n != free {
		return false
	}
	if len(d.Summary) > 0 && d.SumTotal.Known {
		n, bytes := d.summaryTotals()
		if n != used {
			return false
		}
		confirmed = confirmed || bytes == usedBytes && Human(bytes) == d.SumTotal.Text
	}
	if !d.RegionLines && !d.Pool.Known {
		if _, ok := d.FreeInBins(); !ok {
			// The free chunks come last in this generation; without another
			// count of them some may be lost.
			confirmed = confirmed && d.Limit.Known && d.Limit.Lo-usedBytes-freeBytes < granule
		}
	}
	return confirmed
}

// FreeInBins is the number of free chunks that the bin lines count; false
// unless all 21 are there.
func (d *Dump) FreeInBins() (int64, bool) {
	var n int64
	for _, b := range d.Bins {
		n += b.Chunks - b.InUse
	}
	return n, len(d.Bins) == 21
}

// summaryTotals sums the rows of the summary.
func (d *Dump) summaryTotals() (chunks, bytes int64) {
	for _, c := range d.Summary {
		chunks += c.Count
	}
	return chunks, d.summaryBytes()
}

// SummaryTotals sums the rows of the summary: chunks and bytes. complete says
// whether the rows are all there, checked against the dump's other totals.
func (d *Dump) SummaryTotals() (chunks, bytes int64, complete bool) {
	chunks, bytes = d.summaryTotals()
	if !d.HasSummary && len(d.Summary) == 0 {
		return 0, 0, false
	}
	if d.InUse.Known {
		return chunks, bytes, bytes >= d.InUse.Lo && bytes <= d.InUse.Hi
	}
	return chunks, bytes, d.SumTotal.Known && Human(bytes) == d.SumTotal.Text
}

// findMissing lists the parts that a whole dump has and this one lacks.
func (d *Dump) findMissing() {
	if !d.Begun() && !d.Promised {
		return
	}
	miss := func(lacks bool, what string) {
		if lacks {
			d.Missing = append(d.Missing, what)
		}
	}
	miss(!d.Request.Told, "the request line")
	if !d.Async {
		d.missingLists(miss)
	}
	miss(!d.HasStats, "the statistics block")
	miss(!d.HasBar && !d.Async, "the usage bar")
	if n := len(d.Gaps); n > 0 {
		d.Missing = append(d.Missing, fmt.Sprintf("lines left out at a mark (line %d)", d.Gaps[0]))
	}
	d.Truncated = len(d.Missing) > 0
}

func (d *Dump) missingLists(miss func(bool, string)) {
	switch n := len(d.Bins); {
	case n == 0:
		miss(true, "the bin lines")
	case n < 21:
		miss(true, fmt.Sprintf("%d of 21 bin lines", 21-n))
	}
	switch {
	case len(d.Regions) == 0 && !d.Empty:
		miss(true, "the chunk list")
	case !d.ListComplete:
		miss(true, "a part of the chunk list")
	}
	_, _, complete := d.SummaryTotals()
	switch {
	case len(d.Summary) == 0 && !d.HasSummary:
		miss(true, "the summary by size")
	case !complete:
		miss(true, "rows of the summary by size")
	}
}
