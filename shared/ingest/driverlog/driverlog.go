// Package driverlog reads what a framework prints about the device beneath its
// allocator: what the device had at the start, sizes that the driver refused,
// and contexts that could not even be made.
//
// Such lines stand in nearly every log. They tell something of their own only
// where no allocator's dump follows; package analysis/foreign decides that.
package driverlog

import (
	"errors"
	"io"
	"strings"

	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/lines"
)

// Report is what a text says of the devices.
type Report struct {
	Line     int // of the first refusal or failed context
	Refused  []int64
	Count    int         // refusals, also those beyond the ones kept
	Total    bfclog.Size // of the device at the start
	Free     bfclog.Size
	Promised bfclog.Size // what the framework then took for its own
	Context  bool        // the driver's context could not be made
	Reported int64       // "total memory reported" with that, 0 when not
	Device   int64       // -1 when not told
	Starts   []Start     // devices as the framework found them, each once
	Pools    []Pool      // of XLA's client
}

// Empty says whether nothing was refused.
func (r *Report) Empty() bool { return r.Count == 0 && !r.Context }

// ErrNothing says that the text holds no refusal by the driver.
var ErrNothing = errors.New("no refusal by the driver in it")

const maxRefused = 4096

// Read reads a text to its end.
func Read(r io.Reader) (*Report, error) {
	p := New()
	if err := lines.Each(r, func(n int, s string) { p.Line(n, s) }); err != nil {
		return p.End(), err
	}
	rep := p.End()
	if rep.Empty() {
		return rep, ErrNothing
	}
	return rep, nil
}

// Parser takes a text line by line.
type Parser struct {
	rep  Report
	open int // one more than the start whose properties follow
}

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{rep: Report{Device: -1}} }

// End gives what was read. Nothing may follow.
func (p *Parser) End() *Report { return &p.rep }

// Line takes the next line, without its end, and says whether it was read.
func (p *Parser) Line(num int, s string) bool {
	if p.properties(num, s) || p.pool(num, s) {
		return true
	}
	if !strings.Contains(s, "emory") && !strings.Contains(s, "MEMORY") {
		return false
	}
	p.start(num, s)
	r := &p.rep
	switch {
	case strings.Contains(s, "failed to allocate ") && strings.Contains(s, "from device"):
		_, rest, _ := strings.Cut(s, "failed to allocate ")
		n, ok := lines.Int(lines.NumberAfter(rest, "("))
		if !ok {
			return false
		}
		p.found(num)
		r.Count++
		if len(r.Refused) < maxRefused {
			r.Refused = append(r.Refused, n)
		}
		return true
	case contextFailed(s):
		p.found(num)
		r.Context = true
		if n, ok := lines.Int(lines.NumberAfter(s, "total memory reported: ")); ok && n < 1<<50 {
			r.Reported = n
		}
		if n, ok := lines.Int(lines.NumberAfter(s, "on GPU:")); ok {
			r.Device = n
		}
		return true
	case strings.Contains(s, "totalMemory: "):
		r.Total, r.Free = sizeAfter(s, "totalMemory: "), sizeAfter(s, "freeMemory: ")
		return true
	case strings.Contains(s, "Total memory: "):
		r.Total = sizeAfter(s, "Total memory: ")
		return true
	case strings.Contains(s, "Free memory: "):
		r.Free = sizeAfter(s, "Free memory: ")
		return true
	case strings.Contains(s, "deviceMemorySize: "):
		return true // the start has it
	case strings.Contains(s, "reated") && strings.Contains(s, " MB memory"):
		head, _, _ := strings.Cut(s, " MB memory")
		i := strings.LastIndexByte(head, ' ')
		if n, rest, ok := lines.Digits(head[i+1:]); ok && rest == "" && n < 1<<30 {
			r.Promised = bfclog.ExactSize(int64(n) << 20)
		}
		return true
	}
	return false
}

func (p *Parser) found(num int) {
	if p.rep.Line == 0 {
		p.rep.Line = num
	}
}

// contextFailed: the driver had too little for its own context.
func contextFailed(s string) bool {
	if strings.Contains(s, "PrimaryCtxRetain") || strings.Contains(s, "cuCtxCreate") {
		return strings.Contains(s, "OUT_OF_MEMORY") || strings.Contains(s, "out of memory")
	}
	return strings.Contains(s, "implicit initialization on GPU") && strings.Contains(s, "out of memory")
}

func sizeAfter(s, label string) bfclog.Size {
	_, rest, _ := strings.Cut(s, label)
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	n, _ := bfclog.ParseSize(strings.TrimRight(word, ",;"))
	return n
}
