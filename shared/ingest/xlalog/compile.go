package xlalog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// addCompile files a report, or finds the one that is printed again.
func (p *Parser) addCompile(c *Compile) {
	p.open, p.buffer, p.alloc, p.program = nil, nil, nil, false
	for _, o := range p.report.Compiles {
		if o.same(c) {
			o.Count++
			p.compile, p.again = o, false
			if len(o.Allocations)+len(o.Parts) > 0 {
				p.compile, p.again = nil, true
			}
			return
		}
	}
	p.compile, p.again = c, false
	if len(p.report.Compiles) >= maxFailures {
		p.report.Cut = "more compile reports than the reader keeps"
		return
	}
	p.report.Compiles = append(p.report.Compiles, c)
}

func (c *Compile) same(o *Compile) bool {
	if c.Used != o.Used || c.Capacity != o.Capacity || c.Space != o.Space || c.Scoped != o.Scoped || (c.Refused == nil) != (o.Refused == nil) {
		return false
	}
	if c.Used == "" && c.Refused == nil && !c.Unexpected {
		return false // nothing tells them apart
	}
	if c.Refused == nil {
		return true
	}
	a, b := c.Refused, o.Refused
	return a.Requested == b.Requested && a.Free == b.Free && a.Device == b.Device && a.Program == b.Program && a.Reserve == b.Reserve
}

func after(s, label string) string {
	_, a, _ := strings.Cut(s, label)
	return a
}

// size is a printed size at the start of s, such as 41.74G, 4.0K or 293B; ""
// when there is none.
func size(s string) string {
	s = strings.TrimLeft(s, " \t")
	_, num, rest, ok := lines.Decimal(s)
	if !ok {
		return ""
	}
	i := 0
	for i < len(rest) && i < 3 && strings.IndexByte("KMGTPEiB", rest[i]) >= 0 {
		i++
	}
	return num + rest[:i]
}

func (p *Parser) compileLine(s string) bool {
	c := p.compile
	switch {
	case strings.Contains(s, "Total "+c.Space+" usage >="):
		rest := after(s, ">=")
		c.TotalUsage = size(rest)
		p.program = false
		p.glued(rest)
		return true
	case strings.Contains(s, "Program "+c.Space+" requirement"):
		rest := after(s, "requirement")
		c.Program = size(rest)
		p.program = true
		p.glued(rest)
		return true
	case strings.Contains(s, "Largest program allocations"):
		p.glued(after(s, "Largest program allocations"))
		return true
	case c.Refused != nil && c.Refused.row(c, s):
		return true
	}
	if i := strings.Index(s, ". Size: "); i >= 0 {
		return p.rank(s, i)
	}
	if p.alloc != nil {
		return p.allocRow(s)
	}
	return p.partRow(s)
}

// rank reads "  1. Size: 32.00G".
func (p *Parser) rank(s string, i int) bool {
	j := i
	for j > 0 && lines.IsDigit(s[j-1]) {
		j--
	}
	n, ok := lines.Int(firstTwo(lines.Digits(s[j:i])))
	if !ok {
		return false
	}
	p.alloc = nil
	if p.kept < maxBuffers {
		p.kept++
		p.compile.Allocations = append(p.compile.Allocations, Allocation{Rank: n, Size: size(s[i+len(". Size: "):]), Row: -1})
		p.alloc = &p.compile.Allocations[len(p.compile.Allocations)-1]
	}
	return true
}

func firstTwo(n uint64, _ string, ok bool) (uint64, bool) { return n, ok }

func (p *Parser) allocRow(s string) bool {
	a := p.alloc
	switch {
	case strings.Contains(s, "======"):
		p.alloc = nil
	case strings.Contains(s, "Unpadded size:"):
		a.Unpadded = size(after(s, "Unpadded size:"))
	case strings.Contains(s, "Extra memory due to padding:"):
		a.Padding = size(after(s, "padding:"))
		if f, _, rest, ok := lines.Decimal(after(s, "(")); ok && strings.HasPrefix(rest, "x") {
			a.Expansion = f
		}
	case strings.Contains(s, "XLA label:"):
		a.Label = tail(s, "XLA label:")
	case strings.Contains(s, "Allocation type:"):
		a.Type = tail(s, "Allocation type:")
	case strings.Contains(s, "Operator:"):
		operator(s, &a.OpType, &a.OpName, &a.Source, &a.Row)
	case strings.Contains(s, "Shape:"):
		a.Shape = tail(s, "Shape:")
	default:
		return false
	}
	return true
}

// partNames are the rows of the usage tables.
var partNames = []string{"reserved", "heap allocations", "program", "arguments", "global", "scoped", "HLO temp", "overlays", "output"}

func (p *Parser) partRow(s string) bool {
	if p.temp != "" { // the row of the temporaries, broken in two
		p.compile.temp(p.temp+" "+strings.TrimSpace(s), p.compile.Temp)
		p.temp = ""
		if strings.Contains(s, "fragmentation") {
			return true
		}
	}
	for _, name := range partNames {
		_, rest, ok := strings.Cut(s, name)
		if !ok {
			continue
		}
		rest, ok = afterNote(rest)
		if !ok {
			continue
		}
		n := size(rest)
		if n == "" && !strings.Contains(rest, "unknown size") {
			continue
		}
		c := p.compile
		if len(c.Parts) < 64 {
			c.Parts = append(c.Parts, Part{Program: p.program, Name: name, Size: n})
		}
		if name == "HLO temp" {
			c.temp(rest, n)
			if strings.Count(rest, "(") > strings.Count(rest, ")") {
				p.temp = rest
			}
		}
		return true
	}
	return false
}

// afterNote is what follows a row's name: blanks, or a note in parentheses and
// then blanks, as in "reserved(Infeed/Outfeed/Continuations) 529.00M".
func afterNote(s string) (string, bool) {
	t := strings.TrimLeft(s, " ")
	if strings.HasPrefix(t, "(") {
		_, t, _ = strings.Cut(t, ")")
		s = t
	}
	return t, strings.HasPrefix(s, " ")
}

// labels begin a row wherever it stands.
var labels = []string{
	" reserved ", " program ", " arguments ", " global ", " scoped ", " HLO temp ", " overlays ", " output ",
	" Output size ", " Program ", " Largest program ", " Operator:", " Shape:", " Unpadded size:", " Extra memory due to padding:",
	" XLA label:", " Allocation type:", " =====",
}

// glued reads rows that stand on the line of their heading, in a text that lost
// its line breaks.
func (p *Parser) glued(s string) {
	s = s[:min(len(s), maxSentence)]
	for at := 0; at < len(s); {
		next := -1
		for _, l := range labels {
			if i := labelAt(s[at+1:], l); i >= 0 && (next < 0 || at+1+i < next) {
				next = at + 1 + i
			}
		}
		if i := rankStart(s[at+1:]); i >= 0 && (next < 0 || at+1+i < next) {
			next = at + 1 + i
		}
		end := next
		if next < 0 {
			end = len(s)
		}
		if at > 0 {
			p.compileLine(s[at:end])
		}
		if next < 0 {
			return
		}
		at = next
	}
}

// labelAt finds a label, or -1. One that is a word only counts before a size.
func labelAt(s, label string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], label)
		if i < 0 {
			return -1
		}
		i += from
		rest := strings.TrimLeft(s[i+len(label):], " ")
		word := label[len(label)-1] == ' ' && label[1] != 'O' && label[1] != 'P' && label[1] != 'L'
		if !word || size(rest) != "" || strings.HasPrefix(rest, "unknown size") {
			return i
		}
		from = i + 1
	}
}

// rankStart finds the blank before "1. Size: ", or -1.
func rankStart(s string) int {
	i := strings.Index(s, ". Size: ")
	j := i
	for j > 0 && lines.IsDigit(s[j-1]) {
		j--
	}
	if i < 1 || j == i || j < 1 || s[j-1] != ' ' {
		return -1
	}
	return j - 1
}

// temp reads "41.19G (24.2% utilization: Unpadded (a) Padded (b), 0.7%
// fragmentation (293.84M))".
func (c *Compile) temp(rest, n string) {
	c.Temp = n
	c.Utilization = percentBefore(rest, "% utilization")
	c.Fragmentation = percentBefore(rest, "% fragmentation")
	c.FragmentationText = size(after(rest, "fragmentation ("))
	c.Unpadded = size(after(rest, "Unpadded ("))
	c.Padded = size(after(rest, " Padded ("))
}

func percentBefore(s, label string) float64 {
	head, _, ok := strings.Cut(s, label)
	if !ok {
		return -1
	}
	i := len(head)
	for i > 0 && (lines.IsDigit(head[i-1]) || head[i-1] == '.') {
		i--
	}
	if f, _, _, ok := lines.Decimal(head[i:]); ok {
		return f
	}
	return -1
}
