package lines

import (
	"strconv"
	"strings"
)

// Between returns the text after the first occurrence of prefix up to the
// first of the stop characters, or to the end.
func Between(s, prefix, stops string) (string, bool) {
	_, s, ok := strings.Cut(s, prefix)
	if !ok {
		return "", false
	}
	if j := strings.IndexAny(s, stops); j >= 0 {
		s = s[:j]
	}
	return s, true
}

// IsDigit says whether c is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// Digits reads a whole number at the start of s and returns what follows.
// A number beyond 64 bits is not one.
func Digits(s string) (n uint64, rest string, ok bool) {
	i := 0
	for i < len(s) && IsDigit(s[i]) {
		i++
	}
	n, err := strconv.ParseUint(s[:i], 10, 64)
	return n, s[i:], err == nil
}

// NumberAfter reads the whole number that follows label, blanks between. Of
// several occurrences the first that is followed by a number counts.
func NumberAfter(s, label string) (uint64, bool) {
	for label != "" { // an empty one would be found for ever
		_, after, found := strings.Cut(s, label)
		if !found {
			return 0, false
		}
		if n, _, ok := Digits(strings.TrimLeft(after, " \t")); ok {
			return n, true
		}
		s = after
	}
	return 0, false
}

// Decimal reads a number with an optional sign and fraction at the start of s:
// its value, its digits as printed, and what follows.
func Decimal(s string) (f float64, text, rest string, ok bool) {
	i := DecimalLen(s)
	if i == 0 || !IsDigit(s[i-1]) {
		return 0, s[:i], s[i:], false
	}
	f, err := strconv.ParseFloat(s[:i], 64)
	return f, s[:i], s[i:], err == nil
}

// DecimalLen is how long such a number is.
func DecimalLen(s string) int {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	from := i
	dot := false
	for i < len(s) && (IsDigit(s[i]) || s[i] == '.' && !dot) {
		dot = dot || s[i] == '.'
		i++
	}
	if i > from && s[i-1] == '.' { // the full stop of a sentence
		i--
	}
	return i
}

// Int turns a count into an int64; false where it does not fit.
func Int(n uint64, ok bool) (int64, bool) {
	return int64(n), ok && n <= 1<<62
}

// StripTag removes the mark that mpirun puts before each line, "[1,0]<stderr>:",
// whose comma would divide a table's first column.
func StripTag(s string) string {
	head, rest, ok := strings.Cut(s, ">:")
	if ok && len(head) < 40 && strings.HasPrefix(head, "[") && strings.Contains(head, "]<std") {
		return rest
	}
	return s
}

// FirstCell is a table's first cell without the mark of a quote, a rank or a
// collector before it, where the cell itself is one word.
func FirstCell(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexAny(s, " \t>]|):")+1:]
}
