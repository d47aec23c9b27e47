package bfclog

import (
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes as a log tells it: exactly, as rounded text
// ("585.94MiB"), or not at all. The zero value is unknown.
type Size struct {
	N      int64  // the bytes, or the figure in Text times its unit
	Lo, Hi int64  // every count of bytes that prints like this, inclusive
	Text   string // as printed, when it was printed with a unit
	Known  bool
}

// ExactSize is a count of bytes printed in full.
func ExactSize(n int64) Size { return Size{N: n, Lo: n, Hi: n, Known: true} }

// Exact says whether the byte count is known to the byte.
func (s Size) Exact() bool { return s.Known && s.Lo == s.Hi }

// Or is s, or other when s is unknown.
func (s Size) Or(other Size) Size {
	if s.Known {
		return s
	}
	return other
}

const sizeUnits = "KMGTPE"

// huge is where figures stop being told apart: no such amount of memory
// exists, and 64 bits barely hold it.
const huge = 1 << 61

// beyond stands for every amount from there on.
var beyond = Size{N: math.MaxInt64, Lo: huge, Hi: math.MaxInt64, Known: true}

// Human prints n as the allocator does: whole bytes below 1024, then integer
// division by 1024 down to below a mebi-unit, and one decimal for KiB, two for
// larger units. The truncation matters: 4000000000 is 3.72GiB, not 3.73GiB.
func Human(n int64) string {
	if n == math.MinInt64 {
		return "-8E"
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if n < 1024 {
		return sign + strconv.FormatInt(n, 10) + "B"
	}
	unit, digits := 0, 1
	for ; n >= 1<<20 && unit < len(sizeUnits)-1; unit++ {
		n /= 1024
		digits = 2
	}
	return sign + strconv.FormatFloat(float64(n)/1024, 'f', digits, 64) + sizeUnits[unit:unit+1] + "iB"
}

// ParseSize reads what Human prints.
func ParseSize(text string) (Size, bool) {
	s, rest := scanSize(text)
	return s, s.Known && rest == ""
}

// scanSize reads a printed size at the start of s and returns what follows.
func scanSize(s string) (Size, string) {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
		i++
	}
	num := s[:i]
	unit, end := scanUnit(s, i)
	if end < 0 {
		return Size{}, s
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return Size{}, s
	}
	size, ok := sizeOf(f, num, unit)
	if !ok {
		return Size{}, s
	}
	size.Text = s[:end]
	if unit > 0 {
		size.trim(int64(1) << (10 * (unit - 1)))
	}
	return size, s[end:]
}

// trim takes off the ends of the range that round to a neighbouring figure,
// which depends on how ties fall.
func (s *Size) trim(step int64) {
	if s.N < 0 || s.Hi >= huge {
		return
	}
	for range 2 {
		if s.Lo < s.N && Human(s.Lo) != s.Text {
			s.Lo += step
		}
		if s.Hi > s.N && Human(s.Hi) != s.Text {
			s.Hi -= step
		}
	}
}

// scanUnit returns the unit's index (0 for bytes) and where it ends, or -1.
func scanUnit(s string, i int) (unit, end int) {
	if i < len(s) && s[i] == 'B' {
		return 0, i + 1
	}
	if strings.HasPrefix(s[:i], "-") && strings.HasPrefix(s[i:], "E") && !strings.HasPrefix(s[i:], "Ei") {
		return len(sizeUnits), i + 1 // the older versions print -2^63 as "-8E"
	}
	if i+2 < len(s) && s[i+1] == 'i' && s[i+2] == 'B' {
		if u := strings.IndexByte(sizeUnits, s[i]); u >= 0 {
			return u + 1, i + 3
		}
	}
	return 0, -1
}

// sizeOf works out which byte counts print as num and unit.
func sizeOf(f float64, num string, unit int) (Size, bool) {
	if unit == 0 {
		n, err := strconv.ParseInt(num, 10, 64)
		return ExactSize(n), err == nil
	}
	scale := math.Ldexp(1, 10*unit)
	if f*scale >= huge {
		return beyond, true
	}
	if f*scale <= -huge {
		return Size{N: math.MinInt64, Lo: math.MinInt64, Hi: -huge, Known: true}, true
	}
	if f < 0 {
		n := int64(math.Round(f * scale))
		return Size{N: n, Lo: n - int64(scale), Hi: n + int64(scale), Known: true}, true
	}
	half := 0.05
	if unit > 1 {
		half = 0.005
	}
	// The printed figure is a whole number of the next smaller unit, cut off
	// and then divided by 1024.
	lo, hi := math.Ceil((f-half)*1024), math.Floor((f+half)*1024)
	small := scale / 1024
	s := Size{N: int64(math.Round(f * scale)), Known: true}
	s.Lo = max(int64(scale), int64(lo*small))
	s.Hi = int64((hi+1)*small) - 1
	return s, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// Spaced puts a blank between a figure and its unit, where it was printed
// without one: "7.88GiB" is "7.88 GiB".
func Spaced(text string) string {
	i := 0
	for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
		i++
	}
	if i == 0 || i == len(text) {
		return text
	}
	switch c := text[i]; {
	case c >= 'A' && c <= 'Z' && strings.HasSuffix(text, "B") && len(text)-i <= 3:
		return text[:i] + " " + text[i:]
	default:
		return text
	}
}
