// Package rmmlog reads the CSV that the RAPIDS memory manager writes: one row
// for each allocation and free, in the columns of 2019 and in those of today;
// and the exceptions by which it says that a request was refused.
//
// Files have millions of rows, so rows are handed on one by one and only what
// is alive is remembered. Rows are found within the lines of other programs,
// with or without the header. Package analysis/foreign says what they mean.
package rmmlog

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tideline/shared/ingest/lines"
)

// Action is what a row tells.
type Action uint8

// The actions.
const (
	Allocate Action = iota
	Free
	Fail
)

// Row is one row. Times are nanoseconds; of the day in the current columns.
type Row struct {
	Line    int
	Old     bool // the columns of 2019
	Action  Action
	Thread  int64 // -1 when not told
	Device  int64 // -1 when not told
	Start   int64 // -1 when unreadable
	End     int64
	Pointer uint64
	Size    int64
	Stream  string
	Free    int64 // Free Memory and Total Memory of the old columns
	Total   int64
}

const (
	header    = "Thread,Time,Action,Pointer,Size,Stream"
	oldHeader = "Event Type,Device ID,Address,Stream,Size (bytes)"
)

// ErrNothing says that the text holds no such row.
var ErrNothing = errors.New("no RMM log in it (a header " + header + ", or its rows)")

// Read reads a text to its end and hands each row on, when each is not nil.
func Read(r io.Reader, each func(*Row)) (*Log, error) {
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
	if log.Events == 0 && !log.Header {
		return log, ErrNothing
	}
	return log, nil
}

// Parser takes a text line by line.
type Parser struct {
	log  *Log
	each func(*Row)
	row  Row
	live map[key]block
	sums map[int64]int64 // live blocks by size
	old  bool            // rows after an old header
}

// New is a parser that has seen nothing. It hands each row on, unless each is nil.
func New(each func(*Row)) *Parser {
	return &Parser{log: newLog(), each: each, live: map[key]block{}, sums: map[int64]int64{}}
}

// Line takes the next line, without its end, and says whether it was a header or
// a row.
func (p *Parser) Line(num int, s string) bool {
	if p.refusal(num, s) {
		return false // it is read, and no row
	}
	if strings.IndexByte(s, ',') < 0 {
		return false
	}
	switch {
	case strings.Contains(s, header):
		p.heading(num, false)
		return true
	case strings.Contains(s, oldHeader):
		p.heading(num, true)
		return true
	}
	ok := false
	if p.old {
		ok = p.oldRow(lines.StripTag(s))
	}
	if !ok {
		ok = p.newRow(s)
	}
	if !ok {
		if p.log.Header && looksLikeRow(s) {
			p.log.bad(num, s)
		}
		return false
	}
	p.row.Line = num
	p.count(&p.row)
	if p.each != nil {
		p.each(&p.row)
	}
	return true
}

func (p *Parser) heading(num int, old bool) {
	if p.log.Line == 0 {
		p.log.Line = num
	}
	p.old = old
	p.log.Header = true
	p.log.Headers++
}

// looksLikeRow: a line that should have been one, after a header.
func looksLikeRow(s string) bool {
	n := strings.Count(s, ",")
	return n >= 4 && n <= 12 && strings.Contains(s, ",0x")
}

// actions by their words between commas. Some documents say deallocate.
var actions = []struct {
	word   string
	action Action
}{
	{",allocate failure,", Fail},
	{",allocate,", Allocate},
	{",free,", Free},
	{",deallocate,", Free},
}

// newRow reads "THREAD,TIME,ACTION,POINTER,SIZE,STREAM", after whatever
// prefix a collector wrote.
func (p *Parser) newRow(s string) bool {
	at, r := -1, &p.row
	rest := ""
	for _, a := range actions {
		if at = strings.Index(s, a.word); at >= 0 {
			*r = Row{Action: a.action, Device: -1}
			rest = s[at+len(a.word):]
			break
		}
	}
	if at < 0 {
		return false
	}
	comma := strings.LastIndexByte(s[:at], ',')
	if comma < 0 {
		return false
	}
	from := comma
	for from > 0 && lines.IsDigit(s[from-1]) {
		from--
	}
	thread, err := strconv.ParseInt(s[from:comma], 10, 64)
	if err != nil {
		return false
	}
	r.Thread = thread
	r.Start = timeOfDay(s[comma+1 : at])
	r.End = r.Start
	ptr, rest, ok1 := strings.Cut(rest, ",")
	size, stream, ok2 := strings.Cut(rest, ",")
	if !ok1 || !ok2 {
		return false
	}
	if r.Size, err = strconv.ParseInt(strings.TrimSpace(size), 10, 64); err != nil || r.Size < 0 || r.Size > 1<<60 {
		return false
	}
	r.Stream = firstWord(stream)
	r.Pointer, ok1 = pointer(ptr)
	return ok1 || r.Action == Fail
}

func firstWord(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexAny(s, " ,\t"); i >= 0 {
		s = s[:i]
	}
	return s
}

// pointer reads 0x…; "(nil)" and nothing stand for none.
func pointer(s string) (uint64, bool) {
	s = strings.TrimSpace(s)
	hex, ok := strings.CutPrefix(s, "0x")
	if !ok {
		return 0, s == "(nil)" || s == ""
	}
	n, err := strconv.ParseUint(hex, 16, 64)
	return n, err == nil
}

// timeOfDay reads HH:MM:SS.ffffff, HH:MM:SS:ffffff, or seconds since 1970; -1
// for anything else.
func timeOfDay(s string) int64 {
	s = strings.TrimSpace(s)
	if len(s) >= 8 && s[2] == ':' && s[5] == ':' {
		h, e1 := strconv.ParseInt(s[:2], 10, 64)
		m, e2 := strconv.ParseInt(s[3:5], 10, 64)
		sec, e3 := strconv.ParseInt(s[6:8], 10, 64)
		if e1 != nil || e2 != nil || e3 != nil {
			return -1
		}
		return ((h*60+m)*60+sec)*1e9 + fraction(s[8:])
	}
	whole, frac, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n < 0 || n > 1<<33 {
		return -1
	}
	return n*1e9 + fraction("."+frac)
}

// fraction reads ".998533" or ":998533" as nanoseconds.
func fraction(s string) int64 {
	if len(s) < 2 {
		return 0
	}
	n, scale := int64(0), int64(1e9)
	for i := 1; i < len(s) && i < 10 && lines.IsDigit(s[i]); i++ {
		n, scale = n*10+int64(s[i]-'0'), scale/10
	}
	return n * scale
}

// oldRow reads the columns of 2019.
func (p *Parser) oldRow(s string) bool {
	f := strings.SplitN(s, ",", 12)
	if len(f) < 11 {
		return false
	}
	r := &p.row
	*r = Row{Old: true, Thread: -1, Device: -1}
	switch lines.FirstCell(f[0]) {
	case "Alloc", "Realloc":
		r.Action = Allocate
	case "Free":
		r.Action = Free
	default:
		return false
	}
	var ok bool
	if r.Pointer, ok = pointer(f[2]); !ok {
		return false
	}
	whole := func(s string) int64 {
		n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if err != nil || n < 0 || n > 1<<60 {
			return -1
		}
		return n
	}
	r.Device, r.Stream = whole(f[1]), firstWord(f[3])
	r.Free, r.Total = whole(f[5]), whole(f[6])
	r.Start, r.End = seconds(f[8]), seconds(f[9])
	r.Size = whole(f[4])
	return r.Size >= 0
}

// seconds reads a decimal, perhaps with an exponent, as nanoseconds; -1 for
// what is none.
func seconds(s string) int64 {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(f >= 0 && f < 1e9) {
		return -1
	}
	return int64(f*1e9 + 0.5)
}

// End closes the log. Nothing may follow.
func (p *Parser) End() *Log {
	p.log.finish(p)
	return p.log
}
