//go:build unix

package draw

import "syscall"

// cpu is the processor time of this process: wall time on a shared machine
// tells more of the others.
func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
