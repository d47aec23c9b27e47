package steplog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// table is a progress table whose heading names its columns, as detectors print
// one: "Epoch gpu_mem box obj cls", and under it "0/299 5.23G 0.08 0.02 0.01".
type table struct {
	column int // of the memory; 0 for no table
	left   int // lines that may come before the next row
}

const tableLines = 4

// heading says whether a line heads such a table, which then is open.
func (t *table) heading(s string) bool {
	w := strings.Fields(s)
	if len(w) < 3 || !strings.EqualFold(w[0], "epoch") {
		return false
	}
	for i, name := range w {
		if strings.EqualFold(name, "gpu_mem") {
			*t = table{i, tableLines}
			return true
		}
	}
	return false
}

// row reads a row of an open table.
func (t *table) row(s string) (step float64, total int64, f found, ok bool) {
	w := strings.Fields(s)
	if t.column < len(w) {
		n, of, is := fraction(w[0], "")
		v, _, rest, number := lines.Decimal(w[t.column])
		if unit, after := unitOf(rest); is && number && unit != "" && after == "" {
			t.left = tableLines
			return float64(n), of, found{label: "gpu_mem", unit: unit, value: v}, true
		}
	}
	if t.left--; t.left <= 0 {
		t.column = 0
	}
	return 0, 0, found{}, false
}

// Idle says whether a line without a mark would change nothing: no row of a
// table is awaited.
func (p *Parser) Idle() bool { return p.table.column == 0 }
