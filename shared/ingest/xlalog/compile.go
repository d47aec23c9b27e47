package xlalog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// compileFailure reads "Ran out of memory in memory space hbm. Used X of Y
// hbm. Exceeded hbm capacity by Z."
func (p *Parser) compileFailure(num int, s string) bool {
	c := &Compile{Line: num, Utilization: -1, Fragmentation: -1, Newest: strings.Contains(s, "E1000") || strings.Contains(s, "CompileTimeHbmOom")}
	c.Space, _ = lines.Between(s, "memory space ", " .,;")
	_, rest, _ := strings.Cut(s, "Used ")
	c.Used = size(rest)
	c.Capacity = size(after(rest, " of "))
	c.Exceeded = size(after(rest, "capacity by "))
	p.open, p.buffer, p.alloc, p.program = nil, nil, nil, false
	for _, o := range p.report.Compiles {
		if o.Used == c.Used && o.Capacity == c.Capacity && o.Space == c.Space {
			p.compile = o // printed again
			if len(o.Allocations) > 0 {
				p.compile = nil
			}
			return true
		}
	}
	p.compile = c
	if len(p.report.Compiles) >= maxFailures {
		p.report.Cut = "more compile reports than the reader keeps"
		return true
	}
	p.report.Compiles = append(p.report.Compiles, c)
	return true
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
		c.TotalUsage = size(after(s, ">="))
		p.program = false
		return true
	case strings.Contains(s, "Program "+c.Space+" requirement"):
		c.Program = size(after(s, "requirement"))
		p.program = true
		return true
	case strings.Contains(s, "Largest program allocations"):
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
var partNames = []string{"reserved", "program", "arguments", "global", "scoped", "HLO temp", "overlays", "output"}

func (p *Parser) partRow(s string) bool {
	for _, name := range partNames {
		_, rest, ok := strings.Cut(s, name+" ")
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
		}
		return true
	}
	return false
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
