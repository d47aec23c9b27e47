package memlog

// Marks are what a line holds, one of them at least, that the parser reads.
func Marks() []string { return []string{mark} }
