// Package ortlog reads what ONNX Runtime's arena writes to a log: how it was
// set up, each extension of it, and the two texts of a failure.
//
// The lines of several sessions and devices stand in one log; the device's
// name in the line keeps arenas apart. Package analysis/foreign says what the
// lines mean.
package ortlog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tideline/shared/ingest/lines"
)

// Report is everything that a text says of the arena.
type Report struct {
	Arenas   []*Arena
	Failures []*Failure
	Cut      string // a limit of this reader was met
}

// Empty says whether the text told nothing.
func (r *Report) Empty() bool { return len(r.Arenas)+len(r.Failures) == 0 }

// Arena is one arena's life. Numbers are bytes; -1 where the text lacks them.
type Arena struct {
	Line       int
	Device     string
	Configured bool // the line with the settings is there

	InitialChunk, MaxDead, InitialGrowth, MaxPowerOfTwo int64
	Limit                                               uint64
	Strategy                                            int64

	Extensions []Extension
	Reserved   []int64 // sizes got past the arena
}

// Extension is one region that the arena took.
type Extension struct {
	Line               int
	Bin                int64
	Requested, Rounded int64
	By, Total          int64
	From, To           string // addresses as printed
}

// Failure is one refused request.
type Failure struct {
	Line      int
	Count     int
	Node, Op  string
	Source    int64 // line of the source file, -1
	Requested int64 // rounded; -1 when beyond 63 bits or not told
	Huge      uint64
	Available int64 // -1 unless the limit refused
	Kind      FailureKind
	Device    int64  // -1 when not told
	Call      string // of the driver, where it is told
}

// FailureKind is which text it was.
type FailureKind uint8

// The kinds.
const (
	DeviceRefused FailureKind = iota
	LimitReached
	NoBlock     // "Failed to find a free memory block despite calling Extend"
	CallRefused // "CUDA failure 2: out of memory": outside of an arena, or where it grows
	Unfinished  // the arena's text breaks off before its figure
)

// ErrNothing says that the text holds no line of the arena.
var ErrNothing = errors.New("no line of ONNX Runtime's arena in it")

// Bounds of what a text may make the reader hold.
const (
	maxArenas     = 256
	maxExtensions = 1 << 16
	maxFailures   = 1024
)

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
	report *Report
	last   *Arena // whose extension is being told
	kept   int
	node   string
	op     string
	nodeAt int
	open   string // a failure's line that may go on in the next ones
	openAt int
}

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{report: &Report{}} }

// Line takes the next line, without its end, and says whether it was read.
func (p *Parser) Line(num int, s string) bool {
	switch {
	case strings.Contains(s, "Creating BFCArena for "):
		return p.create(num, s)
	case strings.Contains(s, "Extending BFCArena for "):
		return p.extending(num, s)
	case strings.Contains(s, "Extended allocation by "):
		return p.extended(func(e *Extension) { e.By = number(s, "Extended allocation by ") })
	case strings.Contains(s, "Total allocated bytes: "):
		return p.extended(func(e *Extension) { e.Total = number(s, "Total allocated bytes: ") })
	case strings.Contains(s, "Allocated memory at "):
		return p.extended(func(e *Extension) {
			e.From, _ = lines.Between(s, "Allocated memory at ", " ")
			e.To, _ = lines.Between(s, " to ", " ")
		})
	case strings.Contains(s, "Reserving memory in BFCArena for "):
		return p.reserve(num, s)
	}
	return p.failure(num, s)
}

// number reads the number after a label, -1 for none.
func number(s, label string) int64 {
	if n, ok := lines.Int(lines.NumberAfter(s, label)); ok {
		return n
	}
	return -1
}

func (p *Parser) arena(num int, device string) *Arena {
	for _, a := range p.report.Arenas {
		if a.Device == device {
			return a
		}
	}
	return p.newArena(num, device)
}

func (p *Parser) newArena(num int, device string) *Arena {
	a := &Arena{Line: num, Device: device, InitialChunk: -1, MaxDead: -1, InitialGrowth: -1, MaxPowerOfTwo: -1, Strategy: -1}
	if len(p.report.Arenas) >= maxArenas {
		p.report.Cut = fmt.Sprintf("more than %d arenas: those from line %d on were left out", maxArenas, num)
		return a
	}
	p.report.Arenas = append(p.report.Arenas, a)
	return a
}

func (p *Parser) create(num int, s string) bool {
	device, _ := lines.Between(s, "Creating BFCArena for ", " ")
	var a *Arena
	for _, o := range p.report.Arenas {
		if o.Device == device && !o.Configured && len(o.Extensions) == 0 {
			a = o
		}
	}
	if a == nil {
		a = p.newArena(num, device)
	}
	a.Configured = true
	a.InitialChunk = number(s, "initial_chunk_size_bytes: ")
	a.MaxDead = number(s, "max_dead_bytes_per_chunk: ")
	a.InitialGrowth = number(s, "initial_growth_chunk_size_bytes: ")
	a.MaxPowerOfTwo = number(s, "max_power_of_two_extend_bytes: ")
	a.Strategy = number(s, "arena_extend_strategy: ")
	for _, label := range []string{"memory limit: ", "memory_limit: "} {
		if n, ok := lines.NumberAfter(s, label); ok {
			a.Limit = n
		}
	}
	p.last = a
	return true
}

// latest is the newest arena of a device: a session makes a new one.
func (p *Parser) latest(num int, device string) *Arena {
	for _, v := range slices.Backward(p.report.Arenas) {
		if v.Device == device {
			return v
		}
	}
	return p.arena(num, device)
}

func (p *Parser) extending(num int, s string) bool {
	device, _ := lines.Between(s, "Extending BFCArena for ", " .")
	a := p.latest(num, device)
	p.last = a
	if p.kept >= maxExtensions {
		p.report.Cut = "more extensions than the reader keeps"
		p.last = nil
		return true
	}
	p.kept++
	a.Extensions = append(a.Extensions, Extension{
		Line: num, Bin: number(s, "bin_num:"), Requested: number(s, "num_bytes:"), Rounded: number(s, "rounded_bytes:"), By: -1, Total: -1,
	})
	return true
}

// extended files what is told of the extension under way.
func (p *Parser) extended(set func(*Extension)) bool {
	if p.last == nil || len(p.last.Extensions) == 0 {
		return false
	}
	set(&p.last.Extensions[len(p.last.Extensions)-1])
	return true
}

func (p *Parser) reserve(num int, s string) bool {
	device, _ := lines.Between(s, "Reserving memory in BFCArena for ", " ")
	n := number(s, "size: ")
	if n < 0 {
		return false
	}
	a := p.latest(num, device)
	if p.kept < maxExtensions {
		p.kept++
		a.Reserved = append(a.Reserved, n)
	}
	return true
}

// Idle says whether a line without a mark would change nothing.
func (p *Parser) Idle() bool { return p.open == "" }

// wrapped is over how many lines one text may be broken.
const wrapped = 4

// failure reads the texts of a refused request. The node may be named on the
// line before, and a terminal may have broken the text.
func (p *Parser) failure(num int, s string) bool {
	if p.open != "" {
		head := strings.TrimRight(p.open, " ")
		piece := strings.TrimSpace(s)
		for _, whole := range []string{head + " " + piece, head + piece} {
			if f := refused(whole); f != nil && f.Kind != Unfinished {
				f.Line, p.open = p.openAt, ""
				p.named(p.openAt, whole)
				p.file(f)
				return true
			}
		}
		switch {
		case num-p.openAt < wrapped && piece != "" && refused(piece) == nil && !strings.HasPrefix(piece, "Traceback"):
			p.open = head + " " + piece
			return true
		default:
			p.endOpen()
		}
	}
	p.named(num, s)
	f := refused(s)
	switch {
	case f == nil:
		return p.nodeAt == num
	case f.Kind == Unfinished:
		p.open, p.openAt = s, num
		return true
	}
	f.Line = num
	p.file(f)
	return true
}

// endOpen files a failure whose end did not come.
func (p *Parser) endOpen() {
	if f := refused(p.open); f != nil {
		f.Line = p.openAt
		p.file(f)
	}
	p.open = ""
}

// named notes the node that a line names. In texts within others its quotes are
// escaped.
func (p *Parser) named(num int, s string) {
	if op, ok := lines.Between(s, "while running ", " "); ok {
		p.op, p.nodeAt = op, num
		p.node, _ = lines.Between(strings.ReplaceAll(s, `\'`, "'"), "Name:'", "'")
	}
}

// refused reads the text of a refused request; nil where there is none.
func refused(s string) *Failure {
	f := &Failure{Count: 1, Source: -1, Requested: -1, Available: -1, Device: -1}
	var label string
	switch {
	case strings.Contains(s, "Failed to allocate memory for requested buffer of size "):
		label, f.Kind = "requested buffer of size ", DeviceRefused
	case strings.Contains(s, "is smaller than requested bytes of "):
		label, f.Kind = "requested bytes of ", LimitReached
		f.Available = number(s, "Available memory of ")
	case strings.Contains(s, "Failed to find a free memory block despite calling Extend"):
		label, f.Kind = "rounded_bytes=", NoBlock
	case strings.Contains(s, " failure 2: out of memory"):
		f.Kind = CallRefused
		f.Device = number(s, "GPU=")
		f.Call, _ = lines.Between(s, "expr=", ";")
		f.Call = strings.TrimSpace(f.Call[:min(len(f.Call), 120)])
		f.Source = number(s, "line=")
		return f
	}
	if n, ok := lines.NumberAfter(s, label); ok {
		f.Huge = n
		if n <= 1<<62 {
			f.Requested = int64(n)
		}
	} else {
		if !strings.Contains(s, "BFCArena::AllocateRawInternal") || strings.Contains(s, "Extending BFCArena") {
			return nil
		}
		f.Kind = Unfinished
	}
	f.Source = number(s, "bfc_arena.cc:")
	return f
}

// file adds a failure, or counts it: the runtime prints an error several times.
func (p *Parser) file(f *Failure) {
	if p.nodeAt > 0 && f.Line-p.nodeAt <= 3 {
		f.Node, f.Op = p.node, p.op
	}
	for _, o := range p.report.Failures {
		if o.Huge == f.Huge && o.Kind == f.Kind && o.Available == f.Available && o.Call == f.Call && (o.Node == f.Node || f.Node == "") {
			o.Count++
			return
		}
	}
	if len(p.report.Failures) < maxFailures {
		p.report.Failures = append(p.report.Failures, f)
	}
}

// End closes what is open. Nothing may follow.
func (p *Parser) End() *Report {
	if p.open != "" {
		p.endOpen()
	}
	return p.report
}
