package plan

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strconv"
	"strings"
)

// SyntaxError says where a table is wrong. Lines and columns count from 1,
// columns in bytes.
type SyntaxError struct {
	Line, Column int
	Message      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// meaning is what a column of the table says.
type meaning uint8

const (
	meansID meaning = iota
	meansLower
	meansUpper // as written, or as an inclusive end
	meansSize
	meansAlign
	meansHint
	meansGaps
	meansOffset
	meanings
)

const inclusiveEnd = "end"

var columnNames = map[string]meaning{
	"id": meansID, "buffer": meansID, "buffer_id": meansID,
	"lower": meansLower, "start": meansLower, "begin": meansLower,
	"upper": meansUpper, inclusiveEnd: meansUpper,
	"size": meansSize, "alignment": meansAlign, "align": meansAlign,
	"hint": meansHint, "gaps": meansGaps, "offset": meansOffset,
}

// table reads rows by the meaning of their columns.
type table struct {
	r         *csv.Reader
	at        [meanings]int // column, or -1
	inclusive bool
}

// ReadCSV reads a problem in the table format that planners exchange: a header
// with the columns lower, upper and size and, where wanted, id, alignment,
// hint, gaps and offset, in any order. A column end in place of upper is the
// last instant alive, and gaps are then inclusive, too; start and begin are other names of lower, buffer of id.
// Gaps are written lower-upper or lower-upper@low:high, with blanks between
// them. An empty cell, or -1 as a hint or an offset, gives nothing. Columns of
// other names are left out.
//
// What is wrong with the table is reported as a [*SyntaxError].
func ReadCSV(r io.Reader) (*Problem, error) {
	t := &table{r: csv.NewReader(r)}
	t.r.TrimLeadingSpace = true
	t.r.ReuseRecord = true
	header, err := t.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, &SyntaxError{1, 1, "the table is empty: it begins with a header such as id,lower,upper,size"}
	}
	if err != nil {
		return nil, asSyntaxError(err)
	}
	if err := t.header(header); err != nil {
		return nil, err
	}
	p := &Problem{}
	for {
		row, err := t.r.Read()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if errors.Is(err, csv.ErrFieldCount) {
			line, column := t.r.FieldPos(0)
			return nil, &SyntaxError{line, column, fmt.Sprintf("this row has %d columns, the header %d", len(row), t.r.FieldsPerRecord)}
		}
		if err != nil {
			return nil, asSyntaxError(err)
		}
		b, err := t.buffer(row)
		if err != nil {
			return nil, err
		}
		p.Buffers = append(p.Buffers, b)
	}
}

func asSyntaxError(err error) error {
	var at *csv.ParseError
	if !errors.As(err, &at) {
		return fmt.Errorf("read the table: %w", err)
	}
	return &SyntaxError{at.Line, max(at.Column, 1), at.Err.Error()}
}

// wrong reports the cell of a column.
func (t *table) wrong(col int, format string, args ...any) error {
	line, column := t.r.FieldPos(col)
	return &SyntaxError{line, column, fmt.Sprintf(format, args...)}
}

func (t *table) header(row []string) error {
	for m := range t.at {
		t.at[m] = -1
	}
	for col, cell := range row {
		name := strings.ToLower(strings.TrimSpace(cell))
		if col == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		m, known := columnNames[name]
		if !known {
			continue
		}
		if first := t.at[m]; first >= 0 {
			return t.wrong(col, "column %q says the same as column %d", name, first+1)
		}
		t.at[m] = col
		t.inclusive = t.inclusive || name == inclusiveEnd
	}
	for _, need := range [...]struct {
		m    meaning
		name string
	}{{meansLower, "lower"}, {meansUpper, "upper"}, {meansSize, "size"}} {
		if t.at[need.m] >= 0 {
			continue
		}
		hint := "a table begins with a header such as id,lower,upper,size"
		if len(row) == 1 && strings.ContainsAny(row[0], ";\t|") {
			hint = "columns are separated by commas, as in id,lower,upper,size"
		}
		line, column := t.r.FieldPos(0)
		return &SyntaxError{line, column, fmt.Sprintf("the header %q has no column %s: %s", strings.Join(row, ","), need.name, hint)}
	}
	return nil
}

func (t *table) buffer(row []string) (b Buffer, err error) {
	cell := func(m meaning) string {
		if t.at[m] < 0 {
			return ""
		}
		return strings.TrimSpace(row[t.at[m]])
	}
	number := func(m meaning, name string) (n int64, given bool) {
		text := cell(m)
		if err != nil || text == "" && m > meansSize {
			return 0, false
		}
		n, bad := strconv.ParseInt(text, 10, 64)
		if bad != nil {
			err = t.wrong(t.at[m], "%s %q: want a whole number within 64 bits", name, text)
		}
		return n, true
	}
	b.ID = strings.Clone(cell(meansID))
	b.Lower, _ = number(meansLower, "lower")
	b.Upper, _ = number(meansUpper, "upper")
	b.Size, _ = number(meansSize, "size")
	b.Align, _ = number(meansAlign, "alignment")
	b.Hint, b.HasHint = number(meansHint, "hint")
	b.Offset, b.Fixed = number(meansOffset, "offset")
	if b.Hint == -1 {
		b.Hint, b.HasHint = 0, false
	}
	if b.Offset == -1 {
		b.Offset, b.Fixed = 0, false
	}
	if err != nil {
		return b, err
	}
	if t.inclusive {
		if b.Upper == math.MaxInt64 {
			return b, t.wrong(t.at[meansUpper], "end %d: too large", b.Upper)
		}
		b.Upper++
	}
	if b.Gaps, err = t.gaps(cell(meansGaps)); err != nil {
		return b, err
	}
	if t.inclusive { // then gaps end like lives
		for i := range b.Gaps {
			if g := &b.Gaps[i]; g.Upper < math.MaxInt64 {
				g.Upper++
			}
		}
	}
	if bad := b.validate(); bad != nil {
		return b, t.wrong(t.blame(&b), "buffer %q: %v", b.ID, bad)
	}
	return b, nil
}

// blame is the column at fault for a buffer that breaks a rule.
func (t *table) blame(b *Buffer) int {
	switch {
	case b.Lower >= b.Upper:
		return t.at[meansUpper]
	case b.Size < 0:
		return t.at[meansSize]
	case b.Align < 0 || b.Align&(b.Align-1) != 0:
		return t.at[meansAlign]
	case b.Fixed && (b.Offset < 0 || b.Offset%b.align() != 0):
		return t.at[meansOffset]
	case len(b.Gaps) > 0:
		return t.at[meansGaps]
	}
	return 0
}

// gaps reads a cell such as "3-5 8-9@0:16".
func (t *table) gaps(cell string) ([]Gap, error) {
	var gaps []Gap
	for word := range strings.FieldsSeq(cell) {
		life, window, windowed := strings.Cut(word, "@")
		var g Gap
		ok := pair(life, '-', &g.Lower, &g.Upper) && (!windowed || pair(window, ':', &g.Low, &g.High))
		if !ok {
			return nil, t.wrong(t.at[meansGaps], "gap %q: want lower-upper or lower-upper@low:high", word)
		}
		gaps = append(gaps, g)
	}
	return gaps, nil
}

// pair reads two numbers with a separator, which may be the sign of minus.
func pair(s string, separator byte, a, b *int64) bool {
	if s == "" {
		return false
	}
	at := strings.IndexByte(s[1:], separator) + 1
	if at == 0 {
		return false
	}
	var errA, errB error
	*a, errA = strconv.ParseInt(s[:at], 10, 64)
	*b, errB = strconv.ParseInt(s[at+1:], 10, 64)
	return errA == nil && errB == nil
}

// WriteCSV writes a problem as a table that ReadCSV understands, with the
// plan's offsets, or the fixed ones alone where plan is nil. Columns that no
// buffer needs are left out.
func WriteCSV(w io.Writer, p *Problem, plan *Plan) error {
	if plan != nil && len(plan.Offsets) != len(p.Buffers) {
		return fmt.Errorf("write the table: the plan has %d offsets for %d buffers", len(plan.Offsets), len(p.Buffers))
	}
	var aligned, hinted, gapped bool
	fixed := plan != nil
	for i := range p.Buffers {
		b := &p.Buffers[i]
		aligned = aligned || b.Align > 1
		hinted = hinted || b.HasHint
		gapped = gapped || len(b.Gaps) > 0
		fixed = fixed || b.Fixed
	}
	out := csv.NewWriter(w)
	row := make([]string, 0, meanings)
	cell := func(wanted, given bool, value string) {
		if wanted && !given {
			value = ""
		}
		if wanted {
			row = append(row, value)
		}
	}
	line := func(id, lower, upper, size string) {
		row = append(row[:0], id, lower, upper, size)
	}
	write := func() { _ = out.Write(row) } // Flush keeps the first error
	line("id", "lower", "upper", "size")
	cell(aligned, true, "alignment")
	cell(hinted, true, "hint")
	cell(gapped, true, "gaps")
	cell(fixed, true, "offset")
	write()
	for i := range p.Buffers {
		b := &p.Buffers[i]
		offset, given := b.Offset, b.Fixed
		if plan != nil {
			offset, given = plan.Offsets[i], true
		}
		line(b.ID, decimal(b.Lower), decimal(b.Upper), decimal(b.Size))
		cell(aligned, b.Align > 0, decimal(b.Align))
		cell(hinted, b.HasHint, decimal(b.Hint))
		cell(gapped, true, gapsText(b.Gaps))
		cell(fixed, given, decimal(offset))
		write()
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func gapsText(gaps []Gap) string {
	words := make([]string, len(gaps))
	for i, g := range gaps {
		words[i] = decimal(g.Lower) + "-" + decimal(g.Upper)
		if g.Low != 0 || g.High != 0 {
			words[i] += "@" + decimal(g.Low) + ":" + decimal(g.High)
		}
	}
	return strings.Join(words, " ")
}

// CapacityFromName finds the capacity that a file's name often states, as in
// A.1048576.csv.
func CapacityFromName(name string) (capacity int64, ok bool) {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.TrimSuffix(name, path.Ext(name))
	word := name[strings.LastIndexByte(name, '.')+1:]
	if word == name {
		return 0, false
	}
	n, err := strconv.ParseInt(word, 10, 64)
	return n, err == nil && n > 0
}
