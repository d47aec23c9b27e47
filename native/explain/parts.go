package explain

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Part is one of several texts that belong together, such as both tables of
// nvidia-smi.
type Part struct {
	Name string
	R    io.Reader
}

// Parts are several texts read as if they were pasted together, each beginning
// on a line of its own. They remember where each began, so that a report can
// name the one that it speaks of, with the line in it.
type Parts struct {
	list   []Part
	at     int   // the one that is read
	before []int // lines before each that was begun
	lines  int   // ended so far

	first [2]byte // of the whole, which tell UTF-16
	read  int64
	bare  bool // the last byte was a carriage return
}

// Join puts texts together.
func Join(list ...Part) *Parts { return &Parts{list: list} }

// Name lists the names.
func (p *Parts) Name() string {
	names := make([]string, len(p.list))
	for i, x := range p.list {
		names[i] = x.Name
	}
	return strings.Join(names, ", ")
}

// Read implements io.Reader.
func (p *Parts) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for p.at < len(p.list) {
		if len(p.before) == p.at {
			if p.at > 0 {
				p.before = append(p.before, p.lines+1)
				b[0] = '\n' // also after a text that ends in one: what is cut must not run on
				p.count(b[:1])
				return 1, nil
			}
			p.before = append(p.before, 0)
		}
		n, err := p.list[p.at].R.Read(b)
		p.count(b[:n])
		if errors.Is(err, io.EOF) {
			p.at++
			err = nil
		}
		if err != nil {
			return n, fmt.Errorf("read %s: %w", p.list[p.at].Name, err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

// count counts the ends of lines as package lines has them: a line feed, a
// carriage return, or both as one.
func (p *Parts) count(b []byte) {
	for _, c := range b {
		if p.read < 2 {
			p.first[p.read] = c
		}
		p.read++
		if c == '\n' || p.bare && p.first != [2]byte{0xff, 0xfe} {
			p.lines++
		}
		p.bare = c == '\r'
	}
}

// place is the text that a line of the whole lies in, and its line there.
func (p *Parts) place(line int) (name string, own int) {
	at, found := slices.BinarySearch(p.before, line)
	if !found || at == len(p.before) {
		at--
	}
	for at > 0 && line <= p.before[at] {
		at--
	}
	if at < 0 {
		return "", line
	}
	return p.list[at].Name, line - p.before[at]
}

// inParts names for all that the report tells the text that it is in.
func (rep *report) inParts(p *Parts) {
	if p == nil || len(p.list) < 2 {
		return
	}
	if len(rep.readings) == 1 && len(rep.failures) == 0 && rep.readings[0].Kind == "nvidia-smi" {
		return // of both tables together
	}
	for i := range rep.failures {
		f := &rep.failures[i]
		if f.Reading != nil && f.Line > 0 {
			x := *f.Reading
			f.Reading = &x
			f.file, x.Line = p.place(f.Line)
		}
	}
	for i, r := range rep.readings {
		if r.Line > 0 {
			x := *r
			x.File, x.Line = p.place(r.Line)
			rep.readings[i] = &x
		}
	}
	for i := range rep.notices {
		n := &rep.notices[i]
		n.File, n.Line = p.place(n.Line)
	}
}

// where is the text and line of what is told, for its heading; several says that
// the report tells of more than one thing.
func (rep *report) where(file string, line int, several bool) string {
	name := rep.name
	if rep.saved != nil {
		name = "The input"
	}
	if file != "" {
		name = file
	}
	if line > 1 || several {
		name += fmt.Sprintf(", line %d", line)
	}
	return name
}

// lineOf is the same within a report's page, whose head has the name of a single
// file already.
func lineOf(file string, line int) string {
	if file == "" {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("%s, line %d", file, line)
}
