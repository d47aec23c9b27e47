// Package steplog finds memory figures that a program prints again and again,
// as training loops do, and makes series of them: "max mem: 14655" behind a
// counter [1370/5000], or TensorFlow's current and peak after each iteration.
//
// A figure counts only when its label speaks of memory and comes back at least
// three times, so that ordinary logs make no series. Package analysis/foreign
// says whether a series grows.
package steplog

import (
	"errors"
	"io"
	"strings"

	"tideline/shared/ingest/lines"
)

// Log is the series of a text.
type Log struct {
	Series []*Series
	Total  int64 // steps announced ("of 5000"), -1 when not told
	Cut    string
}

// Series is one figure over steps.
type Series struct {
	Line    int
	Label   string // as printed, "max mem"
	Role    Role
	Unit    string // "GiB", "MiB", "GB", "bytes", … as printed; "" when not
	Steps   []float64
	Values  []float64
	Times   []int64 // nanoseconds since 1970 as the lines tell, in order; nil when one tells none
	Counted bool    // steps come from the text, not from counting samples
	untimed bool
	// distinct is how many steps there are: a figure may come more than once in
	// one, at its begin and at its end.
	distinct int
	last     float64
	stride   int // of every so many samples one is kept
	seen     int
}

// Role is what a figure is, where its line says so.
type Role uint8

// The roles.
const (
	Plain Role = iota
	DeviceCurrent
	DevicePeak
	HostAvailable
	HostUsed
)

// Bounds of what a text may make the reader hold. A series with more samples
// is thinned to every second, and so on.
const (
	maxSeries  = 64
	maxSamples = 1 << 14
	maxPerStep = 8 // samples; with more of them the number is not that of a step
)

// ErrNothing says that the text holds no such series.
var ErrNothing = errors.New("no memory figure that is printed at least three times in it")

// Read reads a text to its end.
func Read(r io.Reader) (*Log, error) {
	p := New()
	if err := lines.Each(r, func(n int, s string) { p.Line(n, s) }); err != nil {
		return p.End(), err
	}
	log := p.End()
	if len(log.Series) == 0 {
		return log, ErrNothing
	}
	return log, nil
}

// Parser takes a text line by line.
type Parser struct {
	log    *Log
	step   float64
	has    bool
	at     int    // line of the step
	line   string // that line, of which the time is only wanted with a figure
	time   int64
	timed  bool
	all    []*Series
	figure []found
	table  table
}

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{log: &Log{Total: -1}} }

// Line takes the next line, without its end, and says whether it holds a
// memory figure.
func (p *Parser) Line(num int, s string) bool {
	if len(s) > 2000 {
		return false
	}
	if p.table.column > 0 {
		if step, total, f, ok := p.table.row(s); ok {
			p.step, p.has, p.at, p.line = step, true, num, s
			p.log.Total = total
			p.stamp(num, s)
			p.add(num, f)
			return true
		}
	}
	if p.table.heading(s) {
		return true
	}
	g := look(s)
	if g.has {
		p.step, p.has, p.at, p.line = g.step, true, num, s
		if g.total > 0 {
			p.log.Total = g.total
		}
	}
	p.figure = p.figure[:0]
	if g.memory {
		p.figure = figures(s, p.figure)
	}
	if len(p.figure) > 0 {
		p.stamp(num, s)
	}
	for _, f := range p.figure {
		p.add(num, f)
	}
	return len(p.figure) > 0
}

// stamp is the time of a line with figures, or of the step's line before it.
func (p *Parser) stamp(num int, s string) {
	if p.time, p.timed = lines.FindStamp(s); !p.timed && p.has && num-p.at <= 8 {
		p.time, p.timed = lines.FindStamp(p.line)
	}
}

func (p *Parser) add(num int, f found) {
	var to *Series
	for _, s := range p.all {
		if s.Label == f.label && s.Role == f.role && s.Unit == f.unit {
			to = s
		}
	}
	if to == nil {
		if len(p.all) >= maxSeries {
			p.log.Cut = "more series than the reader keeps"
			return
		}
		to = &Series{Line: num, Label: strings.Clone(f.label), Role: f.role, Unit: strings.Clone(f.unit), Counted: true, stride: 1}
		p.all = append(p.all, to)
	}
	if n := len(to.Times); !p.timed || n > 0 && to.Times[n-1] > p.time {
		to.untimed = true
	}
	if p.table.column > 0 && len(to.Values) > 0 && to.last == p.step {
		to.Values[len(to.Values)-1] = f.value // a bar prints its row again and again
		return
	}
	to.add(f.value, p.step, p.time, p.has && num-p.at <= 8)
}

func (s *Series) add(v, step float64, time int64, counted bool) {
	switch {
	case !counted || s.seen > 0 && step < s.last:
		s.Counted = false
	case s.seen == 0 || step > s.last:
		s.distinct++
	}
	s.last = step
	if s.seen++; (s.seen-1)%s.stride != 0 {
		return
	}
	if len(s.Values) >= maxSamples {
		s.thin()
		if (s.seen-1)%s.stride != 0 {
			return
		}
	}
	s.Values = append(s.Values, v)
	s.Steps = append(s.Steps, step)
	s.Times = append(s.Times, time)
}

func (s *Series) thin() {
	k := 0
	for i := 0; i < len(s.Values); i += 2 {
		s.Values[k], s.Steps[k], s.Times[k] = s.Values[i], s.Steps[i], s.Times[i]
		k++
	}
	s.Values, s.Steps, s.Times = s.Values[:k], s.Steps[:k], s.Times[:k]
	s.stride *= 2
}

// End keeps what is a series. Nothing may follow.
func (p *Parser) End() *Log {
	for _, s := range p.all {
		if s.seen < 3 {
			continue
		}
		if s.untimed {
			s.Times = nil
		}
		if s.distinct < 3 || s.seen > maxPerStep*s.distinct {
			s.Counted = false
		}
		if !s.Counted {
			for i := range s.Steps {
				s.Steps[i] = float64(i * s.stride)
			}
		}
		p.log.Series = append(p.log.Series, s)
	}
	return p.log
}
