package memlog

import (
	"fmt"
	"slices"
	"strings"

	"tideline/shared/ingest/lines"
)

// Log is what the records add up to.
type Log struct {
	Records int64
	Line    int // of the first
	Kinds   []Count
	Styles  []string // of the prefixes, in order of appearance

	WithoutBuffer int64 // outputs without an allocation description
	EmptyDims     int64 // tensors with a dimension of 0, or scalars, whose text is empty
	RawAllocated  int64 // bytes
	TensorBytes   int64 // requested by tensor allocations
	GPUOutput     int64 // bytes of outputs that lie in a GPU allocator
	CPUOutput     int64 // bytes of outputs in any other
	Unmatched     int64 // deallocations of what no record allocated
	LiveBuffers   int64
	Allocators    []Allocator
	Steps         []int64 // ids that occur, the first few
	Bad           int64   // lines that could not be read, as they are cut
	BadLine       int
	Cut           string // a limit of this reader was met
}

// Count is a name and how often it occurs.
type Count struct {
	Name string
	N    int64
}

// Allocator is what one allocator's buffers add up to, in bytes as allocated.
type Allocator struct {
	Name                string
	Live, Peak, Largest int64
	Allocs, Frees       int64
}

// Bounds of what a log may make the reader hold.
const (
	maxLive  = 1 << 21
	maxNames = 64
	maxSteps = 1024
	maxBytes = 1 << 62 // alive at once: sums stay numbers
)

type buffer struct {
	allocator int
	id        int64
}

func (l *Log) bad(num int) {
	if l.Bad++; l.BadLine == 0 {
		l.BadLine = num
	}
}

// style names the way a line's prefix is written, whatever a collector of logs
// has put before it.
func (l *Log) style(prefix string) {
	s := "other"
	w := strings.Fields(prefix)
	n := len(w)
	is := func(i int, ok func(string) bool) bool { return n >= i && ok(w[n-i]) }
	switch { // the last word is the file
	case n == 0:
		s = "none"
	case is(2, severity) && is(3, clock):
		s = "date and time"
	case is(2, severity):
		s = "severity and file"
	case is(2, func(s string) bool { return s == "file" }) && is(4, severity):
		s = "count and file"
	case is(4, monthDay):
		s = "month and day"
	}
	if slices.Contains(l.Styles, s) {
		return
	}
	l.Styles = append(l.Styles, s)
}

// severity is a letter, which the mark of a collector or of a quotation may
// touch.
func severity(s string) bool {
	n := len(s) - 1
	return n >= 0 && strings.IndexByte("IWEF", s[n]) >= 0 && (n == 0 || strings.IndexByte(":>|]", s[n-1]) >= 0)
}

// clock: "14:53:23.483412:".
func clock(s string) bool {
	return len(s) > 9 && lines.IsDigit(s[0]) && s[2] == ':' && s[5] == ':' && s[len(s)-1] == ':'
}

// monthDay: "E0528".
func monthDay(s string) bool {
	return len(s) == 5 && severity(s[:1]) && lines.IsDigit(s[1]) && lines.IsDigit(s[4])
}

// count adds a record to the sums.
func (p *Parser) count(r *Record) {
	l := p.log
	if l.Records == 0 {
		l.Line = r.Line
	}
	l.Records++
	l.kind(r.Kind)
	l.step(r)
	if r.HasShape && emptyDim(r.Dims) {
		l.EmptyDims++
	}
	switch r.Kind {
	case TensorOutput:
		switch {
		case !r.HasBuffer:
			l.WithoutBuffer++
		case strings.HasPrefix(r.Allocator, "GPU"):
			l.GPUOutput += r.Requested
		default:
			l.CPUOutput += r.Requested
		}
	case TensorAllocation:
		if r.HasBuffer {
			l.TensorBytes += r.Requested
			p.allocate(r)
		}
	case RawAllocation:
		l.RawAllocated += r.Requested
		p.allocate(r)
	case TensorFree, RawFree:
		p.release(r)
	}
}

func emptyDim(dims []int64) bool {
	if slices.Contains(dims, 0) {
		return true
	}
	return len(dims) == 0
}

func (l *Log) kind(name string) {
	for i := range l.Kinds {
		if l.Kinds[i].Name == name {
			l.Kinds[i].N++
			return
		}
	}
	if len(l.Kinds) < maxNames {
		l.Kinds = append(l.Kinds, Count{name, 1})
	}
}

func (l *Log) step(r *Record) {
	if r.Kind == TensorFree || len(l.Steps) >= maxSteps {
		return
	}
	for _, v := range slices.Backward(l.Steps) {
		if v == r.Step {
			return
		}
	}
	l.Steps = append(l.Steps, r.Step)
}

func (l *Log) allocator(name string) int {
	for i := range l.Allocators {
		if l.Allocators[i].Name == name {
			return i
		}
	}
	if len(l.Allocators) >= maxNames {
		return maxNames - 1
	}
	l.Allocators = append(l.Allocators, Allocator{Name: strings.Clone(name)})
	return len(l.Allocators) - 1
}

func (p *Parser) allocate(r *Record) {
	i := p.log.allocator(r.Allocator)
	a := &p.log.Allocators[i]
	a.Allocs++
	a.Largest = max(a.Largest, r.Allocated)
	k := buffer{i, r.ID}
	if old, ok := p.live[k]; ok {
		a.Live -= old
		delete(p.live, k)
	} else if len(p.live) >= maxLive {
		p.log.Cut = fmt.Sprintf("more than %d buffers alive at once: those from line %d on were not followed", maxLive, r.Line)
		return
	}
	if r.Allocated > maxBytes-a.Live {
		p.log.Cut = fmt.Sprintf("more than %d bytes alive at once, which no memory has: the buffer of line %d was not followed", int64(maxBytes), r.Line)
		return
	}
	p.live[k] = r.Allocated
	a.Live += r.Allocated
	a.Peak = max(a.Peak, a.Live)
}

func (p *Parser) release(r *Record) {
	i := p.log.allocator(r.Allocator)
	k := buffer{i, r.ID}
	p.log.Allocators[i].Frees++
	size, ok := p.live[k]
	if !ok {
		p.log.Unmatched++
		return
	}
	delete(p.live, k)
	p.log.Allocators[i].Live -= size
}
