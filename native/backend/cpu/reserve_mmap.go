//go:build linux || darwin

package cpu

import "syscall"

// reserve gets address space whose pages the system commits on first touch.
// MAP_NORESERVE keeps a pool larger than the machine's memory from being
// refused; what counts is what is touched.
func reserve(bytes int64) ([]byte, error) {
	return syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
}

// release fails only for a slice that reserve did not give.
func release(mem []byte) { _ = syscall.Munmap(mem) }
