package xlalog

// Marks are what a line holds, one of them at least, that the parser reads while
// it is Idle. The case of letters does not count.
func Marks() []string {
	return []string{
		"ut of memory while trying", "ut of memory allocating", "bytes for new constant", "failed to allocate request", "bufferassignment",
		"allocation:", "fragmentation:", "peak buffers:", "buffer 0", "buffer 1", "buffer 2", "buffer 3", "buffer 4",
		"memory use below", "error loading program", "ran out of memory in", "that was not possible", "attempting to allocate ", "attempting to reserve ",
		"scoped allocation", "hbm usage:", "would exceed memory", "enough memory. requires", " capacity by ", " usage >=", " requirement ", "largest program alloc",
		"buffer 5", "buffer 6", "buffer 7", "buffer 8", "buffer 9",
	}
}

// Idle says whether a line without a mark would change nothing: no row of a
// buffer or of a compiler's table is awaited.
func (p *Parser) Idle() bool { return p.compile == nil && p.buffer == nil && p.torn.text == "" }
