package smilog

// Marks are what a line holds, one of them at least, that the parser reads while
// it is Idle. The case of letters does not count.
func Marks() []string {
	return []string{"nvidia-smi ", "mib /", "mib |", "0000:", "nvsmi log", "processes:", "#", "memory.", "used_gpu_mem", "used_memory", "pid", " mib"}
}

// Idle says whether a line without a mark would change nothing: no table or
// screen is open whose next row it may be.
func (p *Parser) Idle() bool {
	return p.screen == nil && p.cols == nil && p.mon == nil && p.full == nil && p.above == ""
}
