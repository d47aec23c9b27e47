package bridge

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// answer is JSON text being written. Commas are put where they are needed.
type answer struct{ b []byte }

//go:noinline
func (a *answer) comma() {
	if n := len(a.b); n > 0 {
		switch a.b[n-1] {
		case '{', '[', ':':
		default:
			a.b = append(a.b, ',')
		}
	}
}

//go:noinline
func (a *answer) open() *answer { a.comma(); a.b = append(a.b, '{'); return a }

//go:noinline
func (a *answer) close() *answer { a.b = append(a.b, '}'); return a }

//go:noinline
func (a *answer) list() *answer { a.comma(); a.b = append(a.b, '['); return a }

//go:noinline
func (a *answer) endList() *answer { a.b = append(a.b, ']'); return a }

// key begins a member of an object; its value follows.
//
//go:noinline
func (a *answer) key(k string) *answer {
	a.comma()
	a.quote(k)
	a.b = append(a.b, ':')
	return a
}

//go:noinline
func (a *answer) text(s string) *answer { a.comma(); a.quote(s); return a }

//go:noinline
func (a *answer) num(n int64) *answer {
	a.comma()
	a.b = strconv.AppendInt(a.b, n, 10)
	return a
}

// real writes a float; JSON has no word for those that are not finite.
//
//go:noinline
func (a *answer) real(f float64) *answer {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return a.null()
	}
	a.comma()
	a.b = strconv.AppendFloat(a.b, f, 'g', -1, 64)
	return a
}

//go:noinline
func (a *answer) truth(v bool) *answer {
	a.comma()
	a.b = strconv.AppendBool(a.b, v)
	return a
}

//go:noinline
func (a *answer) null() *answer {
	a.comma()
	a.b = append(a.b, "null"...)
	return a
}

const hex = "0123456789abcdef"

//go:noinline
func (a *answer) quote(s string) {
	a.b = append(a.b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case c == '"' || c == '\\':
				a.b = append(a.b, '\\', c)
			case c == '\n':
				a.b = append(a.b, '\\', 'n')
			case c < 0x20 || c == 0x7f:
				a.b = append(a.b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			default:
				a.b = append(a.b, c)
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			a.b = append(a.b, "\ufffd"...)
		} else {
			a.b = append(a.b, s[i:i+n]...)
		}
		i += n
	}
	a.b = append(a.b, '"')
}
