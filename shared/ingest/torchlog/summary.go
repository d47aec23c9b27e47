package torchlog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// Summary is one table of memory_summary(). Sizes are in MiB.
type Summary struct {
	Line    int
	Device  int64
	OOMs    int64
	Retries int64
	Counted bool // the line with the two counts is there
	Rows    []Row
	Decimal bool // says MB and means MiB, before 1.12
	Cut     bool // rows at its end are missing
}

// Row is a metric of the table.
type Row struct {
	Metric string // "Allocated memory"; "" never
	Pool   string // "", "large" or "small"
	// Cells are current, peak, total allocated, total freed: a size, or a
	// count where Counts is set.
	Cells  [4]Figure
	Counts bool
}

// Row finds the row of a metric over all pools.
func (s *Summary) Row(metric string) (Row, bool) {
	for _, r := range s.Rows {
		if r.Metric == metric && r.Pool == "" {
			return r, true
		}
	}
	return Row{}, false
}

// The rows of a table, in order; the byte rows first.
var metrics = []struct {
	label  string
	counts bool
}{
	{"Allocated memory", false},
	{"Active memory", false},
	{"Requested memory", false},
	{"GPU reserved memory", false},
	{"Reserved memory", false},
	{"Cached memory", false},
	{"GPU cached memory", false},
	{"Non-releasable memory", false},
	{"Allocations", true},
	{"Active allocs", true},
	{"GPU reserved segments", true},
	{"Non-releasable allocs", true},
	{"Oversize allocations", true},
	{"Oversize GPU segments", true},
}

const (
	maxTables = 256
	maxRows   = 64
)

// tableLine reads a line of a table; false when it is none.
func (p *Parser) tableLine(num int, s string) bool {
	if before, _, ok := strings.Cut(s, " memory summary, device ID "); ok && strings.Contains(before, "PyTorch ") {
		n, ok := lines.Int(lines.NumberAfter(s, "device ID "))
		if !ok {
			n = -1
		}
		p.open = nil
		if len(p.report.Summaries) < maxTables {
			p.open = &Summary{Line: num, Device: n}
			p.report.Summaries = append(p.report.Summaries, p.open)
		}
		return true
	}
	if p.open == nil || strings.Count(s, "|") < 2 {
		return false
	}
	if strings.Contains(s, "OOMs:") {
		ooms, ok1 := lines.Int(lines.NumberAfter(s, "OOMs:"))
		retries, ok2 := lines.Int(lines.NumberAfter(s, "retries:"))
		p.open.OOMs, p.open.Retries, p.open.Counted = ooms, retries, ok1 && ok2
		return true
	}
	return p.open.row(s)
}

func (s *Summary) row(line string) bool {
	cells := strings.Split(line, "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	for i, c := range cells {
		pool := ""
		switch c {
		case "from large pool":
			pool = "large"
		case "from small pool":
			pool = "small"
		}
		if pool != "" && len(s.Rows) > 0 {
			last := s.Rows[len(s.Rows)-1]
			return s.add(Row{Metric: last.Metric, Pool: pool, Counts: last.Counts}, cells[i+1:])
		}
		for _, m := range metrics {
			if c == m.label {
				return s.add(Row{Metric: m.label, Counts: m.counts}, cells[i+1:])
			}
		}
	}
	return false
}

func (s *Summary) add(r Row, cells []string) bool {
	for i := range r.Cells {
		if i >= len(cells) {
			break
		}
		v, _, rest, ok := lines.Decimal(cells[i])
		if !ok || v < -1e15 || v > 1e15 {
			continue
		}
		rest = strings.TrimSpace(rest)
		if r.Counts {
			scale := map[string]float64{"": 1, "K": 1e3, "M": 1e6, "B": 1e9}[rest]
			r.Cells[i] = Figure{Value: v * scale, Known: scale > 0}
			continue
		}
		for _, u := range units {
			if rest == u.printed {
				r.Cells[i] = Figure{Value: v, Unit: u.unit, Known: true}
				s.Decimal = s.Decimal || len(u.printed) == 2
			}
		}
	}
	if len(s.Rows) < maxRows {
		s.Rows = append(s.Rows, r)
	}
	return r.Cells[0].Known
}

// finish notes whether the table's last rows are there.
func (s *Summary) finish() {
	_, last := s.Row("Non-releasable allocs")
	s.Cut = !last || !s.Counted
}
