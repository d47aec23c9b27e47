package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"tideline/shared/alloc"
)

// The bounds a reader enforces before it believes a number.
const (
	// MaxID is the largest block number; players keep a table of that length.
	MaxID = 1<<24 - 1
	// MaxLine is the longest line in bytes.
	MaxLine = 1 << 16
)

// Options are what stands at the head of a trace.
type Options struct {
	Name   string
	Limit  int64
	Growth bool
	Retry  bool
	// GC is garbage_collection.
	GC bool
	// Frag is fragmentation_fraction.
	Frag float64

	Base        uint64
	Order       alloc.Order
	Joins       bool // key coalesce
	Gap         int64
	Granularity int64
	HonorAlign  bool
	Reuse       bool
	Capacity    int64 // 0: unlimited
}

// Kind is an operation's kind; the value is what stands in the trace.
type Kind byte

// The operations of one letter, and those of two under a letter of their own.
const (
	Alloc        Kind = 'a'
	AllocNoRetry Kind = 'n'
	Free         Kind = 'f'
	Query        Kind = 'q'
	Sample       Kind = 's'
	MemoryMap    Kind = 'm'
	Clear        Kind = 'c'
	CounterOn    Kind = '1' // tc 1
	CounterOff   Kind = '0' // tc 0
	Tick         Kind = 't' // tn
	Frontier     Kind = 'S' // sf
)

// Stamp is a number, or the shared counter's present value less a number.
type Stamp struct {
	FromCounter bool
	N           uint64
}

// At is the stamp when the counter stands at now; it does not go below 0.
func (s Stamp) At(now uint64) uint64 {
	if !s.FromCounter {
		return s.N
	}
	return now - min(now, s.N)
}

// Op is one operation.
type Op struct {
	Kind  Kind
	ID    uint32
	Bytes int64 // as C++'s size_t, hence possibly negative
	Align int64
	Stamp Stamp // freed-by count of an allocation, value of a frontier
}

// Error says where a trace is wrong, and what was expected there.
type Error struct {
	Line int
	Text string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("trace, line %d: %s", e.Line, e.Text) }

// Reader reads a trace operation by operation.
type Reader struct {
	Options Options
	s       *bufio.Scanner
	line    int
	pending bool // the scanner stands on an operation already
	bound   []bool
}

// NewReader reads the head of a trace: its first line and its options.
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{s: bufio.NewScanner(r)}
	t.s.Buffer(make([]byte, 0, 4096), MaxLine)
	if !t.scan() || t.s.Text() != "bfc-trace 1" {
		if err := t.s.Err(); err != nil {
			return nil, t.readError(err)
		}
		t.line = 1
		return nil, t.errorf("a trace begins with 'bfc-trace 1', not with %q", clip(t.s.Text()))
	}
	t.Options = Options{Name: "GPU_0_bfc", Granularity: 256, HonorAlign: true}
	limit := false
	for t.next() {
		f := strings.Split(t.s.Text(), " ")
		if f[0] != "o" {
			t.pending = true
			break
		}
		if len(f) != 3 {
			return nil, t.errorf("an option is 'o KEY VALUE', not %q", clip(t.s.Text()))
		}
		if err := t.option(f[1], f[2]); err != nil {
			return nil, err
		}
		limit = limit || f[1] == "limit"
	}
	if err := t.s.Err(); err != nil {
		return nil, t.readError(err)
	}
	if !limit {
		return nil, t.errorf("the option limit is missing: 'o limit BYTES' must come before the operations")
	}
	return t, nil
}

func (t *Reader) scan() bool {
	if !t.s.Scan() {
		return false
	}
	t.line++
	return true
}

// next moves to the next line that carries something.
func (t *Reader) next() bool {
	for t.scan() {
		if b := t.s.Bytes(); len(b) > 0 && b[0] != '#' {
			return true
		}
	}
	return false
}

func (t *Reader) errorf(format string, args ...any) error {
	return &Error{t.line, fmt.Sprintf(format, args...)}
}

func (t *Reader) readError(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return &Error{t.line + 1, fmt.Sprintf("the line is longer than %d bytes", MaxLine)}
	}
	return fmt.Errorf("trace, after line %d: %w", t.line, err)
}

// Line is the number of the line read last.
func (t *Reader) Line() int { return t.line }

func (t *Reader) option(key, value string) error {
	var err error
	o := &t.Options
	switch key {
	case "name":
		o.Name = value
	case "limit":
		o.Limit, err = t.count(key, value, 0)
	case "growth":
		o.Growth, err = t.flag(key, value)
	case "retry":
		o.Retry, err = t.flag(key, value)
	case "gc":
		o.GC, err = t.flag(key, value)
	case "coalesce":
		o.Joins, err = t.flag(key, value)
	case "honor_align":
		o.HonorAlign, err = t.flag(key, value)
	case "reuse":
		o.Reuse, err = t.flag(key, value)
	case "gap":
		o.Gap, err = t.count(key, value, 0)
	case "gran":
		o.Granularity, err = t.count(key, value, 1)
	case "capacity":
		o.Capacity, err = t.count(key, value, 1)
	case "frag":
		o.Frag, err = strconv.ParseFloat(value, 64)
		if err != nil || !(o.Frag >= 0 && o.Frag <= 1) {
			return t.errorf("option frag is a fraction between 0 and 1, not %q", clip(value))
		}
	case "base":
		o.Base, err = strconv.ParseUint(value, 16, 64)
		if err != nil {
			return t.errorf("option base is a hexadecimal address without a prefix, not %q", clip(value))
		}
	case "order":
		return t.order(value)
	default:
		return t.errorf("option %q is unknown; known are name, limit, growth, retry, gc, frag, base, order, "+
			"coalesce, gap, gran, honor_align, reuse and capacity", clip(key))
	}
	return err
}

func (t *Reader) order(value string) error {
	for _, o := range []alloc.Order{alloc.Up, alloc.Down, alloc.Zigzag} {
		if o.String() == value {
			t.Options.Order = o
			return nil
		}
	}
	return t.errorf("option order is up, down or zigzag, not %q", clip(value))
}

func (t *Reader) flag(key, value string) (bool, error) {
	if value != "0" && value != "1" {
		return false, t.errorf("option %s is 0 or 1, not %q", key, clip(value))
	}
	return value == "1", nil
}

func (t *Reader) count(key, value string, least int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > math.MaxInt64/2 {
		return 0, t.errorf("option %s is a number from %d, not %q", key, least, clip(value))
	}
	return n, nil
}

// Next returns the next operation; io.EOF after the last one.
func (t *Reader) Next() (Op, error) {
	if !t.pending && !t.next() {
		if err := t.s.Err(); err != nil {
			return Op{}, t.readError(err)
		}
		return Op{}, io.EOF
	}
	t.pending = false
	line := t.s.Bytes()
	var fields [6]string
	n := split(line, &fields)
	return t.op(fields[:n])
}

// split cuts a line at its blanks, into one field more than any operation has
// at most. The strings share one copy of the line.
func split(line []byte, out *[6]string) int {
	s, n := string(line), 0
	for n < len(out)-1 {
		i := strings.IndexByte(s, ' ')
		if i < 0 {
			break
		}
		out[n] = s[:i]
		n++
		s = s[i+1:]
	}
	out[n] = s
	return n + 1
}

func (t *Reader) op(f []string) (Op, error) {
	switch f[0] {
	case "a", "n":
		return t.allocation(f)
	case "f", "q":
		if len(f) != 2 {
			return Op{}, t.errorf("expected '%s ID', got %d fields", f[0], len(f))
		}
		id, err := t.id(f[1])
		if err == nil && !t.isBound(id) {
			err = t.errorf("block %d is not bound: an 'a' or 'n' line must come before", id)
		}
		if err == nil && f[0] == "f" {
			t.bound[id] = false
		}
		return Op{Kind: Kind(f[0][0]), ID: id}, err
	case "s", "m", "c", "tn":
		if len(f) != 1 {
			return Op{}, t.errorf("%q stands alone on its line", f[0])
		}
		return Op{Kind: Kind(f[0][0])}, nil
	case "tc":
		if len(f) == 2 && f[1] == "1" {
			return Op{Kind: CounterOn}, nil
		}
		if len(f) == 2 && f[1] == "0" {
			return Op{Kind: CounterOff}, nil
		}
		return Op{}, t.errorf("expected 'tc 1' or 'tc 0'")
	case "sf":
		if len(f) != 2 {
			return Op{}, t.errorf("expected 'sf VALUE'")
		}
		s, err := t.stamp(f[1])
		return Op{Kind: Frontier, Stamp: s}, err
	case "o":
		return Op{}, t.errorf("options come before the operations")
	}
	return Op{}, t.errorf("%q is no operation; known are a, n, f, q, s, m, c, tc, tn and sf", clip(f[0]))
}

func (t *Reader) allocation(f []string) (Op, error) {
	op := Op{Kind: Kind(f[0][0]), Align: alloc.DefaultAlignment}
	if len(f) < 3 || len(f) > 5 {
		return op, t.errorf("expected '%s ID BYTES [ALIGN [FB]]', got %d fields", f[0], len(f))
	}
	var err error
	if op.ID, err = t.id(f[1]); err != nil {
		return op, err
	}
	if t.isBound(op.ID) {
		return op, t.errorf("block %d is bound already: free it first", op.ID)
	}
	bytes, err := strconv.ParseUint(f[2], 10, 64)
	if err != nil || bytes > math.MaxUint64-255 {
		return op, t.errorf("BYTES is a number up to 2^64-256, not %q", clip(f[2]))
	}
	op.Bytes = int64(bytes)
	if len(f) > 3 {
		op.Align, err = strconv.ParseInt(f[3], 10, 64)
		if err != nil || op.Align < 1 || op.Align&(op.Align-1) != 0 {
			return op, t.errorf("ALIGN is a power of two, not %q", clip(f[3]))
		}
	}
	if len(f) > 4 {
		if op.Stamp, err = t.stamp(f[4]); err != nil {
			return op, err
		}
	}
	t.bind(op.ID)
	return op, nil
}

func (t *Reader) id(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n > MaxID {
		return 0, t.errorf("ID is a number up to %d, not %q", MaxID, clip(s))
	}
	return uint32(n), nil
}

func (t *Reader) isBound(id uint32) bool { return int(id) < len(t.bound) && t.bound[id] }

func (t *Reader) bind(id uint32) {
	if int(id) >= len(t.bound) {
		t.bound = append(t.bound, make([]bool, int(id)+1-len(t.bound))...)
	}
	t.bound[id] = true
}

func (t *Reader) stamp(s string) (Stamp, error) {
	if rest, ok := strings.CutPrefix(s, "c"); ok {
		if rest == "" {
			return Stamp{FromCounter: true}, nil
		}
		n, err := strconv.ParseUint(strings.TrimPrefix(rest, "-"), 10, 64)
		if err != nil || rest[0] != '-' {
			return Stamp{}, t.errorf("a count is a number, 'c' or 'c-N', not %q", clip(s))
		}
		return Stamp{true, n}, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return Stamp{}, t.errorf("a count is a number, 'c' or 'c-N', not %q", clip(s))
	}
	return Stamp{N: n}, nil
}

// clip keeps what an error quotes short.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
