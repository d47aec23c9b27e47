// Package unzip opens inputs that may be gzip, and stops a file that unpacks
// without end.
//
// It recognises gzip by its first bytes, as every reader's input may have been
// compressed by whoever sent it. The limit is on what comes out, so a bomb of a
// few kilobytes costs no more than the limit, and memory not at all: the
// readers behind it are streams.
package unzip

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// DefaultLimit is how many bytes may come out of one input.
const DefaultLimit = 8 << 30

// LimitError is an input that unpacks to more than it may.
type LimitError struct{ Limit int64 }

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("gzip: the file unpacks to more than the limit of %d bytes; raise the limit if it is no bomb", e.Limit)
}

// Open returns r, unpacked if it is gzip, which zipped says. At most limit
// bytes come out of a packed one before a *LimitError; 0 means DefaultLimit.
func Open(r io.Reader, limit int64) (out io.Reader, zipped bool, err error) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	b := bufio.NewReaderSize(r, 64<<10)
	head, err := b.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("read the first bytes: %w", err)
	}
	if len(head) < 2 || head[0] != 0x1f || head[1] != 0x8b {
		return b, false, nil
	}
	z, err := open(b)
	if err != nil {
		return nil, true, fmt.Errorf("gzip: read the header: %w", err)
	}
	return Limited(z, limit), true, nil
}

// Limited is what comes out of a packed input that somebody else unpacks: at
// most limit bytes before a *LimitError; 0 means DefaultLimit.
func Limited(r io.Reader, limit int64) io.Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &limited{r, limit, limit}
}

type limited struct {
	r     io.Reader
	left  int64
	limit int64
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		var one [1]byte
		if n, err := l.r.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, &LimitError{l.limit}
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	return n, err
}
