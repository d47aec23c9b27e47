// Package rows answers a table of requests, "op,id,size,stream", with what
// PyTorch's caching allocator does at every row: the block, the totals and the
// calls of the driver. It is the form in which recorded answers of the
// allocator exist, so that one can be held against another, row by row.
//
// The table says nothing of the device or the settings; the caller does. It
// knows no graphs and no recorded streams: those have no column.
package rows

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

// Header is the first line of every table of requests.
const Header = "op,id,size,stream"

const answerHeader = "step,op,id,segment,offset,block_bytes,reserved,allocated,events\n"

// MaxLine is the most bytes of a line.
const MaxLine = 4096

// Options say what is asked.
type Options struct {
	Capacity int64   // bytes of the device; 0 means without end
	Fraction float64 // of the capacity that may be reserved; 0 means what Settings say
	Settings torch.Settings
}

// Error says where a table is wrong, and what was expected there.
type Error struct {
	Line int
	Text string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("requests, line %d: %s", e.Line, e.Text) }

// Answer plays the table on an empty allocator. An error of the table names its
// line; what comes before it has been answered.
func Answer(r io.Reader, w io.Writer, o Options) error {
	p := &player{
		device: &device{Device: torch.NewDevice(alloc.NewCard(o.Capacity), 0)},
		in:     bufio.NewScanner(r), out: bufio.NewWriterSize(w, 1<<16), blocks: map[string]uint64{},
	}
	p.in.Buffer(make([]byte, 0, 256), MaxLine)
	a, err := torch.New(p.device, torch.Options{Settings: o.Settings, Fraction: o.Fraction, Tracer: p})
	if err != nil {
		return err
	}
	p.a = a
	err = p.play()
	a.Close()
	return errors.Join(err, p.out.Flush())
}

type player struct {
	a      *torch.Allocator
	device *device
	in     *bufio.Scanner
	out    *bufio.Writer
	line   int
	blocks map[string]uint64 // by id; 0: the request failed
	events []byte            // of the present row
}

func (p *player) play() error {
	if !p.next() || p.in.Text() != Header {
		if err := p.in.Err(); err != nil {
			return p.readError(err)
		}
		p.line = 1
		return p.errorf("a table of requests begins with %q, not with %q", Header, clip(p.in.Text()))
	}
	p.out.WriteString(answerHeader) // errors come back from Flush
	for step := 0; p.next(); step++ {
		if p.in.Text() == "" {
			return p.errorf("a row is %s, not an empty line", Header)
		}
		if err := p.row(step, strings.Split(p.in.Text(), ",")); err != nil {
			return err
		}
	}
	if err := p.in.Err(); err != nil {
		return p.readError(err)
	}
	return nil
}

func (p *player) next() bool {
	p.line++
	return p.in.Scan()
}

func (p *player) errorf(format string, args ...any) error {
	return &Error{p.line, fmt.Sprintf(format, args...)}
}

func (p *player) readError(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return p.errorf("the line is longer than %d bytes", MaxLine)
	}
	return fmt.Errorf("requests, line %d: %w", p.line, err)
}

// row does one row and writes its answer.
func (p *player) row(step int, f []string) error {
	if len(f) != 4 {
		return p.errorf("a row has 4 fields, %s, not %d", Header, len(f))
	}
	op, id, place := f[0], f[1], ",,"
	p.events = p.events[:0]
	switch op {
	case "a":
		b, ok, err := p.allocate(f)
		if err != nil {
			return err
		}
		switch {
		case ok:
			k, offset := p.device.locate(b.Address)
			place = fmt.Sprintf("%d,%d,%d", k, offset, b.Size)
		case f[2] != "0": // nothing was asked for, and nothing is missing
			op = "oom"
		}
		p.blocks[id] = b.Address
	case "f":
		addr, ok := p.blocks[id]
		if !ok {
			return p.errorf("block %s is not held: an 'a' row must come before", clip(strconv.Quote(id)))
		}
		delete(p.blocks, id)
		if err := p.a.Free(addr); err != nil {
			return p.errorf("%v", err)
		}
	case "e":
		p.a.EmptyCache()
	default:
		return p.errorf("op %s is unknown; known are a (allocate), f (free) and e (empty the cache)", clip(strconv.Quote(op)))
	}
	s := p.a.Stats()
	fmt.Fprintf(p.out, "%d,%s,%s,%s,%d,%d,%s\n", step, op, id, place, s.Pool, s.InUse, p.events)
	return nil
}

func (p *player) allocate(f []string) (b alloc.Block, ok bool, err error) {
	if _, held := p.blocks[f[1]]; held {
		return b, false, p.errorf("block %s is held already: free it first", clip(strconv.Quote(f[1])))
	}
	bytes, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || bytes < 0 {
		return b, false, p.errorf("size is a number of bytes, not %s", clip(strconv.Quote(f[2])))
	}
	s, err := strconv.ParseUint(f[3], 10, 64)
	if err != nil {
		return b, false, p.errorf("stream is a number, not %s", clip(strconv.Quote(f[3])))
	}
	b, ok = p.a.AllocateOn(torch.Request{Bytes: bytes, Stream: torch.Stream(s)})
	return b, ok, nil
}

// Trace implements torch.Tracer. The recorded rows have a blank before every
// event of a segment, and blanks between those of pages.
func (p *player) Trace(e torch.TraceEntry) {
	page := func(word string) {
		if len(p.events) > 0 {
			p.events = append(p.events, ' ')
		}
		p.events = strconv.AppendInt(append(p.events, word...), e.Size, 10)
	}
	k, _ := p.device.locate(e.Addr)
	switch e.Action {
	case torch.ActionSegmentAlloc:
		p.events = fmt.Appendf(p.events, " +seg%d:%d", k, e.Size)
	case torch.ActionSegmentFree:
		p.events = fmt.Appendf(p.events, " -seg%d", k)
	case torch.ActionSegmentMap:
		page("map:")
	case torch.ActionSegmentUnmap:
		page("unmap:")
	default: // the rows do not tell of the others
	}
}

// device numbers segments and reservations in the order of their addresses,
// which is the one they were made in.
type device struct {
	*torch.Device
	bases []uint64
}

func (d *device) Take(align, bytes int64) (addr uint64, received int64, ok bool) {
	if addr, received, ok = d.Device.Take(align, bytes); ok {
		d.bases = append(d.bases, addr)
	}
	return addr, received, ok
}

func (d *device) Reserve(bytes int64) (addr uint64, ok bool) {
	if addr, ok = d.Device.Reserve(bytes); ok {
		d.bases = append(d.bases, addr)
	}
	return addr, ok
}

func (d *device) locate(addr uint64) (number int, offset uint64) {
	k, found := slices.BinarySearch(d.bases, addr)
	if !found {
		k--
	}
	if k < 0 {
		return -1, 0
	}
	return k, addr - d.bases[k]
}

// clip keeps what an error quotes short.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
