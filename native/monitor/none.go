//go:build !cuda

package monitor

import (
	"fmt"
	"strings"
)

// Monitor sees the cards. In this build it sees none.
type Monitor struct{}

// Open fails: NVML needs the tag cuda.
func Open() (*Monitor, error) {
	what := "this program was built without the tag cuda"
	if cards := System.KernelCards(); len(cards) > 0 {
		what += "; the kernel drives " + strings.Join(cards, ", ")
	}
	return nil, fmt.Errorf("%w: %s", ErrUnavailable, what)
}

// Driver is the driver's version.
func (*Monitor) Driver() string { return "" }

// Cards reads all cards.
func (*Monitor) Cards() ([]Card, error) { return nil, ErrUnavailable }

// Close lets the library go.
func (*Monitor) Close() {}
