package pickle

import (
	"errors"
	"fmt"
)

// ErrTruncated is wrapped by the error of a pickle that ends before its STOP.
var ErrTruncated = errors.New("the file ends before the pickle does")

// RefusedError is a pickle that wants to run code, or needs what only its
// writer has.
type RefusedError struct {
	Op     string // REDUCE, GLOBAL, BUILD, ...
	Name   string // what it names, such as os.system; "" where it names nothing
	Offset int64  // of the opcode in the unpacked file
}

// Error names the opcode and what it would have called.
func (e *RefusedError) Error() string {
	on := ""
	if e.Name != "" {
		on = " on " + e.Name
	}
	return fmt.Sprintf("pickle: offset %d: %s%s refused: pickles are read as data, and nothing in them is run", e.Offset, e.Op, on)
}

// LimitError is a pickle that would need more memory than it may take.
type LimitError struct {
	What   string // what grew: values, texts, one text
	Limit  int64  // bytes
	Offset int64
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("pickle: offset %d: %s exceed the limit of %d bytes", e.Offset, e.What, e.Limit)
}

func (m *Machine) bad(format string, a ...any) error {
	return fmt.Errorf("pickle: offset %d: "+format, append([]any{m.offset()}, a...)...)
}
