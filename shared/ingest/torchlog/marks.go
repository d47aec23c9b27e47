package torchlog

// Marks are what a line holds, one of them at least, that the parser reads while
// it is Idle. The case of letters does not count.
func Marks() []string {
	return []string{
		"memory", "tried", "total cap", "failed to cuda ", "allocation on device", "total_size", "active_size", "segment_type", "allocated_size", ".all.", "_pool.", "num_ooms", "num_alloc_retries",
	}
}

// Idle says whether a line without a mark would change nothing: no message,
// table or list is open that it may go on with.
func (p *Parser) Idle() bool { return p.list == nil && p.lines == 0 && p.open == nil }
