package steplog

// Marks are what a line holds, one of them at least, that the parser reads. The
// case of letters does not count.
func Marks() []string {
	m := []string{"[ ", "gpu_mem"}
	m = append(m, memoryWords...)
	ends := " :=#[0123456789" // what may follow a word for steps
	for _, w := range stepWords {
		for _, c := range ends {
			m = append(m, w+string(c))
		}
	}
	for d := '0'; d <= '9'; d++ {
		m = append(m, "["+string(d))
	}
	return m
}
