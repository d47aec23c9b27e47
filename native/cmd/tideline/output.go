package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"tideline/protocol/event"
)

// table prints columns as wide as they need to be; cells after the first are
// flushed right when they begin with a digit or sign.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(c *console) {
	var widths []int
	for _, r := range t.rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				b.WriteString("  ")
			}
			if i > 0 && cell != "" && strings.ContainsRune("0123456789+-−", []rune(cell)[0]) {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		c.say("%s\n", strings.TrimRight(b.String(), " "))
	}
}

// printJSON writes a value for machines.
func printJSON(c *console, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	c.say("%s\n", b)
	return nil
}

func size(n int64) string { return event.FormatBytes(n) }

// change is a difference of bytes with its sign.
func change(from, to int64) string {
	switch d := to - from; {
	case d > 0:
		return "+" + size(d)
	case d < 0:
		return "−" + size(-d)
	}
	return "0 B"
}

// span shows nanoseconds with about four digits.
func span(nanos int64) string {
	d := time.Duration(nanos)
	switch {
	case d >= 100*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Microsecond).String()
	}
	return d.String()
}

// count writes a number with its noun: "1 step", "3 steps".
func count[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
