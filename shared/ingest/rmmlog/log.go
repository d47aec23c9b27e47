package rmmlog

import (
	"fmt"
	"slices"
)

// Log is what the rows add up to. Bytes are those that callers asked for.
type Log struct {
	Line    int // of the header or first row
	Header  bool
	Headers int
	Old     bool

	Events, Allocs, Frees, Failures int64
	Live, Peak, Largest             int64
	LiveBlocks                      int64
	Unmatched                       int64 // frees of what no row allocated
	Mismatched                      int64 // frees with another size than the allocation
	CrossThread                     int64 // frees by another thread than the allocation's
	Threads                         []int64
	Streams                         []string // in order of appearance
	Devices                         []int64
	First, Last                     int64 // nanoseconds, -1 when no row tells
	// Meaningful: the old columns Free Memory and Total Memory are not all 0.
	Meaningful bool

	// After a failure: the failed size, and what the same thread got next.
	Failure     int64 // size of the last failed request
	FailureLine int
	Retry       int64 // size of the first success after it, -1 for none
	Smaller     bool  // some failure was followed by a smaller success

	// The commonest size among the live blocks at the end.
	CommonSize, CommonCount int64

	Refusals []*Refusal // told as text, beside rows or alone

	BadLine int // first line after the header that is no row
	Bad     string
	Cut     string // a limit of this reader was met
}

// Bounds of what a log may make the reader hold.
const (
	maxLive  = 1 << 22
	maxNames = 4096
	maxBytes = 1 << 62 // alive at once: sums stay numbers
)

type key struct {
	device int64
	ptr    uint64
}

type block struct {
	size, thread int64
}

func newLog() *Log { return &Log{First: -1, Last: -1, Retry: -1} }

func (l *Log) bad(num int, s string) {
	if l.BadLine == 0 {
		l.BadLine, l.Bad = num, s[:min(len(s), 80)]
	}
}

// count adds a row to the sums.
func (p *Parser) count(r *Row) {
	l := p.log
	if l.Line == 0 {
		l.Line = r.Line
	}
	l.Events++
	l.Old = l.Old || r.Old
	l.Meaningful = l.Meaningful || r.Free > 0 || r.Total > 0
	if l.First < 0 {
		l.First = r.Start
	}
	if r.End >= 0 {
		l.Last = r.End
	}
	if r.Thread >= 0 {
		l.Threads = appearing(l.Threads, r.Thread)
	}
	if r.Device >= 0 {
		l.Devices = appearing(l.Devices, r.Device)
	}
	l.Streams = appearing(l.Streams, r.Stream)
	switch r.Action {
	case Allocate:
		p.allocate(r)
	case Free:
		p.release(r)
	case Fail:
		l.Failures++
		l.Failure, l.FailureLine, l.Retry = r.Size, r.Line, -1
	}
}

func appearing[T comparable](list []T, x T) []T {
	for _, l := range slices.Backward(list) { // the newest is the likeliest
		if l == x {
			return list
		}
	}
	if len(list) >= maxNames {
		return list
	}
	return append(list, x)
}

func (p *Parser) allocate(r *Row) {
	l := p.log
	l.Allocs++
	l.Largest = max(l.Largest, r.Size)
	if l.Failures > 0 && l.Retry < 0 {
		l.Retry = r.Size
		l.Smaller = l.Smaller || r.Size < l.Failure
	}
	k := key{r.Device, r.Pointer}
	if old, ok := p.live[k]; ok { // its free is missing: the last one counts
		p.forget(k, old)
	}
	if len(p.live) >= maxLive {
		l.Cut = fmt.Sprintf("more than %d blocks alive at once: those from line %d on were not followed", maxLive, r.Line)
		return
	}
	if r.Size > maxBytes-l.Live {
		l.Cut = fmt.Sprintf("more than %d bytes alive at once, which no memory has: the block of line %d was not followed", int64(maxBytes), r.Line)
		return
	}
	p.live[k] = block{r.Size, r.Thread}
	p.sums[r.Size]++
	l.Live += r.Size
	l.Peak = max(l.Peak, l.Live)
}

func (p *Parser) release(r *Row) {
	l := p.log
	l.Frees++
	k := key{r.Device, r.Pointer}
	b, ok := p.live[k]
	if !ok {
		l.Unmatched++
		return
	}
	if b.thread != r.Thread {
		l.CrossThread++
	}
	if b.size != r.Size && r.Size > 0 { // the old columns print 0 for a free
		l.Mismatched++
	}
	p.forget(k, b)
}

func (p *Parser) forget(k key, b block) {
	delete(p.live, k)
	p.log.Live -= b.size
	if p.sums[b.size]--; p.sums[b.size] <= 0 {
		delete(p.sums, b.size)
	}
}

func (l *Log) finish(p *Parser) {
	l.LiveBlocks = int64(len(p.live))
	for size, n := range p.sums { // the largest share, the larger size on a tie
		if n*size > l.CommonCount*l.CommonSize || n*size == l.CommonCount*l.CommonSize && size > l.CommonSize {
			l.CommonSize, l.CommonCount = size, n
		}
	}
}
