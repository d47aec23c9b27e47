package driverlog

// Marks are what a line holds, one of them at least, that the parser reads. The
// case of letters does not count.
func Marks() []string {
	return []string{"failed to alloc", "primaryctxretain", "cuctxcreate", "implicit initialization", "totalmemory:", "freememory:", "total memory:", "free memory:", " mb memory", "found device ", "devicememorysize:", " for bfcallocator"}
}
