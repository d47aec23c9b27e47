package seal

import (
	"errors"
	"fmt"
)

// What may be wrong with a sealed file or its key; the errors of this package
// wrap one of these where a caller has to tell them apart.
var (
	ErrNotSealed = errors.New("not a sealed file")
	ErrVersion   = errors.New("sealed by a newer version")
	ErrBadKey    = errors.New("the key in the link is not whole")
	ErrWrongKey  = errors.New("the key does not fit this file")
	ErrCut       = errors.New("the sealed file is cut short")
	ErrDamaged   = errors.New("the sealed file is damaged")
	ErrOrder     = errors.New("the parts of the sealed file are in the wrong order")
)

// SegmentError says which segment did not open. It wraps ErrDamaged or ErrOrder.
type SegmentError struct {
	Segment int64 // counted from 0
	Offset  int64 // of its first byte in the sealed file
	Holds   int64 // the segment whose content was found there instead, or -1
	err     error
}

func (e *SegmentError) Error() string {
	if e.Holds >= 0 {
		return fmt.Sprintf("%v: at byte %d, where segment %d belongs, lies segment %d; download it again", e.err, e.Offset, e.Segment, e.Holds)
	}
	return fmt.Sprintf("%v: segment %d at byte %d is not what was sealed; download it again", e.err, e.Segment, e.Offset)
}

// Unwrap gives ErrDamaged or ErrOrder.
func (e *SegmentError) Unwrap() error { return e.err }
