package profiler

import (
	"math"
	"strconv"
)

const gib = 1 << 30

// hiddenBelow is the requested size, in bytes, below which the page leaves a
// row out: 0.001 GiB.
const hiddenBelow = 0.001 * gib

// Hidden says whether the page leaves the row out.
func (r *Row) Hidden() bool { return float64(r.Requested) < hiddenBelow }

// GiB writes bytes as the page does, in GiB with three decimals.
func GiB(bytes int64) string { return strconv.FormatFloat(float64(bytes)/gib, 'f', 3, 64) }

// Percent writes a fragmentation as the page does, with two decimals. NaN, when
// nothing is free, stays NaN.
func Percent(f float64) string {
	if math.IsNaN(f) {
		return "NaN"
	}
	return strconv.FormatFloat(100*f, 'f', 2, 64) + "%"
}

// Millis writes picoseconds as milliseconds with one decimal.
func Millis(ps int64) string { return strconv.FormatFloat(float64(ps)/1e9, 'f', 1, 64) }
