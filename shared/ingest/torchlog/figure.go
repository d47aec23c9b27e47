package torchlog

import (
	"math"
	"strconv"
	"strings"

	"tideline/shared/ingest/lines"
)

// Figure is a printed amount of memory: two decimals and a unit, as a rule.
// The zero value is unknown.
type Figure struct {
	Value float64 // as printed
	Unit  string  // "bytes", "KiB", "MiB" or "GiB"; binary, however it was printed
	Known bool
	Text  string // the number as printed, where it is more than any memory; Value may be less exact
}

// units in bytes. Old versions print MB and mean MiB.
var units = []struct {
	printed, unit string
	bytes         float64
}{
	{"bytes", "bytes", 1},
	{"KiB", "KiB", 1 << 10},
	{"MiB", "MiB", 1 << 20},
	{"GiB", "GiB", 1 << 30},
	{"TiB", "TiB", 1 << 40},
	{"KB", "KiB", 1 << 10},
	{"MB", "MiB", 1 << 20},
	{"GB", "GiB", 1 << 30},
	{"TB", "TiB", 1 << 40},
	{"B", "bytes", 1},
}

// Bytes is the figure in bytes, as exact as it was printed; 0 when unknown.
func (f Figure) Bytes() float64 {
	for _, u := range units {
		if u.unit == f.Unit {
			return f.Value * u.bytes
		}
	}
	return 0
}

// In is the figure in that unit: as printed when it is the printed unit, and
// to two decimals otherwise.
func (f Figure) In(unit string) float64 {
	if f.Unit == unit {
		return f.Value
	}
	for _, u := range units {
		if u.unit == unit {
			return Round2(f.Bytes() / u.bytes)
		}
	}
	return 0
}

// Round2 keeps two decimals, as the messages do.
func Round2(x float64) float64 { return math.Round(x*100) / 100 }

// FromBytes is a derived figure.
func FromBytes(b float64) Figure { return Figure{Value: b, Unit: "bytes", Known: true} }

// The sizes that a float does not hold to the second decimal, and the largest
// that is told apart: in every unit it is a number still.
const (
	beyond  = 1 << 63
	largest = 1e290
)

// scanFigure reads a figure at the start of a text without blanks. A size gone
// wrong has as many digits as it likes, or an exponent.
func scanFigure(s string) (Figure, string) {
	n := lines.DecimalLen(s)
	if n == 0 || !lines.IsDigit(s[n-1]) {
		return Figure{}, s
	}
	if e := strings.TrimLeft(s[n:], "eE"); len(e) == len(s)-n-1 {
		e = strings.TrimLeft(e, "+-")
		if digits := strings.TrimLeft(e, "0123456789"); len(digits) < len(e) {
			n = len(s) - len(digits)
		}
	}
	v, err := strconv.ParseFloat(s[:n], 64) // infinite beyond its range
	if err != nil && !math.IsInf(v, 0) || v < 0 {
		return Figure{}, s
	}
	rest := strings.TrimLeft(s[n:], " ")
	for _, u := range units {
		if after, ok := strings.CutPrefix(rest, u.printed); ok {
			f := Figure{Value: min(v, largest), Unit: u.unit, Known: true}
			if f.Bytes() >= beyond {
				f.Text = s[:n]
			}
			return f, after
		}
	}
	return Figure{}, s
}

// figureAfter reads the figure that follows label, wherever that is.
func figureAfter(s, label string) Figure {
	for {
		_, after, found := strings.Cut(s, label)
		if !found {
			return Figure{}
		}
		if f, _ := scanFigure(after); f.Known {
			return f
		}
		s = after
	}
}

// figureBefore reads the figure that ends where label begins.
func figureBefore(s, label string) Figure {
	before, _, ok := strings.Cut(s, label)
	if !ok {
		return Figure{}
	}
	head := before
	for _, u := range units {
		h, ok := strings.CutSuffix(head, u.printed)
		if !ok {
			continue
		}
		j := len(h)
		for j > 0 && (lines.IsDigit(h[j-1]) || h[j-1] == '.') {
			j--
		}
		if f, rest := scanFigure(strings.TrimLeft(head[j:], ".")); f.Known && rest == "" {
			return f
		}
	}
	return Figure{}
}
