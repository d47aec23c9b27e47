package torchlog

import (
	"strconv"
	"strings"
)

// Segment is one driver allocation out of a printed memory_snapshot(). Sizes
// are bytes; -1 where the text lacks them.
type Segment struct {
	Device    int64
	Address   uint64
	Total     int64
	Allocated int64
	Active    int64
	Kind      string // "large" or "small"
	Blocks    []Block
}

// Block is a listed piece of a segment.
type Block struct {
	Size  int64
	State string // active_allocated, active_awaiting_free, inactive
}

// Snapshot is one printed list of segments.
type Snapshot struct {
	Line     int
	Segments []Segment
	Cut      bool // the list does not end
	Limit    bool // more than this reader keeps
}

// Bounds of what a text may make the reader hold.
const (
	maxSegments = 1 << 17
	maxBlocks   = 1 << 20
	maxNesting  = 16
	maxToken    = 512
)

// startsSnapshot recognises a printed list of segments by its first line.
func startsSnapshot(s string) int {
	if !strings.Contains(s, "size") && !strings.Contains(s, "segment_type") && !strings.Contains(s, "address") && !strings.Contains(s, "device") {
		return -1
	}
	for _, q := range []string{"'", `"`} {
		for _, open := range []string{"[{" + q, "{" + q} {
			i := strings.Index(s, open)
			if i < 0 {
				continue
			}
			for _, k := range []string{"total_size", "active_size", "segment_type", "allocated_size"} {
				if strings.Contains(s[i:], q+k+q+":") {
					return i
				}
			}
		}
	}
	return -1
}

// literal walks a Python or JSON literal piece by piece and keeps what
// segments and blocks are made of. Everything else is skipped.
type literal struct {
	stack  []byte // open brackets
	keys   [maxNesting]string
	key    string // the key whose value comes next
	tok    []byte
	quote  byte // within a string
	escape bool
	done   bool
	bad    bool
	snap   *Snapshot
	blocks int
	seg    Segment
	block  Block
}

func newLiteral(num int) *literal { return &literal{snap: &Snapshot{Line: num}} }

// feed takes the next piece; false when the list is over or is none.
func (l *literal) feed(s string) bool {
	for i := 0; i < len(s) && !l.done; i++ {
		l.char(s[i])
	}
	if l.quote == 0 {
		l.end()
	}
	return !l.done
}

func (l *literal) char(c byte) {
	if l.quote != 0 {
		switch {
		case l.escape:
			l.escape = false
			l.keep(c)
		case c == '\\':
			l.escape = true
		case c == l.quote:
			l.quote = 0
		default:
			l.keep(c)
		}
		return
	}
	switch c {
	case '\'', '"':
		l.quote, l.tok = c, l.tok[:0]
	case ':':
		l.key, l.tok = string(l.tok), l.tok[:0]
	case ',':
		l.end()
		l.key = ""
	case '{', '[', '(':
		l.push(c)
	case '}', ']', ')':
		l.end()
		l.pop()
	case ' ', '\t':
	default:
		if c < ' ' || c > '~' || len(l.stack) == 0 {
			l.done, l.bad = true, true
			return
		}
		l.keep(c)
	}
}

func (l *literal) keep(c byte) {
	if len(l.tok) < maxToken {
		l.tok = append(l.tok, c)
	}
}

func (l *literal) push(c byte) {
	if len(l.stack) >= maxNesting {
		l.done, l.bad = true, true
		return
	}
	l.keys[len(l.stack)] = l.key
	l.stack = append(l.stack, c)
	l.key, l.tok = "", l.tok[:0]
	if c != '{' {
		return
	}
	if l.inBlocks() {
		l.block = Block{Size: -1}
	} else if l.isSegment() {
		l.seg = Segment{Device: -1, Total: -1, Allocated: -1, Active: -1}
	}
}

// isSegment: a dictionary at the top, or in the list at the top.
func (l *literal) isSegment() bool {
	n := len(l.stack)
	return n == 1 || n == 2 && l.stack[0] == '['
}

// inBlocks: a dictionary in a list under the key "blocks".
func (l *literal) inBlocks() bool {
	n := len(l.stack)
	return n >= 3 && n <= 4 && l.stack[n-2] == '[' && l.keys[n-2] == "blocks"
}

func (l *literal) pop() {
	n := len(l.stack)
	if n == 0 {
		l.done, l.bad = true, true
		return
	}
	if l.stack[n-1] == '{' {
		switch {
		case l.inBlocks():
			l.addBlock()
		case l.isSegment():
			l.addSegment()
		}
	}
	l.stack = l.stack[:n-1]
	l.key = ""
	l.done = n == 1
}

func (l *literal) addBlock() {
	if l.block.Size < 0 {
		return
	}
	if l.blocks >= maxBlocks {
		l.snap.Limit = true
		return
	}
	l.blocks++
	l.seg.Blocks = append(l.seg.Blocks, l.block)
}

func (l *literal) addSegment() {
	if l.seg.Total < 0 && l.seg.Active < 0 {
		return
	}
	if len(l.snap.Segments) >= maxSegments {
		l.snap.Limit = true
		return
	}
	l.snap.Segments = append(l.snap.Segments, l.seg)
	l.seg = Segment{}
}

// end files the value of a key.
func (l *literal) end() {
	if l.key == "" || len(l.tok) == 0 {
		l.tok = l.tok[:0]
		return
	}
	v := string(l.tok)
	l.tok = l.tok[:0]
	n, err := strconv.ParseInt(v, 10, 64)
	num := err == nil && n >= 0 && n <= 1<<60
	switch {
	case l.inBlocks():
		if l.key == "state" {
			l.block.State = v
		} else if l.key == "size" && num {
			l.block.Size = n
		}
	case l.isSegment():
		l.segmentField(v, n, num)
	}
}

func (l *literal) segmentField(v string, n int64, num bool) {
	if l.key == "segment_type" {
		l.seg.Kind = v
		return
	}
	if l.key == "address" {
		l.seg.Address, _ = strconv.ParseUint(v, 0, 64) // not needed for sums
		return
	}
	if !num {
		return
	}
	switch l.key {
	case "total_size":
		l.seg.Total = n
	case "active_size":
		l.seg.Active = n
	case "allocated_size":
		l.seg.Allocated = n
	case "device":
		l.seg.Device = n
	}
}

// finish closes a list whose end may be missing.
func (l *literal) finish() *Snapshot {
	if len(l.stack) > 0 {
		l.snap.Cut = true
		if len(l.seg.Blocks) > 0 || l.seg.Total > 0 {
			l.addSegment()
		}
	}
	return l.snap
}
