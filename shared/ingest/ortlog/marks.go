package ortlog

// Marks are what a line holds, one of them at least, that the parser reads. The
// case of letters does not count.
func Marks() []string {
	return []string{
		"bfcarena", "extended allocation by ", "total allocated bytes: ", "allocated memory at ", "while running ",
		"requested buffer of", "smaller than requested", "find a free memory block", "failure 2: out of memory",
	}
}
