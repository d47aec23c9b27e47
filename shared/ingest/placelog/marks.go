package placelog

// Marks are what a line holds, one of them at least, that the parser reads while
// it is Idle. The case of letters does not count.
func Marks() []string {
	return []string{": /job:", ")/job:", "executing op ", "assign a device ", "colocation group had", "colocation members", "without changing the devices"}
}

// Idle says whether a line without a mark would change nothing: no list is open
// whose next row it may be.
func (p *Parser) Idle() bool { return p.open == nothing }
