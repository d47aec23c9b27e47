package steplog

import (
	"bytes"
	"strings"

	"tideline/shared/ingest/lines"
)

// found is one figure of a line.
type found struct {
	label string
	role  Role
	unit  string
	value float64
}

// stepWords come before a step's number; epochs are too coarse while anything
// finer is there.
var stepWords = []string{"global_step", "step", "steps", "iteration", "iter", "it", "batch", "epoch"}

// glance is what one pass over a line tells: the step that it names ("[1370/5000]",
// "it 6/100", "step: 12"), and whether it speaks of memory.
type glance struct {
	step   float64
	total  int64 // 0 when not told
	has    bool
	memory bool
}

func look(s string) (g glance) {
	rank := len(stepWords)
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '[' && rank > 0:
			if n, of, ok := fraction(strings.TrimLeft(s[i+1:], " "), "]"); ok {
				g.step, g.total, g.has, rank = float64(n), of, true, 0
			}
			i++
		case isLetter(c):
			j := i
			var low [32]byte
			letters := uint32(0) // which are in it
			for j < len(s) && isLetter(s[j]) {
				l := lower(s[j])
				letters |= 1 << (l & 31)
				if j-i < len(low) {
					low[j-i] = l
				}
				j++
			}
			word := low[:min(j-i, len(low))]
			g.memory = g.memory || memoryWord(word, letters)
			for k := range rank {
				if string(word) == stepWords[k] {
					if n, of, ok := stepNumber(s[j:]); ok {
						g.step, g.total, g.has, rank = n, of, true, k
					}
					break
				}
			}
			i = j
		default:
			i++
		}
	}
	return g
}

// stepNumber reads what follows such a word: ": 12", " 6/100".
func stepNumber(s string) (step float64, total int64, ok bool) {
	after := strings.TrimLeft(s, " :=#[")
	if len(s)-len(after) > 3 {
		return 0, 0, false
	}
	if n, of, ok := fraction(after, ""); ok {
		return float64(n), of, true
	}
	n, _, ok := lines.Digits(after)
	return float64(n), 0, ok && n < 1<<40
}

var memoryWords = []string{"mem", "vram", "allocated", "reserved", "rss", "current", "available", "in_use", "max_ma"}

// memoryLetters are the letters of each of them, a bit for each.
var memoryLetters = func() []uint32 {
	out := make([]uint32, len(memoryWords))
	for i, m := range memoryWords {
		for _, c := range []byte(m) {
			out[i] |= 1 << (c & 31)
		}
	}
	return out
}()

// memoryWord: the word, whose letters those are, speaks of memory.
func memoryWord(w []byte, letters uint32) bool {
	for i, m := range memoryWords {
		if letters&memoryLetters[i] == memoryLetters[i] && bytes.Contains(w, []byte(m)) {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// fraction reads "1370/5000", followed by end.
func fraction(s, end string) (n, of int64, ok bool) {
	a, rest, ok1 := lines.Digits(s)
	rest, slash := strings.CutPrefix(rest, "/")
	b, rest, ok2 := lines.Digits(rest)
	if !ok1 || !slash || !ok2 || a > b || b > 1<<40 || !strings.HasPrefix(strings.TrimLeft(rest, " "), end) {
		return 0, 0, false
	}
	return int64(a), int64(b), true
}

// figures lists what a line says about memory.
func figures(s string, out []found) []found {
	low := strings.ToLower(s)
	if len(low) != len(s) { // letters whose cases differ in length: positions would not agree
		return out
	}
	if f, ok := infoLine(s, low, out); ok {
		return f
	}
	for i := 0; i < len(s); {
		if !lines.IsDigit(s[i]) {
			i++
			continue
		}
		if i > 0 && (isLetter(s[i-1]) || s[i-1] == '.' || s[i-1] == '/' || s[i-1] == ':' && i > 1 && lines.IsDigit(s[i-2])) {
			i = skipNumber(s, i)
			continue
		}
		end := i + lines.DecimalLen(s[i:])
		unit, after := unitOf(s[end:])
		before, noted := unitBefore(s[:i])
		if unit == "" {
			unit = noted
		}
		if unit == "" {
			unit = lineUnit(s[:i])
		}
		if label, good := labelOf(before, low[:len(before)], after, unit); good {
			if v, _, _, ok := lines.Decimal(s[i:]); ok {
				out = append(out, found{label: label, unit: unit, value: v})
				if len(out) >= 8 {
					return out
				}
			}
		}
		i = max(end, skipNumber(s, i))
	}
	return out
}

func skipNumber(s string, i int) int {
	for i < len(s) && (lines.IsDigit(s[i]) || s[i] == '.' || s[i] == '/' || s[i] == ':') {
		i++
	}
	return i
}

// infoLine reads the two lines that are printed from get_memory_info and its
// like: current and peak of a device; total and available of the host.
func infoLine(s, low string, out []found) ([]found, bool) {
	cur, ok1 := labelled(s, low, "current")
	peak, ok2 := labelled(s, low, "peak")
	if ok1 && ok2 {
		if cur.unit == "" && peak.unit == "" {
			cur.unit, peak.unit = guess(peak.value), guess(peak.value)
		}
		cur.role, cur.label, peak.role, peak.label = DeviceCurrent, "current", DevicePeak, "peak"
		return append(out, cur, peak), true
	}
	if f, ok := named(s, low, out); ok {
		return f, true
	}
	avail, ok := labelled(s, low, "available")
	if ok && (strings.Contains(low, "cpu") || strings.Contains(low, "ram") || strings.Contains(low, "host") || strings.Contains(low, "total")) {
		avail.role, avail.label = HostAvailable, "available"
		return append(out, avail), true
	}
	return out, false
}

// names are pairs of figures that programs print under names of their own: what
// a device holds now, and its peak.
var names = []struct{ current, peak string }{
	{"bytes_in_use", "peak_bytes_in_use"}, // JAX's statistics of a device
	{" ma ", "max_ma "},                   // DeepSpeed
}

func named(s, low string, out []found) ([]found, bool) {
	for _, n := range names {
		peak, ok := labelled(s, low, n.peak)
		if !ok {
			continue
		}
		at := strings.Index(low, n.peak)
		hidden := low[:at] + strings.Repeat("_", len(n.peak)) + low[at+len(n.peak):]
		cur, ok := labelled(s, hidden, n.current)
		if !ok {
			continue
		}
		if n.peak == names[0].peak {
			cur.unit, peak.unit = "bytes", "bytes"
		}
		cur.role, cur.label, peak.role, peak.label = DeviceCurrent, strings.TrimSpace(n.current), DevicePeak, strings.TrimSpace(n.peak)
		return append(out, cur, peak), true
	}
	if used, ok := labelled(s, low, "cpu virtual memory:  used"); ok {
		used.role, used.label = HostUsed, "used"
		return append(out, used), true
	}
	return out, false
}

// guess the unit of a bare figure: no device holds a megabyte only, so a large
// whole number is bytes.
func guess(peak float64) string {
	if peak >= 1<<20 {
		return "bytes"
	}
	return ""
}

// labelled reads the number after a word, with at most quotes, colons and
// blanks between.
func labelled(s, low, word string) (found, bool) {
	i := strings.Index(low, word)
	if i < 0 {
		return found{}, false
	}
	rest := s[i+len(word):]
	trimmed := strings.TrimLeft(rest, " '\":=")
	if len(rest)-len(trimmed) > 4 {
		return found{}, false
	}
	v, _, rest, ok := lines.Decimal(trimmed)
	unit, _ := unitOf(rest)
	return found{unit: unit, value: v}, ok
}

var unitWords = []string{"GiB", "MiB", "KiB", "GB", "MB", "KB", "Gb", "Mb", "bytes", "G", "M", "B"}

// unitOf reads a unit right after a number.
func unitOf(rest string) (unit, after string) {
	t := strings.TrimLeft(rest, " ")
	if len(rest)-len(t) > 1 || t == "" || strings.IndexByte("GMKBb", t[0]) < 0 { // what the units begin with
		return "", rest
	}
	for _, u := range unitWords {
		if a, ok := strings.CutPrefix(t, u); ok && (a == "" || !isLetter(a[0]) && !lines.IsDigit(a[0])) {
			switch u {
			case "Gb", "G":
				u = "GB"
			case "Mb", "M":
				u = "MB"
			case "B":
				u = "bytes"
			}
			return u, a
		}
	}
	return "", rest
}

// unitBefore takes off a unit that stands in parentheses behind a label, as in
// "max_allocated (GiB): 20.5".
func unitBefore(before string) (rest, unit string) {
	t := strings.TrimRight(before, " :='\"")
	open := strings.LastIndexByte(t, '(')
	if open < 0 || !strings.HasSuffix(t, ")") || len(before)-len(t) > 4 {
		return before, ""
	}
	if u, after := unitOf(t[open+1 : len(t)-1]); u != "" && after == "" {
		return strings.TrimRight(t[:open], " "), u
	}
	return before, ""
}

// lineUnit is the unit that a line gives for all of its figures: "memory (MB) |
// allocated: 6784.9 | reserved: 8932.0".
func lineUnit(before string) string {
	_, rest, ok := strings.Cut(before, "emory (")
	if in, _, closed := strings.Cut(rest, ")"); ok && closed {
		if u, after := unitOf(in); after == "" {
			return u
		}
	}
	return ""
}

// labelOf finds the words that say what a number is: up to three before it, or
// one after its unit. They must speak of memory.
func labelOf(before, low, after, unit string) (string, bool) {
	trimmed := strings.TrimRight(before, " :='\"(~")
	if len(before)-len(trimmed) > 6 {
		return "", false
	}
	at := len(trimmed)
	for range 3 {
		j := at
		if j > 0 && j < len(trimmed) && trimmed[j-1] == ' ' {
			j-- // the blank between two words of a label
		}
		word := j
		for j > 0 && (isLetter(trimmed[j-1]) || trimmed[j-1] == '-') {
			j--
		}
		if j == word {
			break
		}
		at = j
	}
	label := strings.TrimSpace(low[at:len(trimmed)])
	if isMemoryLabel(label, unit) {
		return label, true
	}
	if unit == "" {
		return "", false
	}
	word := strings.ToLower(strings.TrimLeft(after, " "))
	n := 0
	for n < len(word) && isLetter(word[n]) {
		n++
	}
	if isMemoryLabel(word[:n], unit) {
		return word[:n], true
	}
	return "", false
}

// isMemoryLabel: the last words of the label name an amount of memory. Without
// a unit the label must be explicit.
func isMemoryLabel(label, unit string) bool {
	if label == "" {
		return false
	}
	if anyLast(label, explicitLabels) {
		return true
	}
	if unit == "" {
		return false
	}
	return anyLast(label, unitLabels)
}

var (
	explicitLabels = []string{
		"mem", "memory", "gpu_mem", "gpu_memory", "max_mem", "memory_allocated", "max_memory_allocated", "memory_reserved",
		"max_memory_reserved", "vram", "rss", "mem_used", "memory_used",
	}
	unitLabels = []string{"allocated", "reserved", "used", "usage", "using", "cached", "peak", "ram"}
)

// anyLast says whether the label's last word is one of the words, or ends in
// "_" and one of them.
func anyLast(label string, words []string) bool {
	for _, w := range words {
		head, ok := strings.CutSuffix(label, w)
		if ok && (head == "" || head[len(head)-1] == ' ' || head[len(head)-1] == '_') {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
