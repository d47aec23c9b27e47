package bfclog

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// maxLine bounds one physical line. A whole dump pasted as one paragraph still
// fits; the rest of a longer line is dropped.
const maxLine = 1 << 20

// lines yields physical lines. A carriage return ends a line like a line feed
// does, so that a progress bar standing before a stamp becomes its own line.
type lines struct {
	r    *bufio.Reader
	n    int
	read int64
	buf  []byte
	wide bool // two bytes a character, little endian
	had  bool
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 1<<16)} }

// next returns a line without its end. The string is only valid until the
// next call in so far as the caller copies what it keeps; strings are copies.
func (l *lines) next() (string, error) {
	l.buf = l.buf[:0]
	l.start()
	for {
		c, err := l.byte()
		if err != nil {
			if len(l.buf) > 0 && errors.Is(err, io.EOF) {
				l.n++
				return l.take(), nil
			}
			return "", err
		}
		switch c {
		case '\r':
			if nx, err := l.r.Peek(1); err == nil && nx[0] == '\n' {
				continue
			}
			if l.wide {
				continue
			}
			fallthrough
		case '\n':
			l.n++
			return l.take(), nil
		default:
			if len(l.buf) < maxLine {
				l.buf = append(l.buf, c)
			}
		}
	}
}

// start skips a byte order mark and notices UTF-16, which a redirect in
// PowerShell writes.
func (l *lines) start() {
	if l.had {
		return
	}
	l.had = true
	if b, err := l.r.Peek(3); err == nil && string(b) == "\xef\xbb\xbf" {
		_, _ = l.r.Discard(3) // they were just peeked at
	} else if b, err := l.r.Peek(2); err == nil && string(b) == "\xff\xfe" {
		_, _ = l.r.Discard(2)
		l.wide = true
	}
}

func (l *lines) byte() (byte, error) {
	c, err := l.r.ReadByte()
	if err != nil {
		return 0, err
	}
	l.read++
	if l.wide {
		hi, err := l.r.ReadByte()
		if err == nil && hi != 0 {
			c = '?'
		}
		l.read++
	}
	return c, nil
}

func (l *lines) take() string {
	s := string(l.buf)
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = stripEscapes(s)
	}
	return s
}

// stripEscapes removes terminal colour sequences.
func stripEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != 0x1b {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '[' {
			i += 2
			for i < len(s) && (s[i] < '@' || s[i] > '~') {
				i++
			}
		}
	}
	return b.String()
}

// record is one log line taken apart.
type record struct {
	num    int
	source string // collector's prefix that tells processes apart
	body   string // message, without surrounding blanks
	bfc    bool   // printed by the allocator itself
	filed  bool   // has a source file prefix of any kind
}

const bfcFile = "bfc_allocator.cc:"

// splitGlued cuts a physical line at every allocator prefix but the first, for
// text that lost its line breaks.
func splitGlued(s string) []string {
	first := strings.Index(s, bfcFile)
	if first < 0 {
		return []string{s}
	}
	var out []string
	from := 0
	for at := first; ; {
		rel := strings.Index(s[at+len(bfcFile):], bfcFile)
		if rel < 0 {
			return append(out, s[from:])
		}
		at += len(bfcFile) + rel
		cut := stampStart(s, at)
		if cut > from {
			out = append(out, s[from:cut])
			from = cut
		}
	}
}

// stampStart returns where the line prefix around the path at position at
// begins: before the path, its severity letter and its time stamp.
func stampStart(s string, at int) int {
	i := at
	for i > 0 && s[i-1] != ' ' && s[i-1] != '\t' {
		i--
	}
	if i >= 2 && s[i-1] == ' ' && strings.IndexByte("IWEF", s[i-2]) >= 0 && (i == 2 || !isWord(s[i-3])) {
		i -= 2
	}
	const stamp = "2006-01-02 15:04:05.000000: "
	if i >= len(stamp) && shapeEqual(s[i-len(stamp):i], stamp) {
		i -= len(stamp)
	}
	return i
}

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// shapeEqual compares two texts with all digits taken as equal.
func shapeEqual(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && (!isDigit(a[i]) || !isDigit(b[i])) {
			return false
		}
	}
	return true
}

// prefixes remembers the collectors' prefixes that were seen before stamps, to
// strip them from the lines that carry no stamp.
type prefixes struct{ shapes []string }

const maxPrefixes = 16

// parse takes one physical line apart.
func (p *prefixes) parse(num int, raw string) record {
	raw = stripQuotes(raw)
	r := record{num: num}
	if at := strings.Index(raw, bfcFile); at >= 0 {
		if body, ok := afterBracket(raw[at+len(bfcFile):]); ok {
			r.bfc, r.filed, r.body = true, true, body
			r.source = p.learn(raw[:stampStart(raw, at)])
			return r
		}
	}
	if at := strings.Index(raw, ".cc:"); at >= 0 {
		if body, ok := afterBracket(raw[at+len(".cc:"):]); ok {
			r.filed, r.body = true, body
			r.source = p.learn(raw[:stampStart(raw, at)])
			return r
		}
	}
	r.source, r.body = p.strip(raw)
	if body, ok := wrappedPrefix(r.body); ok {
		r.bfc, r.filed, r.body = true, true, body
	}
	return r
}

// afterBracket expects "123] text".
func afterBracket(s string) (string, bool) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == 0 || i == len(s) || s[i] != ']' {
		return "", false
	}
	return strings.TrimSpace(s[i+1:]), true
}

// wrappedPrefix recognises the tail of a line prefix that a terminal broke:
// "ator.cc:273] text" or "3] text".
func wrappedPrefix(s string) (string, bool) {
	end := strings.Index(s, "] ")
	if end < 1 || end > 60 || !isDigit(s[end-1]) {
		return "", false
	}
	for i := range end {
		if !isWord(s[i]) && s[i] != '/' && s[i] != '.' && s[i] != ':' {
			return "", false
		}
	}
	return strings.TrimSpace(s[end+2:]), true
}

// stripQuotes removes the marks of quoted mail and markdown.
func stripQuotes(s string) string {
	for {
		t := strings.TrimLeft(s, " ")
		switch {
		case strings.HasPrefix(t, "> "):
			s = t[2:]
		case t == ">":
			return ""
		default:
			return s
		}
	}
}

// learn remembers the text before a stamp and returns the part of it that
// tells processes apart.
func (p *prefixes) learn(prefix string) string {
	if strings.TrimSpace(prefix) == "" || looksLikeProgress(prefix) {
		return ""
	}
	known := false
	for _, s := range p.shapes {
		known = known || shapeEqual(s, prefix)
	}
	if !known && len(p.shapes) < maxPrefixes && len(prefix) <= 200 {
		p.shapes = append(p.shapes, prefix)
	}
	return sourceOf(prefix)
}

// strip removes a learned prefix from a line without a stamp.
func (p *prefixes) strip(raw string) (source, body string) {
	for _, s := range p.shapes {
		if len(raw) >= len(s) && shapeEqual(raw[:len(s)], s) {
			return sourceOf(raw[:len(s)]), strings.TrimSpace(raw[len(s):])
		}
		if t := strings.TrimRight(s, " "); len(raw) == len(t) && shapeEqual(raw, t) {
			return sourceOf(raw), ""
		}
	}
	return "", strings.TrimSpace(raw)
}

// sourceOf keeps what names a process or container: a prefix that ends like
// one, without the tokens that are times.
func sourceOf(prefix string) string {
	t := strings.TrimSpace(prefix)
	if t == "" || len(t) > 120 || strings.IndexByte("|:>])", t[len(t)-1]) < 0 {
		return ""
	}
	var keep []string
	for w := range strings.FieldsSeq(t) {
		if strings.Count(w, ":") >= 2 || len(w) >= 10 && shapeEqual(w[:10], "2006-01-02") {
			continue
		}
		keep = append(keep, w)
	}
	return strings.Join(keep, " ")
}

func looksLikeProgress(s string) bool {
	for _, w := range []string{"ETA", "[=", "==", "it/s", "loss", "%|", "step", "Epoch", "...."} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

func containsFold(s, sub string) bool {
	return strings.Contains(strings.ToLower(s), sub)
}
