package unzip

import (
	"errors"
	"fmt"
	"io"
)

// SizeError is an input that is longer than it may be.
type SizeError struct{ Limit int64 }

// Error names the limit.
func (e *SizeError) Error() string {
	return fmt.Sprintf("the input is longer than the limit of %d bytes", e.Limit)
}

// All reads an input to its end, unpacked if it is gzip. More than limit bytes
// are an error that names the limit; 0 means DefaultAll. What came before an
// error is returned with it.
func All(r io.Reader, limit int64) (data []byte, zipped bool, err error) {
	if limit <= 0 {
		limit = DefaultAll
	}
	in, zipped, err := Open(r, limit)
	if err != nil {
		return nil, zipped, err
	}
	buf := make([]byte, 0, 64<<10)
	for {
		if len(buf) == cap(buf) {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if int64(len(buf)) > limit {
			return buf[:limit], zipped, &SizeError{limit}
		}
		if errors.Is(err, io.EOF) {
			return buf, zipped, nil
		}
		if err != nil {
			return buf, zipped, err
		}
	}
}

// DefaultAll is how long an input may be that is kept whole.
const DefaultAll = 1 << 30
