package torchlog

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/shared/ingest/lines"
)

// Report is everything that a text tells about PyTorch's memory.
type Report struct {
	Messages  []*Message
	Summaries []*Summary
	Snapshots []*Snapshot
	Stats     *Stats
	Refusals  []*Refusal // by the driver, without the state of the memory
	Cut       string     // a limit of this reader was met
}

// Empty says whether the text told nothing.
func (r *Report) Empty() bool {
	return len(r.Messages)+len(r.Summaries)+len(r.Snapshots) == 0 && r.Stats == nil && len(r.Refusals) == 0
}

// ErrNothing says that the text holds nothing of PyTorch's memory.
var ErrNothing = errors.New("no out-of-memory message, memory summary or segment list of PyTorch in it")

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
	open   *Summary
	list   *literal

	joined strings.Builder // the message being put together, without blanks
	from   int
	lines  int
	parted bool // by a blank line
	prefix string
}

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{report: &Report{}} }

// Line takes the next line, without its end. It says whether the line is part
// of what the package reads.
func (p *Parser) Line(num int, s string) bool {
	if p.list != nil {
		if p.list.feed(s) {
			return true
		}
		p.endList()
		return true
	}
	if strings.Contains(s, `\n`) && (startsMessage(s) || strings.Contains(s, "memory summary, device ID")) {
		// a collector wrote the whole text into one string
		took := false
		for part := range strings.SplitSeq(s, `\n`) {
			took = p.one(num, strings.ReplaceAll(part, `\t`, " ")) || took
		}
		return took
	}
	return p.one(num, s)
}

func (p *Parser) one(num int, s string) bool {
	if p.lines > 0 {
		if strings.TrimSpace(s) == "" && !p.parted {
			p.parted = true // a page may part the lines of a message
			return true
		}
		if p.parted && !p.continues(s) {
			p.endMessage()
			return p.one(num, s)
		}
		p.parted = false
		if p.lines < maxLines && p.joined.Len() < maxJoined && !p.ends(s) {
			p.join(s)
			return true
		}
		p.endMessage()
	}
	switch {
	case startsMessage(s), goesOn(s):
		p.start(num, lines.StripQuotes(s))
		return true
	case p.tableLine(num, s):
		return true
	}
	if i := startsSnapshot(s); i >= 0 {
		p.list = newLiteral(num)
		if !p.list.feed(s[i:]) {
			p.endList()
		}
		return true
	}
	if p.statsLine(num, s) {
		return true
	}
	if w, ok := refusal(s); ok {
		p.refused(num, w)
		return true
	}
	return false
}

// messageHeads are what a message's own text begins with; what stands before
// is the prefix of a rank or a collector.
var messageHeads = []string{"torch.", "RuntimeError", "OutOfMemoryError", "CUDA out", "HIP out", "XPU out", "NPU out", "MPS backend", "Tried to", "Allocation on"}

func (p *Parser) start(num int, s string) {
	p.from, p.prefix = num, ""
	at := len(s)
	for _, h := range messageHeads {
		if i := strings.Index(s, h); i >= 0 && i < at {
			at = i
		}
	}
	if at > 0 && at < len(s) && at <= 200 {
		p.prefix = s[:at]
	}
	p.joined.Reset()
	p.lines = 0
	p.join(s)
}

// join adds a line and ends the message when it is whole.
func (p *Parser) join(s string) {
	if p.lines > 0 {
		s = lines.StripQuotes(s)
		s = withoutPrefix(s, p.prefix)
	}
	p.lines++
	p.joined.WriteString(squeeze(s))
	if complete(p.joined.String()) {
		p.endMessage()
	}
}

// continues says whether a line behind a blank one is of the message that is
// open, by its words.
func (p *Parser) continues(s string) bool {
	if p.ends(s) {
		return false
	}
	for _, w := range []string{"total capac", "memory in use", "allocated", "PyTorch", "Requested", "Device limit", "Free (according", "GiB", "MiB"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// withoutPrefix takes from a line what stood before the message on its first
// line: the mark of a rank or a comment, or of both of two programs that mark
// lines, or of the outer alone where the inner one wrote the message in one.
// Blanks do not count.
func withoutPrefix(s, prefix string) string {
	head := strings.TrimSpace(prefix)
	for least := 1; len(head) >= least; least = 3 {
		if after, ok := strings.CutPrefix(strings.TrimLeft(s, " \t"), head); ok {
			return after
		}
		head = strings.TrimRight(head[:max(0, strings.LastIndexByte(head, ' '))], " ")
	}
	return s
}

func (p *Parser) endMessage() {
	s := p.joined.String()
	n := p.lines
	p.lines, p.parted = 0, false
	p.joined.Reset()
	// One line may hold several messages.
	for len(s) > 0 {
		end := nextMessage(s)
		if m, ok := parseMessage(s[:end]); ok {
			m.Line, m.Wrapped = p.from, n > 1 && m.Form != Async
			p.add(&m)
		}
		s = s[end:]
	}
}

// nextMessage is where the second message of a text begins, or its length.
func nextMessage(s string) int {
	i := requestAt(s)
	if i < 0 {
		return len(s)
	}
	i += len(tried)
	j := requestAt(s[i:])
	if j < 0 {
		return len(s)
	}
	head := strings.TrimSuffix(s[i:i+j], before)
	for _, b := range backends {
		if strings.HasSuffix(head, b) {
			return i + len(head) - len(b)
		}
	}
	return i + len(head)
}

func (p *Parser) add(m *Message) {
	for _, o := range p.report.Messages {
		if same(o, m) {
			o.Count++
			return
		}
	}
	if len(p.report.Messages) >= maxMessages {
		p.report.Cut = fmt.Sprintf("more than %d different messages: those from line %d on were left out", maxMessages, m.Line)
		return
	}
	p.report.Messages = append(p.report.Messages, m)
}

func same(a, b *Message) bool {
	if len(a.Processes) != len(b.Processes) || a.Backend != b.Backend || a.Form != b.Form || a.Device != b.Device || a.BeyondAll != b.BeyondAll {
		return false
	}
	x := [...]Figure{a.Requested, a.Capacity, a.Free, a.Allocated, a.Reserved, a.Idle, a.Private, a.ThisProcess, a.Allowed, a.Other, a.Block}
	y := [...]Figure{b.Requested, b.Capacity, b.Free, b.Allocated, b.Reserved, b.Idle, b.Private, b.ThisProcess, b.Allowed, b.Other, b.Block}
	return x == y
}

func (p *Parser) endList() {
	if s := p.list.finish(); len(s.Segments) > 0 {
		p.report.Snapshots = append(p.report.Snapshots, s)
		if s.Limit {
			p.report.Cut = "more segments or blocks than the reader keeps"
		}
	}
	p.list = nil
}

// End closes what is open. Nothing may follow.
func (p *Parser) End() *Report {
	if p.lines > 0 {
		p.endMessage()
	}
	if p.list != nil {
		p.endList()
	}
	for _, s := range p.report.Summaries {
		s.finish()
	}
	return p.report
}
