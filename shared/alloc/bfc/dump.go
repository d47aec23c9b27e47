package bfc

import (
	"sort"
	"strconv"

	"tideline/shared/alloc"
)

// dump logs the out-of-memory texts for w. The records and their words are
// upstream's, of 2024 in the classic profile and of 2026 in the current one.
func (a *Allocator) dump(w *want) {
	d := dumper{a: a, w: w, current: a.o.Profile == Current}
	d.request()
	d.say("BFCAllocator dump for ", a.o.Name)
	d.bins()
	d.chunkState()
	d.regions()
	d.inUseBySize()
	d.pool()
	d.say("Stats: \n", a.StatsText())
	a.obs.Log(alloc.Warning, a.Occupancy())
}

type dumper struct {
	a       *Allocator
	w       *want
	current bool
}

func (d *dumper) say(parts ...string) {
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	d.a.obs.Log(alloc.Info, string(b))
}

func (d *dumper) human(n uint64) string { return d.a.human(n) }

// human is HumanBytes, but for the one number that the code of 2024 writes
// otherwise.
func (a *Allocator) human(n uint64) string {
	if n == 1<<63 && a.o.Profile == Classic {
		return "-8E"
	}
	return HumanBytes(int64(n))
}

func decimal(n uint64) string  { return strconv.FormatUint(n, 10) }
func number(n int64) string    { return strconv.FormatInt(n, 10) }
func (d *dumper) free() uint64 { return d.a.pool - uint64(d.a.inUse) }

func (d *dumper) request() {
	text := "Allocator (" + d.a.o.Name + ") ran out of memory trying to allocate " +
		d.human(d.w.requested) + " (rounded to " + decimal(d.w.size) + ")"
	op := "requested by op " + d.a.obs.Op()
	if d.current {
		text += " from the " + tagNames[d.w.end] + " end " + op +
			"\nIf this is caused by memory fragmentation, the environment variable " +
			"'TF_GPU_ALLOCATOR=cuda_malloc_async' may improve the situation." +
			"\nCurrent allocation summary follows."
	} else {
		text += op +
			"\nIf the cause is memory fragmentation maybe the environment variable " +
			"'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. " +
			"\nCurrent allocation summary follows." +
			"\nCurrent allocation summary follows."
	}
	d.a.obs.Log(alloc.Warning, text)
}

func (d *dumper) bins() {
	for b, s := range d.a.bins() {
		d.say("Bin (", decimal(MinAllocation<<b), "): \tTotal Chunks: ", number(s.Chunks),
			", Chunks in use: ", number(s.ChunksInUse), ". ", HumanBytes(s.Bytes), " allocated for chunks. ",
			HumanBytes(s.BytesInUse), " in use in bin. ", HumanBytes(s.RequestedInUse),
			" client-requested in use in bin.")
	}
}

// chunkState lists the free chunks of the bin that the request would have
// come from.
func (d *dumper) chunkState() {
	b := binOf(d.w.size)
	d.say("Bin for ", d.human(d.w.size), " was ", d.human(MinAllocation<<b), ", Chunk State: ")
	for _, h := range d.freeOfBin(b) {
		d.say(d.describe(h, true))
	}
}

// freeOfBin are the free chunks of bin b in upstream's order: by size, then
// tag, then address.
func (d *dumper) freeOfBin(b int) []uint32 {
	var out []uint32
	for t := range d.a.sets {
		d.a.sets[t].each(d.a.chunks, MinAllocation<<b, func(h uint32) bool {
			if binOf(d.a.chunks[h].size) != b {
				return false
			}
			out = append(out, h)
			return true
		})
	}
	sort.SliceStable(out, func(i, j int) bool { return d.a.chunks[out[i]].size < d.a.chunks[out[j]].size })
	return out
}

func (d *dumper) describe(h uint32, neighbours bool) string {
	c := d.a.mapChunk(h)
	inUse := "0"
	if c.InUse() {
		inUse = "1"
	}
	s := "  Size: " + HumanBytes(c.Size) + " | Requested Size: " + HumanBytes(c.Requested) +
		" | in_use: " + inUse + " | bin_num: " + strconv.Itoa(c.Bin)
	if !neighbours {
		return s
	}
	if prev := d.a.chunks[h].prev; prev != none {
		s += ", prev: " + d.describe(prev, false)
	}
	if next := d.a.chunks[h].next; next != none {
		s += ", next: " + d.describe(next, false)
	}
	return s
}

func (d *dumper) regions() {
	for _, r := range d.a.regions {
		d.say("Next region of size ", decimal(r.size))
		for h := r.first; h != none; h = d.a.chunks[h].next {
			d.say(d.chunkLine(h))
		}
	}
}

func (d *dumper) chunkLine(h uint32) string {
	c := d.a.mapChunk(h)
	s := "Free  at "
	if c.InUse() {
		s = "InUse at "
	}
	s += strconv.FormatUint(c.Address, 16) + " of size " + number(c.Size)
	if d.current {
		s += " tag " + c.Tag
	}
	s += " next " + decimal(c.Next)
	if d.a.counter != nil {
		// Of a chunk in use it is left over from its last free.
		s += " freed_at_count " + decimal(c.FreedAt)
	}
	return s
}

func (d *dumper) inUseBySize() {
	counts := map[uint64]uint64{}
	var sizes []uint64
	d.a.eachChunk(func(_ uint32, c *chunk) {
		if !c.inUse() {
			return
		}
		if counts[c.size] == 0 {
			sizes = append(sizes, c.size)
		}
		counts[c.size]++
	})
	sort.SliceStable(sizes, func(i, j int) bool { return sizes[i] < sizes[j] })
	d.say("     Summary of in-use Chunks by size: ")
	var total uint64
	for _, size := range sizes {
		n := counts[size]
		d.say(decimal(n), " Chunks of size ", decimal(size), " totalling ", d.human(n*size))
		total += n * size
	}
	d.say("Sum Total of in-use chunks: ", d.human(total))
}

func (d *dumper) pool() {
	a := d.a
	if !d.current {
		d.say("Total bytes in pool: ", decimal(a.pool), " memory_limit_: ", decimal(a.limit),
			" available bytes: ", decimal(a.limit-a.pool),
			" curr_region_allocation_bytes_: ", decimal(a.nextRegion))
		return
	}
	end := d.w.end
	d.say("Allocator memory summary: rounded request ", d.human(d.w.size),
		", total free in pool ", d.human(d.free()),
		", largest free chunk usable by ", tagNames[end], " end ", d.human(max(a.sets[end].largest(a.chunks), a.gapSize())),
		", unallocated bytes ", d.human(a.limit-a.pool),
		", pool size ", d.human(a.pool), ", pool limit ", d.human(a.limit))
	if a.gap != none {
		// Recorded answers cover no partitioned allocator: these words are ours.
		g := &a.chunks[a.gap]
		d.say("Allocator spatial partitioning: central gap of ", d.human(g.size), " at ", strconv.FormatUint(g.addr, 16),
			", largest free lower chunk ", d.human(a.sets[tagLower].largest(a.chunks)),
			", largest free upper chunk ", d.human(a.sets[tagUpper].largest(a.chunks)))
	}
	growth := " (growth disabled; fixed-size pool; not an attempted allocation)."
	if a.o.Growth {
		growth = " (growth enabled)."
	}
	d.say("Allocator region growth hint: next region allocation target ", d.human(a.nextRegion), growth)
}

// StatsText is the statistics as upstream prints them, one a line.
func (a *Allocator) StatsText() string {
	s := a.Stats()
	current := a.o.Profile == Current
	size := func(n int64) string {
		if current {
			return HumanBytes(n)
		}
		return number(n)
	}
	var b []byte
	line := func(label string, width int, value string) {
		b = append(b, label...)
		for i := len(label) + len(value); i < width; i++ {
			b = append(b, ' ')
		}
		b = append(b, value...)
		b = append(b, '\n')
	}
	const width = 38 // labels take 18, values 20
	line("Limit:", width, size(s.Limit))
	line("InUse:", width, size(s.InUse))
	line("MaxInUse:", width, size(s.PeakInUse))
	line("NumAllocs:", width, number(s.NumAllocs))
	line("MaxAllocSize:", width, size(s.LargestAlloc))
	line("Reserved:", width, size(s.Reserved))
	line("PeakReserved:", width, size(s.PeakReserved))
	if !current {
		line("LargestFreeBlock:", width, "0") // never filled in then
		return string(b)
	}
	line("PeakAllocated:", width+4, size(s.PeakAllocated))
	line("LargestFreeBlock:", width, size(s.LargestFree))
	return string(b)
}

// OutOfMemoryText returns the records of a dump for a request of bytes as if
// it had just failed, each as upstream logs it.
func (a *Allocator) OutOfMemoryText(bytes int64, end alloc.End) []Record {
	w := want{requested: uint64(bytes), size: round(uint64(bytes)), align: MinAllocation}
	if a.o.Partition.On && end == alloc.Upper {
		w.end = tagUpper
	}
	k := &keeper{Observer: a.obs}
	a.obs = k
	a.dump(&w)
	a.obs = k.Observer
	return k.records
}

// Record is one log record.
type Record struct {
	Severity alloc.Severity
	Text     string // may have several lines
}

type keeper struct {
	alloc.Observer
	records []Record
}

func (k *keeper) Log(s alloc.Severity, text string) {
	k.records = append(k.records, Record{s, text})
}
