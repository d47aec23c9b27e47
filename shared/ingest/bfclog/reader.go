package bfclog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tideline/shared/ingest/lines"
)

// Bounds of what one text may make the reader hold. They are far above real
// dumps (the largest seen list 9,000 chunks).
const (
	maxDumps    = 512
	maxChunks   = 1 << 20 // of all dumps together
	maxSmall    = 1 << 14 // of any other list of one dump
	maxNotices  = 1024
	maxOpen     = 16 // dumps that interleave
	maxRefusals = 4096
)

// ErrNothing says that the text holds no out-of-memory report of this family.
var ErrNothing = errors.New("no out-of-memory text of a BFC allocator in it")

// Read reads a text to its end. With ErrNothing the Log still tells how much
// was read; another error is the reader's own, and what came before it is
// returned.
func Read(r io.Reader) (*Log, error) {
	in := lines.New(r)
	p := New()
	for {
		raw, err := in.Next()
		if err != nil {
			log := p.End()
			log.Lines, log.Bytes = in.Count(), in.Bytes()
			if !errors.Is(err, io.EOF) {
				return log, fmt.Errorf("read log after line %d: %w", in.Count(), err)
			}
			if len(log.Dumps) == 0 {
				return log, ErrNothing
			}
			return log, nil
		}
		p.Line(in.Count(), raw)
	}
}

// Parser reads a text line by line, for a caller that shows the same lines to
// the readers of other formats as well.
type Parser struct{ p parser }

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{parser{log: &Log{}}} }

// Line takes the next line, without its end. Its number is only told on.
func (p *Parser) Line(num int, raw string) {
	for _, s := range splitGlued(raw) {
		p.p.line(p.p.prefixes.parse(num, s))
	}
}

// End sorts out what only the whole text tells. A text without a report gives
// a Log without dumps. Nothing may follow.
func (p *Parser) End() *Log {
	p.p.finish()
	return p.p.log
}

// parser assigns each line to the dump that expects it. Several may be open at
// once, because allocators of one process and several processes print at the
// same time.
type parser struct {
	log      *Log
	prefixes prefixes
	open     []*Dump // most recently touched last
	refusals []refusal
	pinned   []refusal
	chunks   int
	loose    []looseError
	broken   record // a line that a terminal may have broken in two
	// retry reads the last line again, longer, if its tail turns up on a line
	// of its own: a number broken in two reads well and is wrong.
	retry    func(body string) bool
	lastBody string
	barOf    *Dump
	collect  bool
	// driverSaid is the driver's last refusal of host memory, which the caller
	// repeats in its own words.
	driverSaid Size
	// sizes is the dump whose histogram of live sizes is being read.
	sizes *Dump
}

type refusal struct {
	source string
	bytes  int64
}

// looseError is a failing op's error text that no dump has claimed yet.
type looseError struct {
	line      int
	source    string
	allocator string
	tensor    Tensor
	bytes     Size
}

func (p *parser) line(r record) {
	if p.joinBroken(r) {
		return
	}
	p.barPiece(r)
	was := p.retry
	p.retry = nil
	if p.dispatch(r) {
		return
	}
	p.retry = was
	p.rejoin(r)
}

// joinBroken completes a line that could not be read by the unstamped line
// after it.
func (p *parser) joinBroken(r record) bool {
	b := p.broken
	p.broken = record{}
	if b.body == "" || r.filed || r.body == "" {
		return false
	}
	for _, sep := range []string{"", " "} {
		j := b
		j.body += sep + r.body
		if p.dispatch(j) {
			return true
		}
	}
	return false
}

// rejoin keeps an unreadable line of the allocator for the line after it, and
// completes a line whose tail a terminal moved to the next line.
func (p *parser) rejoin(r record) {
	retry := p.retry
	p.retry = nil
	if r.bfc {
		p.broken = r
		return
	}
	if retry == nil || r.body == "" || !isTail(r.body) {
		return
	}
	for _, sep := range []string{"", " "} {
		if retry(p.lastBody + sep + r.body) {
			return
		}
	}
}

// again arms the retry of a line that was read.
func (p *parser) again(r record, retry func(body string) bool) {
	p.retry, p.lastBody = retry, r.body
}

// isTail says whether s can be the tail of a broken line: what is left of a
// number, or the labelled values after one.
func isTail(s string) bool {
	if strings.HasPrefix(s, "next ") || strings.HasPrefix(s, "of size ") || strings.HasPrefix(s, "size ") {
		return true
	}
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == 0 || i > 19 {
		return false
	}
	for _, after := range []string{" next ", " of size ", " by op ", " tag ", " totalling ", " memory_limit_", " available bytes", ", Chunks in use", ". "} {
		if strings.HasPrefix(s[i:], after) {
			return true
		}
	}
	return i == len(s)
}

// barPiece appends the rest of a bar that a terminal broke.
func (p *parser) barPiece(r record) {
	d := p.barOf
	p.barOf = nil
	if d != nil && !r.filed && isBar(r.body) && len(d.Bar)+len(r.body) <= 100 {
		d.Bar += r.body
	}
}

// dispatch reads one message and reports whether it was understood.
func (p *parser) dispatch(r record) bool {
	if r.body == "" {
		return p.emptyLine(r)
	}
	if p.one(r) {
		return true
	}
	// Severity letter of a log that lacks time and file.
	if b := r.body; len(b) > 2 && b[1] == ' ' && strings.IndexByte("IWEF", b[0]) >= 0 {
		r.body = strings.TrimSpace(b[2:])
		return p.one(r)
	}
	return false
}

func (p *parser) emptyLine(r record) bool {
	if r.bfc { // the bar of a Windows build may be empty
		if d := p.pick(r, func(d *Dump) bool { return !d.HasBar && d.HasStats }); d != nil {
			d.HasBar = true
			d.advance(phaseBar)
		}
	}
	return true
}

func (p *parser) one(r record) bool {
	b := r.body
	switch {
	case strings.HasPrefix(b, "Allocator (") && strings.Contains(b, "ran out of memory trying to allocate"):
		return p.request(r)
	case strings.HasPrefix(b, "BFCAllocator dump for "):
		return p.header(r)
	case strings.HasPrefix(b, "Bin ("):
		return p.bin(r)
	case strings.HasPrefix(b, "Bin for "):
		return p.target(r)
	case strings.HasPrefix(b, "Size:") && strings.Contains(b, "in_use"):
		return p.state(r)
	case strings.HasPrefix(b, "Next region of size "):
		return p.region(r)
	case strings.HasPrefix(b, "Chunk at"), strings.HasPrefix(b, "InUse at"), strings.HasPrefix(b, "Free at"),
		strings.HasPrefix(b, "InUse  at"), strings.HasPrefix(b, "Free  at"), strings.HasPrefix(b, "Free   at"):
		return p.chunk(r)
	case strings.Contains(b, "Summary of in-use Chunks by size"):
		return p.summaryHeader(r)
	case strings.Contains(b, " Chunks of size "):
		return p.class(r)
	case strings.HasPrefix(b, "Sum Total of in-use chunks:"):
		return p.sumTotal(r)
	case strings.HasPrefix(b, "total_region_allocated_bytes_:"), strings.HasPrefix(b, "Total bytes in pool:"):
		return p.pool(r)
	case strings.HasPrefix(b, "Allocator memory summary:"), strings.HasPrefix(b, "Allocator region growth hint:"):
		return p.poolSummary(r)
	case b == "Stats:":
		return p.stats(r)
	case strings.HasPrefix(b, "Stats: "): // its first row on the same line
		row := r
		row.body, row.filed = strings.TrimSpace(b[len("Stats: "):]), false
		return p.stats(r) && p.statsField(row)
	case strings.HasPrefix(b, "CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:"):
		return p.asyncPool(r)
	case strings.HasPrefix(b, "Histogram of current allocation:"):
		return p.histogram(r)
	case b == "<allocator contains no memory>", (r.bfc || len(b) == 100) && isBar(b), len(b) == 102 && isBar(b[2:]):
		return p.bar(r)
	case isGap(b):
		return p.gap(r)
	}
	return p.statsField(r) || p.histogramRow(r) || p.elsewhere(r)
}

// pick returns the most recently touched open dump of the line's source that
// the condition holds for, and marks it as touched.
func (p *parser) pick(r record, want func(*Dump) bool) *Dump {
	for i, d := range slices.Backward(p.open) {
		if d.Source == r.source && want(d) {
			copy(p.open[i:], p.open[i+1:])
			p.open[len(p.open)-1] = d
			return d
		}
	}
	return nil
}

// pickOrNew falls back on a new dump, whose head the text lacks.
func (p *parser) pickOrNew(r record, wants ...func(*Dump) bool) *Dump {
	for _, want := range wants {
		if d := p.pick(r, want); d != nil {
			return d
		}
	}
	return p.newDump(r)
}

// newDump opens a dump; nil when the text holds more than the reader keeps.
func (p *parser) newDump(r record) *Dump {
	d := &Dump{Line: r.num, Source: r.source, order: len(p.log.Dumps), Collected: p.collect}
	p.collect = false
	if len(p.log.Dumps) >= maxDumps {
		p.log.Cut = fmt.Sprintf("more than %d dumps: those from line %d on were left out", maxDumps, r.num)
	} else {
		p.log.Dumps = append(p.log.Dumps, d)
	}
	if len(p.open) == maxOpen {
		p.open = append(p.open[:0], p.open[1:]...)
	}
	p.open = append(p.open, d)
	return d
}

// latest returns the newest dump of a source, open or not.
func (p *parser) latest(source string, want func(*Dump) bool) *Dump {
	for i := len(p.log.Dumps) - 1; i >= 0 && i >= len(p.log.Dumps)-maxOpen; i-- {
		if d := p.log.Dumps[i]; d.Source == source && want(d) {
			return d
		}
	}
	return nil
}
