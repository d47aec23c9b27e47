package bfclog

// Marks are what a line holds, one of them at least, that the parser reads while
// it is Idle. The case of letters does not count.
func Marks() []string {
	m := []string{
		".cc:", "allocator (", "bfcallocator dump", "bin (", "bin for ", "in_use", "next region of", "chunk at", "inuse at",
		"free at", "inuse  at", "free  at", "free   at", "of in-use chunks", " chunks of size ", "region_allocated", "bytes in pool:",
		"allocator memory", "allocator region", "stats:", "allocator contains",
		// the rows of the statistics
		"limit:", "inuse:", "numallocs:", "maxallocsize:", "reserved:", "peakallocated:", "largestfreeblock:",
		// what others print around a dump
		"oom when alloc", "failed to alloc", "could not allocate pinned", "garbage collection:", "cumemalloc", "/total memory:",
		"current allocation summary", "ut of memory", "current usage from", "b from ", "{{node ", "[[node: ",
		"dst tensor is", "failed to get conv", "alloc_failed", "thenrnnforward",
		// what people write where they left lines out; the last two become ASCII letters in lower case
		"snip", "omitted", "truncated", "left out", "many more lines", "skipped", "..", "…", "\u212a", "\u0130",
	}
	for d := '0'; d <= '9'; d++ {
		m = append(m, string(d)+"] ", string(d)+"e from ") // the tail of a prefix, or of a negative size
	}
	m = append(m, ".e from ")
	const bar = "*_x"
	for i := range 81 { // any four cells of the usage bar
		m = append(m, string([]byte{bar[i/27], bar[i/9%3], bar[i/3%3], bar[i%3]}))
	}
	return m
}

// Idle says whether a line without a mark would change nothing: no line before
// it waits for its rest.
func (p *Parser) Idle() bool {
	return p.p.broken.body == "" && p.p.barOf == nil && p.p.retry == nil
}
