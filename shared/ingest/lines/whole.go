package lines

import (
	"bytes"
	"errors"
	"io"
	"strings"
)

// Wholes yields logical lines: those of the allocators' and compilers' messages
// that a terminal, a mail program or a forum has broken at a fixed width are put
// together again. Texts that nothing has broken, which is nearly all, come as
// they are; so do lines of any other kind, tables among them.
type Wholes struct {
	in   *Reader
	wrap wrap

	pend string // a line that may go on
	num  int    // its number
	last int    // the length of its last piece
	can  bool   // it is of the kinds that are put together
	open bool
	err  error
}

// NewWholes reads from a Reader that has not been read from.
func NewWholes(in *Reader) *Wholes {
	head, _ := in.r.Peek(sample) // less than that is a short text
	return &Wholes{in: in, wrap: findWrap(head)}
}

// maxWhole is how long a line may become by being put together, in bytes.
const maxWhole = 1 << 16

// sample is how much of a text decides whether it is wrapped, in bytes.
const sample = 1 << 16

// Next returns a logical line and the number of its first line, or io.EOF.
func (w *Wholes) Next() (num int, s string, err error) {
	if w.wrap.width == 0 {
		s, err = w.in.Next()
		return w.in.Count(), s, err
	}
	for w.err == nil {
		s, err := w.in.Next()
		if err != nil {
			w.err = err
			break
		}
		if sep, ok := w.wrap.joins(w.pend, w.last, s); w.open && w.can && ok && len(w.pend) < maxWhole {
			piece := StripQuotes(s)
			w.last = len(piece)
			if sep != "" {
				piece = strings.TrimLeft(piece, " \t")
			}
			w.pend += sep + piece
			continue
		}
		num, whole, had := w.num, w.pend, w.open
		w.pend, w.num, w.last, w.can, w.open = s, w.in.Count(), len(StripQuotes(s)), joinable(s), true
		if had {
			return num, whole, nil
		}
	}
	if w.open {
		w.open = false
		return w.num, w.pend, nil
	}
	return w.in.Count(), "", w.err
}

// wrap is how a text was broken into lines.
type wrap struct {
	width int  // longest line, in bytes; 0 for a text that nothing broke
	hard  bool // in the middle of words
}

// Widths that terminals and programs break at.
const (
	minWidth = 40
	maxWidth = 250
)

// findWrap looks for lines that end where a width is reached and go on in the
// next one, which begins as no line of a log does.
func findWrap(text []byte) wrap {
	if bytes.IndexByte(text, 0) >= 0 {
		return wrap{} // not one byte a letter
	}
	list := strings.Split(string(text), "\n")
	for i := range list {
		list[i] = StripQuotes(strings.TrimSuffix(list[i], "\r"))
	}
	width := 0
	for _, s := range list {
		if strings.IndexByte(strings.TrimSpace(s), ' ') > 0 || len(s) == width {
			width = max(width, len(s))
		}
	}
	if width < minWidth || width > maxWidth {
		return wrap{}
	}
	// Of the lines that joinable ones of full width are followed by, all or
	// nearly all go on in a text broken hard; where words are kept, lines that
	// happened to be that long are among them.
	w := wrap{width: width}
	full, fullGoes, goes, all := 0, 0, 0, 0
	pend := ""
	for i := 0; i+1 < len(list); i++ {
		if pend == "" {
			pend = list[i]
		}
		if !joinable(pend) {
			pend = ""
			continue
		}
		all++
		next := list[i+1]
		on := strings.TrimSpace(next) != "" && !begins(next) && !alike(pend, next)
		if len(list[i]) == width {
			full++
			if on {
				fullGoes++
			}
		}
		if on = on && w.reaches(len(list[i]), next); on {
			goes++
		} else {
			pend = ""
		}
	}
	w.hard = fullGoes >= 2 && 10*fullGoes >= 7*full && 2*fullGoes >= goes
	if goes < 2 || 20*goes < all {
		return wrap{}
	}
	return w
}

// alike says whether two lines begin in the same way, as neighbours of a log do
// and the pieces of a line do not: by the mark of a collector, or the same words.
func alike(a, b string) bool {
	a, b = strings.TrimLeft(a, " \t"), strings.TrimLeft(b, " \t")
	const n = 6
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] && (!IsDigit(a[i]) || !IsDigit(b[i])) {
			return false
		}
		if i+1 >= n || i > 0 && (a[i] == ' ') && strings.IndexByte(":|>])", a[i-1]) >= 0 {
			return true
		}
	}
	return false
}

// reaches says whether the first word of the next line had no room behind a
// line of that length.
func (w wrap) reaches(length int, next string) bool {
	if w.hard {
		return length == w.width || length == w.width-1
	}
	word, _, _ := strings.Cut(strings.TrimLeft(next, " "), " ")
	return length >= w.width || length+1+len(word) > w.width
}

// joins says whether a line goes on with the one before, and what stood between.
func (w wrap) joins(pend string, last int, s string) (sep string, ok bool) {
	s = StripQuotes(s)
	if strings.TrimSpace(s) == "" || begins(s) || !w.reaches(last, s) || alike(pend, s) {
		return "", false
	}
	if w.hard && last == w.width {
		return "", true
	}
	return " ", true
}

// begins says whether a line begins as those of logs do.
func begins(s string) bool {
	s = strings.TrimLeft(s, " \t")
	if s == "" {
		return true
	}
	if _, ok := FindStamp(s); ok {
		return true
	}
	if strings.IndexByte("IWEF", s[0]) >= 0 && (strings.HasPrefix(s[1:], " ") || len(s) > 5 && IsDigit(s[1]) && IsDigit(s[4]) && s[5] == ' ') {
		return true
	}
	for _, p := range beginnings {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	near := s[:min(len(s), prefixed)]
	for _, p := range labels {
		if strings.Contains(near, p) {
			return true
		}
	}
	word, _, _ := strings.Cut(s, " ")
	return strings.HasSuffix(word, "Error:") || strings.HasSuffix(word, "Exception:")
}

var beginnings = []string{
	"Traceback", "File \"", "During handling", "The above exception", "+-", "+=", "```", "[[", "...", "Buffer ", "Hint:", "Limit:", "Stats:", "====",
	"Total hbm", "Program hbm", "Output size", "If the cause is", "Current allocation summary", "Reported by CUDA",
}

// labels begin a line, though a collector of logs may have put up to so many
// bytes before them.
var labels = []string{
	"BufferAssignment", "Peak buffers:", "XLA Label:", "XLA label:", "Shape:", "Entry Parameter", "=====", "Unpadded size:", "Extra memory due",
	"Allocation type:", "Largest program",
}

const prefixed = 64

// joinable says whether a line is of the kinds that are put together.
func joinable(s string) bool {
	if _, ok := FindStamp(s); ok {
		return true
	}
	for _, w := range kinds {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

var kinds = []string{
	".cc:", "bfc_allocator", "OOM when", "xhausted", "RESOURCE_EXHAUSTED", "ut of memory", "Operator:", "XLA Label:", "XLA label:", "Shape:", " hbm", "__LOG_MEMORY__", "[[Node: ", "{{node ", "Error: ", " eta: ",
}

// EachWhole tells every logical line of a text with the number of its first
// line, from 1.
func EachWhole(r io.Reader, line func(n int, s string)) error {
	in := NewWholes(New(r))
	for {
		n, s, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line(n, s)
	}
}
