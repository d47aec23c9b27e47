package bfc

// barWidth is the number of characters of the occupancy bar.
const barWidth = 100

// Occupancy is the bar at the end of a dump: all regions laid end to end, '*'
// requested, 'x' in use beyond the request, '_' free.
func (a *Allocator) Occupancy() string {
	var total uint64
	for _, r := range a.regions {
		total += r.size
	}
	if total == 0 {
		return "<allocator contains no memory>"
	}
	bar := make([]byte, barWidth)
	for i := range bar {
		bar[i] = '_'
	}
	// Later chunks overwrite the cells they share with earlier ones.
	paint := func(from, n uint64, with byte) {
		if n == 0 {
			return
		}
		last := min(barWidth-1, (from+n-1)*barWidth/total)
		for i := from * barWidth / total; i <= last; i++ {
			bar[i] = with
		}
	}
	var before uint64
	for _, r := range a.regions {
		for h := r.first; h != none; h = a.chunks[h].next {
			c := &a.chunks[h]
			if c.inUse() {
				offset := before + c.addr - r.addr
				paint(offset+c.requested, c.size-c.requested, 'x')
				paint(offset, c.requested, '*')
			}
		}
		before += r.size
	}
	return string(bar)
}
