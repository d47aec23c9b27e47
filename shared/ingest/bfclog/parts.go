package bfclog

import "strings"

// The handlers of a dump's parts, in the order in which they are printed. Each
// returns whether it understood the line.

func (p *parser) request(r record) bool {
	b := r.body
	name, _ := between(b, "Allocator (", ")")
	_, tail, _ := strings.Cut(b, "trying to allocate ")
	size, rest := scanSize(tail)
	if i := strings.Index(rest, "(rounded to"); !size.Known || i >= 0 && !strings.Contains(rest[i:], ")") {
		return false
	}
	q := Request{Told: true, Size: size, Rounded: numberAfter(rest, "(rounded to "), FreedBy: numberAfter(rest, "freed_by_count=")}
	if _, after, ok := strings.Cut(rest, "requested by op"); ok {
		q.HasOp = true
		if f := strings.Fields(after); len(f) > 0 {
			q.Op = f[0]
		}
	}
	q.End, _ = between(rest, "from the ", " ")
	q.NotFailure = strings.Contains(rest, "not a failure")
	q.Short = q.NotFailure || q.FreedBy.Known
	if q.Short {
		p.notice(r, name, q)
		return true
	}
	d := p.newDump(r)
	d.Allocator, d.Request = name, q
	d.Promised = strings.Contains(rest, "summary follows")
	d.takeRefusals(p, r.source)
	return true
}

// notice counts a short warning; it confirms a dump rather than being one.
func (p *parser) notice(r record, name string, q Request) {
	if d := p.latest(r.source, func(d *Dump) bool {
		return d.Allocator == name && d.Request.Size.Text == q.Size.Text && d.Request.Size.N == q.Size.N && d.HasBar && d.confirms == 0
	}); d != nil && !q.NotFailure {
		d.confirms++
		d.Request.FreedBy = q.FreedBy
		return
	}
	for i := range p.log.Notices {
		n := &p.log.Notices[i]
		if n.Allocator == name && n.Requested == q.Size && n.NotFailure == q.NotFailure {
			n.Count++
			return
		}
	}
	if len(p.log.Notices) < maxNotices {
		p.log.Notices = append(p.log.Notices, Notice{Line: r.num, Allocator: name, Requested: q.Size, NotFailure: q.NotFailure, Count: 1})
	}
}

func (d *Dump) takeRefusals(p *parser, source string) {
	d.Refusals, p.refusals = takeFrom(p.refusals, source, d.Refusals)
	d.Pinned, p.pinned = takeFrom(p.pinned, source, d.Pinned)
}

func takeFrom(all []refusal, source string, to []int64) ([]int64, []refusal) {
	keep := all[:0]
	for _, x := range all {
		if x.source == source {
			to = append(to, x.bytes)
		} else {
			keep = append(keep, x)
		}
	}
	return to, keep
}

func (p *parser) header(r record) bool {
	name := strings.TrimSpace(strings.TrimPrefix(r.body, "BFCAllocator dump for "))
	d := p.pickOrNew(r, func(d *Dump) bool { return d.phase == phaseRequest && d.Allocator == name && !d.HasBar })
	if d.Allocator == "" {
		d.Allocator = name
		d.takeRefusals(p, r.source)
	}
	d.advance(phaseHeader)
	return true
}

func (p *parser) bin(r record) bool {
	b, freeOnly, ok := parseBin(r.body)
	if !ok {
		return false
	}
	d := p.pickOrNew(r,
		func(d *Dump) bool { return d.phase <= phaseBins && len(d.Bins) == b.Index && !d.HasBar },
		func(d *Dump) bool {
			return d.phase <= phaseBins && !d.HasBar && (len(d.Bins) == 0 || d.Bins[len(d.Bins)-1].Index < b.Index)
		})
	d.Bins = append(d.Bins, b)
	d.FreeOnly = d.FreeOnly || freeOnly
	d.advance(phaseBins)
	p.again(r, func(body string) bool {
		b, freeOnly, ok := parseBin(body)
		if ok {
			d.Bins[len(d.Bins)-1] = b
			d.FreeOnly = d.FreeOnly || freeOnly
		}
		return ok
	})
	return true
}

func (p *parser) target(r record) bool {
	asked, rest := scanSize(strings.TrimPrefix(r.body, "Bin for "))
	nominal := sizeAfter(rest, "was ")
	if !asked.Known || !nominal.Known {
		return false
	}
	early := func(d *Dump) bool { return d.phase <= phaseBins && !d.HasBar }
	d := p.pickOrNew(r,
		func(d *Dump) bool { return early(d) && len(d.Bins) > 0 && d.Request.Size.Text == asked.Text }, early)
	d.Target = nominal
	if !d.Request.Size.Known && asked.Known {
		d.Request.Size = asked // the head with the request line is missing
	}
	d.advance(phaseState)
	return true
}

func (p *parser) state(r record) bool {
	c, ok := parseState(r.body)
	if !ok {
		return false
	}
	d := p.pickOrNew(r, func(d *Dump) bool { return d.phase == phaseState },
		func(d *Dump) bool { return d.phase <= phaseState && !d.HasBar })
	if len(d.State) < maxSmall {
		d.State = append(d.State, c)
	}
	d.advance(phaseState)
	return true
}

func (p *parser) region(r record) bool {
	size := numberAfter(r.body, "Next region of size ")
	if !size.Known {
		return false
	}
	open := func(d *Dump) bool { return d.phase <= phaseList && !d.HasBar }
	d := p.pickOrNew(r, func(d *Dump) bool { return open(d) && d.regionFull() }, open)
	if len(d.Regions) < maxSmall {
		d.Regions = append(d.Regions, Region{Size: size.N})
	}
	d.RegionLines, d.lastEnd, d.listGap = true, 0, false
	d.advance(phaseList)
	last := &d.Regions[len(d.Regions)-1]
	p.again(r, func(body string) bool {
		size := numberAfter(body, "Next region of size ")
		last.Size = size.N
		return true
	})
	return true
}

// regionFull says whether the region being listed has got all its chunks.
func (d *Dump) regionFull() bool {
	if len(d.Regions) == 0 {
		return true
	}
	last := &d.Regions[len(d.Regions)-1]
	return d.lastEnd != 0 && last.Address+uint64(last.Size) == d.lastEnd
}

func (p *parser) chunk(r record) bool {
	c, ok := parseChunk(r.body)
	if !ok {
		return false
	}
	open := func(d *Dump) bool { return d.phase <= phaseList && !d.HasBar }
	d := p.pickOrNew(r,
		func(d *Dump) bool { return open(d) && d.lastEnd == c.Address && !d.regionFull() },
		func(d *Dump) bool { return open(d) && len(d.Regions) > 0 && d.lastEnd == 0 },
		open)
	if p.chunks >= maxChunks {
		p.log.Cut = "more chunk lines than the reader keeps"
		d.listGap = true
		return true
	}
	p.chunks++
	d.addChunk(c)
	p.again(r, func(body string) bool {
		c, ok := parseChunk(body)
		return ok && d.replaceLast(c)
	})
	return true
}

// addChunk files a chunk under the announced region, or in the plain list of
// the older generations, which is sorted out at the end.
func (d *Dump) addChunk(c Chunk) {
	d.advance(phaseList)
	end := c.Address + uint64(c.Size)
	if len(d.Regions) == 0 {
		d.rawList = append(d.rawList, c)
		d.lastEnd = end
		return
	}
	reg := &d.Regions[len(d.Regions)-1]
	c.Gap = d.listGap || d.lastEnd != 0 && d.lastEnd != c.Address
	if d.lastEnd == 0 && !d.listGap {
		reg.Address = c.Address
	}
	reg.Chunks = append(reg.Chunks, c)
	d.lastEnd, d.listGap = end, false
}

// replaceLast completes the last chunk by the tail of its broken line.
func (d *Dump) replaceLast(c Chunk) bool {
	list := &d.rawList
	if n := len(d.Regions); n > 0 {
		list = &d.Regions[n-1].Chunks
	}
	if len(*list) == 0 {
		return false
	}
	last := &(*list)[len(*list)-1]
	better := c.Size > last.Size || c.HasNext && (!last.HasNext || c.Next > last.Next)
	if last.Address != c.Address || !better {
		return false
	}
	c.Gap = last.Gap
	*last = c
	d.lastEnd = c.Address + uint64(c.Size)
	return true
}

func (p *parser) gap(r record) bool {
	d := p.pick(r, func(d *Dump) bool { return d.Begun() && !d.HasBar })
	if d == nil {
		return true
	}
	if len(d.Gaps) < maxSmall {
		d.Gaps = append(d.Gaps, r.num)
	}
	if d.phase == phaseList {
		d.listGap = true
	}
	return true
}

func (p *parser) summaryHeader(r record) bool {
	open := func(d *Dump) bool { return d.phase < phaseSummary && !d.HasBar }
	d := p.pickOrNew(r, func(d *Dump) bool { return open(d) && d.RegionLines && d.regionFull() }, open)
	d.HasSummary = true
	d.advance(phaseSummary)
	return true
}

func (p *parser) class(r record) bool {
	c, ok := parseClass(r.body)
	if !ok {
		return false
	}
	d := p.pickOrNew(r,
		func(d *Dump) bool {
			n := len(d.Summary)
			return d.phase == phaseSummary && (n == 0 || d.Summary[n-1].Size < c.Size)
		},
		func(d *Dump) bool { return d.phase < phaseSummary && !d.HasBar })
	if len(d.Summary) < maxChunks/16 {
		d.Summary = append(d.Summary, c)
		p.again(r, func(body string) bool {
			c, ok := parseClass(body)
			if ok {
				d.Summary[len(d.Summary)-1] = c
			}
			return ok
		})
	}
	d.advance(phaseSummary)
	return true
}

func (p *parser) sumTotal(r record) bool {
	t := sizeAfter(r.body, "chunks:")
	if !t.Known {
		return false
	}
	open := func(d *Dump) bool { return d.phase < phaseTotal && !d.HasBar }
	d := p.pickOrNew(r, func(d *Dump) bool { return open(d) && len(d.Summary) > 0 && Human(d.summaryBytes()) == t.Text }, open)
	d.SumTotal = t
	d.advance(phaseTotal)
	return true
}

func (d *Dump) summaryBytes() (sum int64) {
	for _, c := range d.Summary {
		sum += c.Count * c.Size
		if sum < 0 {
			return -1
		}
	}
	return sum
}

func (p *parser) pool(r record) bool {
	b := r.body
	pool := numberAfter(b, "total_region_allocated_bytes_:").Or(numberAfter(b, "Total bytes in pool:"))
	if !pool.Known {
		return false
	}
	open := func(d *Dump) bool { return d.phase < phasePool && !d.HasBar }
	d := p.pickOrNew(r, func(d *Dump) bool { return open(d) && d.regionBytes() == pool.N }, open)
	d.readPool(b)
	d.advance(phasePool)
	p.again(r, func(body string) bool { d.readPool(body); return true })
	return true
}

func (d *Dump) readPool(b string) {
	d.Pool = numberAfter(b, "total_region_allocated_bytes_:").Or(numberAfter(b, "Total bytes in pool:"))
	d.PoolLimit = numberAfter(b, "memory_limit_:")
	d.Available = numberAfter(b, "available bytes:")
	d.NextRegion = numberAfter(b, "curr_region_allocation_bytes_:")
}

// poolSummary reads the two lines that replace the pool line from 2025 on.
func (p *parser) poolSummary(r record) bool {
	b := r.body
	isSummary := strings.HasPrefix(b, "Allocator memory summary:")
	d := p.pickOrNew(r,
		func(d *Dump) bool {
			return d.phase <= phasePool && !d.HasBar &&
				(isSummary && !d.Pool.Known || !isSummary && d.Pool.Known && d.Growth == Unknown)
		},
		func(d *Dump) bool { return d.phase <= phasePool && !d.HasBar && !isSummary })
	d.advance(phasePool)
	if isSummary {
		d.Pool = sizeAfter(b, "pool size ")
		d.PoolLimit = sizeAfter(b, "pool limit ")
		d.Available = sizeAfter(b, "unallocated bytes ")
		d.FreeInPool = sizeAfter(b, "total free in pool ")
		if i := strings.Index(b, "largest free chunk usable by "); i >= 0 {
			d.LargestFree = sizeAfter(b[i:], " end ")
		}
		return true
	}
	d.NextRegion = sizeAfter(b, "allocation target ")
	switch {
	case strings.Contains(b, "growth enabled"):
		d.Growth = Yes
	case strings.Contains(b, "growth disabled"):
		d.Growth = No
	}
	return true
}

func (d *Dump) regionBytes() (sum int64) {
	for i := range d.Regions {
		sum += d.Regions[i].Size
	}
	return sum
}

func (p *parser) stats(r record) bool {
	p.closeStats(r.source)
	d := p.pickOrNew(r,
		func(d *Dump) bool { return (d.phase == phasePool || d.phase == phaseTotal) && !d.HasStats && !d.HasBar },
		func(d *Dump) bool { return !d.HasStats && !d.HasBar })
	d.HasStats, d.statsOn = true, true
	d.advance(phaseStats)
	return true
}

func (p *parser) closeStats(source string) {
	for _, d := range p.open {
		if d.Source == source {
			d.statsOn = false
		}
	}
}

// statsField reads one "Limit:   123" row.
func (p *parser) statsField(r record) bool {
	key, value, ok := strings.Cut(r.body, ":")
	if !ok || r.filed {
		return false
	}
	get, known := statsFields[key]
	if !known {
		return false
	}
	v, ok := countOrSize(strings.TrimSpace(value))
	if !ok {
		return false
	}
	vacant := func(d *Dump) bool { return !get(d).Known && !d.HasBar }
	d := p.pickOrNew(r, func(d *Dump) bool { return d.statsOn && vacant(d) }, vacant)
	*get(d) = v
	d.HasStats = true
	d.advance(phaseStats)
	return true
}

var statsFields = map[string]func(*Dump) *Size{
	"Limit":            func(d *Dump) *Size { return &d.Limit },
	"InUse":            func(d *Dump) *Size { return &d.InUse },
	"MaxInUse":         func(d *Dump) *Size { return &d.Peak },
	"NumAllocs":        func(d *Dump) *Size { return &d.Allocs },
	"MaxAllocSize":     func(d *Dump) *Size { return &d.LargestAlloc },
	"Reserved":         func(d *Dump) *Size { return &d.Reserved },
	"PeakReserved":     func(d *Dump) *Size { return &d.PeakReserved },
	"PeakAllocated":    func(d *Dump) *Size { return &d.PeakAllocated },
	"LargestFreeBlock": func(d *Dump) *Size { return &d.LargestFreeField },
}

func (p *parser) bar(r record) bool {
	b := r.body
	if len(b) == 102 {
		b = b[2:]
	}
	d := p.pickOrNew(r,
		func(d *Dump) bool { return d.phase == phaseStats && !d.HasBar },
		func(d *Dump) bool { return !d.HasBar })
	d.HasBar = true
	d.advance(phaseBar)
	if strings.HasPrefix(b, "<") {
		d.Empty = true
		return true
	}
	d.Bar = b
	if len(b) < 100 {
		p.barOf = d
	}
	return true
}
