package rmmlog

// Marks are what a line holds, one of them at least, that the parser reads while
// it is Idle. The case of letters does not count.
func Marks() []string {
	out := []string{header, oldHeader, poolWords, oldWords, "cudaErrorMemoryAllocation"}
	for _, a := range actions {
		out = append(out, a.word)
	}
	return out
}

// Idle says whether a line without a mark would change nothing: after a header
// any line may be a row.
func (p *Parser) Idle() bool { return !p.log.Header }
