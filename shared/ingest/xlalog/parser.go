package xlalog

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/shared/ingest/lines"
)

// ErrNothing says that the text holds no report of XLA.
var ErrNothing = errors.New("no out-of-memory report of XLA in it")

// Bounds of what a text may make the reader hold.
const (
	maxFailures = 512
	maxBuffers  = 4096 // of all failures
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
	report  *Report
	open    *Failure // whose statistics may follow
	buffer  *Buffer
	compile *Compile
	alloc   *Allocation
	program bool // within the program's own table
	kept    int
	temp    string // a row of the temporaries whose end is missing
	torn    torn
	again   bool // tables that follow are those of a report printed again
	remat   *Remat
}

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{report: &Report{}} }

// Line takes the next line, without its end, and says whether it is part of
// such a report.
func (p *Parser) Line(num int, s string) bool {
	if found := strings.Contains(s, `\n`); found && len(s) > 200 && (strings.Contains(s, "BufferAssignment") || strings.Contains(s, "hbm")) {
		took := false
		for part := range strings.SplitSeq(s, `\n`) {
			took = p.one(num, strings.ReplaceAll(part, `\t`, "\t")) || took
		}
		return took
	}
	return p.one(num, s)
}

func (p *Parser) one(num int, s string) bool {
	if p.torn.text != "" && p.rest(s) {
		return true
	}
	switch {
	case strings.Contains(s, "ut of memory while trying to allocate "), strings.Contains(s, "Failed to allocate request for "):
		return p.failure(num, s)
	case strings.Contains(s, "ut of memory allocating "), strings.Contains(s, "ailed to allocate ") && strings.Contains(s, " bytes for new constant"):
		return p.plainFailure(num, s)
	case strings.Contains(s, "educe memory use below "):
		return p.rematerialized(num, s)
	case tpuFailure(s):
		return p.compileFailure(num, s)
	case strings.Contains(s, "BufferAssignment OOM Debugging"), strings.Contains(s, "BufferAssignment stats:"):
		p.statsOf(num)
		return true
	}
	if p.compile == nil && !p.again && headless(s) {
		c := newCompile(num)
		c.Space, _ = lines.Between(s, "Total ", " ")
		if !strings.Contains(s, " usage >=") {
			if c.Space, _ = lines.Between(s, "Program ", " "); !strings.Contains(s, " requirement") {
				c.Space, _ = lines.Between(s, "allocations in ", " :")
			}
		}
		p.addCompile(c)
	}
	if p.compile != nil && p.compileLine(s) {
		return true
	}
	return p.open != nil && p.detail(s)
}

// failure reads the request's line.
func (p *Parser) failure(num int, s string) bool {
	f := &Failure{Line: num, Bytes: -1, Device: -1, Count: 1}
	f.Stats.TempFragmentationShare, f.Stats.TotalFragmentationShare = -1, -1
	if _, rest, ok := strings.Cut(s, "Failed to allocate request for "); ok {
		f.Platform = true
		f.Text, rest, _ = strings.Cut(rest, " ")
		if n, ok := lines.Int(lines.NumberAfter(rest, "(")); ok {
			f.Bytes = n
		}
		if n, ok := lines.Int(lines.NumberAfter(rest, "on device ordinal ")); ok {
			f.Device = n
		}
	} else {
		_, rest, _ := strings.Cut(s, "while trying to allocate ")
		n, tail, ok := lines.Digits(rest)
		if b, fits := lines.Int(n, ok); fits && strings.HasPrefix(tail, " bytes") {
			f.Bytes = b
		} else if size, _ := lines.Between(rest, "", " ,"); strings.HasSuffix(size, "B") && size[0] >= '0' && size[0] <= '9' {
			f.Text = size
		}
		f.Allocator, _ = lines.Between(rest, "with allocator ", " ,.")
		if n, ok := lines.Int(lines.NumberAfter(rest, "on device ")); ok {
			f.Device = n
		}
		f.Payload = strings.Contains(rest, "[tf-allocator") || strings.Contains(rest, "[executable_name")
		f.Program, _ = lines.Between(rest, "executable_name='", "'")
	}
	if f.Bytes < 0 && f.Text == "" {
		return false
	}
	p.addFailure(f)
	return true
}

// plainFailure reads "Out of memory allocating 137438953472 bytes", as the client
// of the host says, and "Failed to allocate 33554432 bytes for new constant".
func (p *Parser) plainFailure(num int, s string) bool {
	_, rest, ok := strings.Cut(s, "ut of memory allocating ")
	if !ok {
		_, rest, _ = strings.Cut(s, "ailed to allocate ")
	}
	n, tail, ok := lines.Digits(rest)
	bytes, fits := lines.Int(n, ok)
	if !fits || !strings.HasPrefix(tail, " bytes") {
		return false
	}
	f := &Failure{Line: num, Bytes: bytes, Device: -1, Count: 1}
	f.Stats.TempFragmentationShare, f.Stats.TotalFragmentationShare = -1, -1
	p.addFailure(f)
	return true
}

// addFailure files a failure, or counts one that is printed again.
func (p *Parser) addFailure(f *Failure) {
	p.buffer, p.compile = nil, nil
	for _, o := range p.report.Failures {
		if o.Bytes == f.Bytes && o.Text == f.Text && o.Device == f.Device && o.Allocator == f.Allocator && o.Program == f.Program {
			o.Count++
			p.open = o
			return
		}
	}
	p.open = f
	f.Remat, p.remat = p.remat, nil
	if len(p.report.Failures) >= maxFailures {
		p.report.Cut = fmt.Sprintf("more than %d failures: those from line %d on were left out", maxFailures, f.Line)
		return
	}
	p.report.Failures = append(p.report.Failures, f)
}

// statsOf opens the statistics of the failure before, or of one that the text
// lacks.
func (p *Parser) statsOf(num int) {
	if p.open == nil {
		f := &Failure{Line: num, Bytes: -1, Device: -1, Count: 1}
		f.Stats.TempFragmentationShare, f.Stats.TotalFragmentationShare = -1, -1
		p.addFailure(f)
	}
	p.open.HasStats = true
}

// detail reads the statistics and the list of buffers.
func (p *Parser) detail(s string) bool {
	if p.open.HasStats && strings.Contains(s, "allocation:") || strings.Contains(s, "fragmentation:") {
		return p.statsRow(s)
	}
	if strings.Contains(s, "Peak buffers:") {
		p.open.HasPeak = true
		return true
	}
	if !p.open.HasPeak {
		return false
	}
	if _, rest, ok := strings.Cut(s, "Buffer "); ok {
		if n, tail, ok := lines.Digits(rest); ok && strings.HasPrefix(tail, ":") {
			p.buffer = nil
			if p.kept < maxBuffers && len(p.open.Buffers) < int(n) { // printed again: keep the first
				p.kept++
				i, _ := lines.Int(n, true)
				p.open.Buffers = append(p.open.Buffers, Buffer{Index: i, Row: -1})
				p.buffer = &p.open.Buffers[len(p.open.Buffers)-1]
			}
			return true
		}
	}
	return p.buffer != nil && p.bufferRow(s)
}

func (p *Parser) bufferRow(s string) bool {
	b := p.buffer
	switch {
	case strings.Contains(s, "======"):
		b.Closed = true
		p.buffer = nil
	case strings.Contains(s, "Size:"):
		b.Size = word(s, "Size:")
	case strings.Contains(s, "Operator:"):
		operator(s, &b.OpType, &b.OpName, &b.Source, &b.Row)
	case strings.Contains(s, "XLA Label:"):
		b.Label = tail(s, "XLA Label:")
	case strings.Contains(s, "Entry Parameter Subshape:"):
		b.Shape, b.Parameter = tail(s, "Entry Parameter Subshape:"), true
	case strings.Contains(s, "Shape:"):
		b.Shape = tail(s, "Shape:")
	default:
		return false
	}
	return true
}

// operator reads op_type="…" op_name="…" source_file="…" source_line=N.
func operator(s string, opType, opName, source *string, row *int64) {
	*opType, _ = lines.Between(s, `op_type="`, `"`)
	*opName, _ = lines.Between(s, `op_name="`, `"`)
	*source, _ = lines.Between(s, `source_file="`, `"`)
	if n, ok := lines.Int(lines.NumberAfter(s, "source_line=")); ok {
		*row = n
	}
}

// tail is what follows a label, without blanks around it.
func tail(s, label string) string {
	_, after, _ := strings.Cut(s, label)
	return strings.TrimSpace(after)
}

// word is the first word after a label.
func word(s, label string) string {
	w, _, _ := strings.Cut(tail(s, label), " ")
	return w
}

// statsRow reads "temp allocation:   1.97GiB" and "… fragmentation: 0B (0.00%)".
func (p *Parser) statsRow(s string) bool {
	st := &p.open.Stats
	for _, r := range []struct {
		label string
		to    *string
		share *float64
	}{
		{"parameter allocation:", &st.Parameter, nil},
		{"constant allocation:", &st.Constant, nil},
		{"live_out allocation:", &st.LiveOut, nil},
		{"temp allocation:", &st.Temp, nil},
		{"temp fragmentation:", &st.TempFragmentation, &st.TempFragmentationShare},
		{"total allocation:", &st.Total, nil},
		{"total fragmentation:", &st.TotalFragmentation, &st.TotalFragmentationShare},
	} {
		if !strings.Contains(s, r.label) {
			continue
		}
		p.open.HasStats = true
		*r.to = word(s, r.label)
		if r.share != nil {
			if _, after, ok := strings.Cut(tail(s, r.label), "("); ok {
				if f, _, rest, ok := lines.Decimal(after); ok && strings.HasPrefix(rest, "%") {
					*r.share = f
				}
			}
		}
		return true
	}
	return false
}

// End closes what is open. Nothing may follow.
func (p *Parser) End() *Report {
	p.giveUp()
	if p.remat != nil {
		p.report.Remats = append(p.report.Remats, *p.remat)
		p.remat = nil
	}
	return p.report
}
