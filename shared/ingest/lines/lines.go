// Package lines yields the lines of a log as people hand it in: with the line
// ends of any system, progress bars that only return the carriage, terminal
// colours, the entities and fixed blanks of a web page, a byte order mark, or in
// UTF-16 as a redirect in PowerShell writes.
//
// It knows nothing about what the lines say; the packages beside it do. Memory
// is bounded by the longest line kept, MaxLine.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxLine bounds one physical line, in bytes. A whole dump pasted as one
// paragraph still fits; the rest of a longer line is dropped.
const MaxLine = 1 << 20

// Reader yields physical lines. A carriage return ends a line like a line feed
// does, so that a progress bar standing before a stamp becomes its own line.
type Reader struct {
	r    *bufio.Reader
	n    int
	read int64
	buf  []byte
	wide bool   // UTF-16
	big  bool   // of which the high byte comes first
	pend []byte // of a character of UTF-16
	had  bool
}

// New reads lines from r.
func New(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 1<<16)} }

// Count is the number of lines that Next has returned.
func (l *Reader) Count() int { return l.n }

// Bytes is the number of bytes consumed.
func (l *Reader) Bytes() int64 { return l.read }

// Each tells every line of a text with its number, from 1.
func Each(r io.Reader, line func(n int, s string)) error {
	in := New(r)
	for {
		s, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the text after line %d: %w", in.Count(), err)
		}
		line(in.Count(), s)
	}
}

// Next returns a line without its end, or io.EOF after the last one.
func (l *Reader) Next() (string, error) {
	l.buf = l.buf[:0]
	l.start()
	for {
		if !l.wide {
			if s, ok := l.whole(); ok {
				return s, nil
			}
		}
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
			if len(l.buf) < MaxLine {
				l.buf = append(l.buf, c)
			}
		}
	}
}

// whole takes a line that lies in the buffer entirely and ends in a line feed
// alone or in both characters: nearly all lines do.
func (l *Reader) whole() (string, bool) {
	if len(l.buf) > 0 {
		return "", false
	}
	b, _ := l.r.Peek(l.r.Buffered())
	i := bytes.IndexByte(b, '\n')
	if i < 0 || i > MaxLine {
		return "", false
	}
	end := i
	if end > 0 && b[end-1] == '\r' {
		end--
	}
	if bytes.IndexByte(b[:end], '\r') >= 0 {
		return "", false
	}
	s := string(b[:end])
	_, _ = l.r.Discard(i + 1) // they were just peeked at
	l.read += int64(i + 1)
	l.n++
	return plain(s), true
}

// start skips a byte order mark and notices UTF-16.
func (l *Reader) start() {
	if l.had {
		return
	}
	l.had = true
	if b, err := l.r.Peek(3); err == nil && string(b) == "\xef\xbb\xbf" {
		_, _ = l.r.Discard(3) // they were just peeked at
	} else if b, err := l.r.Peek(2); err == nil && (string(b) == "\xff\xfe" || string(b) == "\xfe\xff") {
		_, _ = l.r.Discard(2)
		l.wide, l.big = true, b[0] == 0xfe
	}
}

func (l *Reader) byte() (byte, error) {
	if l.wide {
		return l.wideByte()
	}
	c, err := l.r.ReadByte()
	if err != nil {
		return 0, err
	}
	l.read++
	return c, nil
}

// wideByte is the next byte of UTF-16 as UTF-8.
func (l *Reader) wideByte() (byte, error) {
	if len(l.pend) == 0 {
		r, err := l.unit(true)
		if err != nil {
			return 0, err
		}
		if utf16.IsSurrogate(r) {
			low, _ := l.unit(false)
			if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
				_, _ = l.unit(true) // it was just looked at
				r = full
			}
		}
		l.pend = utf8.AppendRune(l.pend[:0], r)
	}
	c := l.pend[0]
	l.pend = l.pend[1:]
	return c, nil
}

// unit is the next two bytes as a number; take says that they are done with. A
// single byte at the end is taken as it is.
func (l *Reader) unit(take bool) (rune, error) {
	b, err := l.r.Peek(2)
	if len(b) == 0 {
		return 0, err
	}
	var r rune
	switch {
	case len(b) == 1:
		r = rune(b[0])
	case l.big:
		r = rune(b[0])<<8 | rune(b[1])
	default:
		r = rune(b[1])<<8 | rune(b[0])
	}
	if take {
		n, _ := l.r.Discard(len(b)) // they were just peeked at
		l.read += int64(n)
	}
	return r, nil
}

func (l *Reader) take() string { return plain(string(l.buf)) }

// plain undoes what a terminal and a web page add to a line.
func plain(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		s = stripEscapes(s)
	}
	if strings.IndexByte(s, '&') >= 0 {
		s = entities.Replace(s)
	}
	if strings.IndexByte(s, 0xc2) >= 0 {
		s = strings.ReplaceAll(s, "\u00a0", " ")
	}
	return s
}

// entities are the characters that no page can hold as they are, and the blank
// that it does not break lines at.
var entities = strings.NewReplacer("&gt;", ">", "&lt;", "<", "&amp;", "&", "&quot;", `"`, "&#39;", "'", "&#x27;", "'", "&nbsp;", " ")

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

// StripQuotes removes the marks of quoted mail and markdown.
func StripQuotes(s string) string {
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
