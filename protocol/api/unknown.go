package api

import (
	"strings"

	"tideline/protocol/nearest"
)

// unknown words a complaint about a name: what it is, the nearest known one,
// and all of them.
func unknown(what, got string, known []string) string {
	var b strings.Builder
	b.WriteString("unknown ")
	b.WriteString(what)
	b.WriteString(" ")
	b.WriteString(quote(got))
	if n := nearest.Word(got, known); n != "" {
		b.WriteString(": did you mean ")
		b.WriteString(quote(n))
		b.WriteString("?")
	}
	if len(known) > 0 {
		if b.Len() > 0 && b.String()[b.Len()-1] != '?' {
			b.WriteString(".")
		}
		b.WriteString(" Known: ")
		b.WriteString(strings.Join(known, ", "))
	}
	return b.String()
}
