// Package memlog reads TensorFlow's __LOG_MEMORY__ lines: every tensor buffer
// of a step, told as protobuf short text within a log line.
//
// Files are tens of megabytes a step, so records are handed on one by one and
// only the live buffers are remembered, by allocator and id as the ids are
// counted per allocator. Package analysis/foreign says what they mean.
package memlog

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/shared/ingest/lines"
)

// Record is one line.
type Record struct {
	Line      int
	Kind      string // MemoryLogTensorAllocation …
	Step      int64  // negative outside of a step
	Kernel    string // kernel_name or operation
	Handle    string
	DType     string // DT_FLOAT
	Dims      []int64
	HasShape  bool
	HasBuffer bool  // an allocation_description is there
	Requested int64 // bytes
	Allocated int64
	Allocator string
	ID        int64
	Pointer   uint64
	Deferred  bool
}

// The kinds that matter for what is alive.
const (
	StepKind          = "MemoryLogStep"
	TensorAllocation  = "MemoryLogTensorAllocation"
	TensorFree        = "MemoryLogTensorDeallocation"
	TensorOutput      = "MemoryLogTensorOutput"
	RawAllocation     = "MemoryLogRawAllocation"
	RawFree           = "MemoryLogRawDeallocation"
	mark              = "__LOG_MEMORY__"
	maxDims, maxDepth = 64, 8
)

// ErrNothing says that the text holds no such line.
var ErrNothing = errors.New("no __LOG_MEMORY__ line in it")

// Read reads a text to its end and hands each record on, unless each is nil.
func Read(r io.Reader, each func(*Record)) (*Log, error) {
	in := lines.New(r)
	p := New(each)
	for {
		s, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return p.End(), fmt.Errorf("read the log after line %d: %w", in.Count(), err)
		}
		p.Line(in.Count(), s)
	}
	log := p.End()
	if log.Records == 0 {
		return log, ErrNothing
	}
	return log, nil
}

// Parser takes a text line by line.
type Parser struct {
	log  *Log
	each func(*Record)
	rec  Record
	live map[buffer]int64
}

// New is a parser that has seen nothing. It hands each record on, unless each
// is nil.
func New(each func(*Record)) *Parser {
	return &Parser{log: &Log{}, each: each, live: map[buffer]int64{}}
}

// Line takes the next line, without its end, and says whether it holds records.
func (p *Parser) Line(num int, s string) bool {
	i := strings.Index(s, mark)
	if i < 0 {
		return false
	}
	p.log.style(s[:i])
	for i >= 0 { // several in one line where threads write at once
		s = s[i+len(mark):]
		i = strings.Index(s, mark)
		part := s
		if i >= 0 {
			part = s[:i]
		}
		p.record(num, strings.TrimSpace(part))
	}
	return true
}

func (p *Parser) record(num int, s string) {
	kind, body, ok := strings.Cut(s, " ")
	if !ok || !strings.HasPrefix(kind, "MemoryLog") || len(kind) > 64 {
		p.log.bad(num)
		return
	}
	dims := p.rec.Dims[:0]
	p.rec = Record{Line: num, Kind: strings.Clone(kind), Dims: dims, ID: 0}
	if !p.rec.parse(strings.TrimSpace(body)) {
		p.log.bad(num)
		return
	}
	p.count(&p.rec)
	if p.each != nil {
		p.each(&p.rec)
	}
}

// End closes the log. Nothing may follow.
func (p *Parser) End() *Log {
	p.log.LiveBuffers = int64(len(p.live))
	return p.log
}
