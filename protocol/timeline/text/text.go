package text

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// Version is the version of the form that this package writes, and the newest
// it reads.
const Version = 1

// maxLine is the longest line a reader takes: the longest string, every byte
// of it escaped, and room for the rest.
const maxLine = 4*block.MaxString + 1<<16

// Writer writes events as text. It is a Sink.
type Writer struct {
	w       *bufio.Writer
	strings *event.Strings
	line    []byte
	err     error
}

// NewWriter begins a text with its first line. The table is the events'.
func NewWriter(w io.Writer, strings *event.Strings) *Writer {
	t := &Writer{w: bufio.NewWriterSize(w, 64<<10), strings: strings}
	_, t.err = fmt.Fprintf(t.w, "%s %d\n", timeline.TextMagic, Version)
	return t
}

// Emit writes one event.
func (t *Writer) Emit(e *event.Event) {
	t.line = append(appendEvent(t.line[:0], e, t.strings), '\n')
	if _, err := t.w.Write(t.line); err != nil && t.err == nil {
		t.err = err
	}
}

// Flush writes what is buffered and returns the first failure to write.
func (t *Writer) Flush() error {
	if err := t.w.Flush(); err != nil && t.err == nil {
		t.err = err
	}
	return t.err
}

// Write writes all that is left of a stream as text.
func Write(w io.Writer, s *timeline.Stream) error {
	t := NewWriter(w, s.Strings())
	return errors.Join(s.Replay(t), t.Flush())
}

// Line is an event's line without the line break.
func Line(e *event.Event, strings *event.Strings) string {
	return string(appendEvent(nil, e, strings))
}

func appendEvent(b []byte, e *event.Event, s *event.Strings) []byte {
	b = strconv.AppendInt(b, e.Time, 10)
	b = append(b, ' ')
	b = append(b, e.Kind.String()...)
	for i := range fields {
		b = fields[i].append(b, e, s)
	}
	return b
}

// bare reports whether a string can stand without quotes.
func bare(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_./:@+-", rune(c)) {
			return false
		}
	}
	return s != ""
}

func appendString(b []byte, s string) []byte {
	if bare(s) {
		return append(b, s...)
	}
	return strconv.AppendQuote(b, s)
}

// Read reads a text and gives its events to sink, its strings to the table. An
// error names the line; the events before it were given.
func Read(r io.Reader, table *event.Strings, sink event.Sink) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	var e event.Event
	n := 1
	for ; in.Scan(); n++ {
		line := in.Text()
		if n == 1 {
			if err := checkFirst(line); err != nil {
				return err
			}
			continue
		}
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if err := parse(line, &e, table); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		sink.Emit(&e)
	}
	if err := in.Err(); err != nil {
		return fmt.Errorf("line %d: reading a timeline as text: %w", n, err)
	}
	if n == 1 {
		return fmt.Errorf("%w: it is empty", timeline.ErrNotTimeline)
	}
	return nil
}

func checkFirst(line string) error {
	v, ok := strings.CutPrefix(strings.TrimRight(line, " \t\r"), timeline.TextMagic+" ")
	n, err := strconv.Atoi(v)
	if !ok || err != nil || n < 1 {
		return fmt.Errorf("line 1: %w: it is %.40q instead of %q", timeline.ErrNotTimeline, line, timeline.TextMagic+" 1")
	}
	if n > Version {
		return fmt.Errorf("line 1: %w: the text has version %d, this reader knows up to %d", timeline.ErrVersion, n, Version)
	}
	return nil
}

// parse reads one line.
func parse(line string, e *event.Event, s *event.Strings) error {
	*e = event.Event{Step: event.NoStep}
	time, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	var err error
	if e.Time, err = strconv.ParseInt(time, 10, 64); err != nil {
		return fmt.Errorf("%.40q is not a time in nanoseconds", time)
	}
	kind, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if e.Kind, err = word(kind, "kind-", event.ParseKind); err != nil {
		return fmt.Errorf("%.40q is not a kind of event: %w", kind, err)
	}
	seen := uint32(0)
	for rest = strings.TrimLeft(rest, " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		name, after, ok := strings.Cut(rest, "=")
		if !ok {
			return fmt.Errorf("%.40q is not a field: write name=value", rest)
		}
		i := find(name)
		if i < 0 {
			return fmt.Errorf("there is no field %.40q", name)
		}
		if seen>>i&1 != 0 {
			return fmt.Errorf("field %s stands twice", name)
		}
		seen |= 1 << i
		var v string
		if v, rest, err = value(after); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		if err := fields[i].parse(e, s, v); err != nil {
			return fmt.Errorf("field %s: %.40q: %w", name, v, err)
		}
	}
	return nil
}

func find(name string) int {
	for i := range fields {
		if fields[i].name == name {
			return i
		}
	}
	return -1
}

// value takes a bare or quoted value off.
func value(s string) (v, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", "", fmt.Errorf("the quoted text does not end: %.40q", s)
		}
		v, err = strconv.Unquote(q)
		if err != nil {
			return "", "", fmt.Errorf("%.40q: %w", q, err)
		}
		if rest = s[len(q):]; rest != "" && rest[0] != ' ' {
			return "", "", fmt.Errorf("a space is missing behind the quoted text: %.40q", rest)
		}
		return v, rest, nil
	}
	v, rest, _ = strings.Cut(s, " ")
	if strings.Contains(v, `"`) {
		return "", "", fmt.Errorf("%.40q has a quote inside: quote the whole", v)
	}
	return v, rest, nil
}
