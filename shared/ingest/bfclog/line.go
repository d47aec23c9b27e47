package bfclog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// record is one log line taken apart.
type record struct {
	num    int
	source string // collector's prefix that tells processes apart
	body   string // message, without surrounding blanks
	bfc    bool   // printed by the allocator itself
	filed  bool   // has a source file prefix of any kind
}

const bfcFile = "bfc_allocator.cc:"

// splitGlued cuts a physical line at every allocator prefix but the first, for
// text that lost its line breaks.
func splitGlued(s string) []string {
	first := strings.Index(s, bfcFile)
	if first < 0 {
		return []string{s}
	}
	var out []string
	from := 0
	for at := first; ; {
		rel := strings.Index(s[at+len(bfcFile):], bfcFile)
		if rel < 0 {
			return append(out, s[from:])
		}
		at += len(bfcFile) + rel
		cut := stampStart(s, at)
		if cut > from {
			out = append(out, s[from:cut])
			from = cut
		}
	}
}

// stampStart returns where the line prefix around the path at position at
// begins: before the path, its severity letter and its time stamp.
func stampStart(s string, at int) int {
	i := at
	for i > 0 && s[i-1] != ' ' && s[i-1] != '\t' {
		i--
	}
	if at, ok := abslStart(s[:i]); ok {
		return at
	}
	if i >= 2 && s[i-1] == ' ' && strings.IndexByte("IWEF", s[i-2]) >= 0 && (i == 2 || !isWord(s[i-3])) {
		i -= 2
	}
	const stamp = "2006-01-02 15:04:05.000000: "
	if i >= len(stamp) && shapeEqual(s[i-len(stamp):i], stamp) {
		i -= len(stamp)
	}
	return i
}

// abslStart finds where "E0528 07:02:44.350251   27487 " begins, which ends s.
func abslStart(s string) (int, bool) {
	t := strings.TrimRight(s, " ")
	for len(t) > 0 && isDigit(t[len(t)-1]) { // the thread
		t = t[:len(t)-1]
	}
	u := strings.TrimRight(t, " ")
	i := strings.LastIndexByte(u, ' ')
	if len(t) == len(u) || i < 5 || strings.Count(u[i:], ":") < 2 {
		return 0, false
	}
	day := strings.TrimRight(u[:i], " ")
	at := len(day) - len("E0528")
	if at < 0 || strings.IndexByte("IWEF", day[at]) < 0 || !shapeEqual(day[at+1:], "0528") || at > 0 && isWord(day[at-1]) {
		return 0, false
	}
	return at, true
}

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// shapeEqual compares two texts with all digits taken as equal.
func shapeEqual(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if a[i] != b[i] && (!isDigit(a[i]) || !isDigit(b[i])) {
			return false
		}
	}
	return true
}

// prefixes remembers the collectors' prefixes that were seen before stamps, to
// strip them from the lines that carry no stamp.
type prefixes struct{ shapes []string }

const maxPrefixes = 16

// parse takes one physical line apart.
func (p *prefixes) parse(num int, raw string) record {
	raw = lines.StripQuotes(raw)
	r := record{num: num}
	if at := strings.Index(raw, bfcFile); at >= 0 {
		if body, ok := afterBracket(raw[at+len(bfcFile):]); ok {
			r.bfc, r.filed, r.body = true, true, body
			r.source = p.learn(raw[:stampStart(raw, at)])
			return r
		}
	}
	if at := strings.Index(raw, ".cc:"); at >= 0 {
		if body, ok := afterBracket(raw[at+len(".cc:"):]); ok {
			r.filed, r.body = true, body
			r.source = p.learn(raw[:stampStart(raw, at)])
			return r
		}
	}
	r.source, r.body = p.strip(raw)
	if body, ok := wrappedPrefix(r.body); ok {
		r.bfc, r.filed, r.body = true, true, body
	}
	return r
}

// afterBracket expects "123] text".
func afterBracket(s string) (string, bool) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == 0 || i == len(s) || s[i] != ']' {
		return "", false
	}
	return strings.TrimSpace(s[i+1:]), true
}

// wrappedPrefix recognises the tail of a line prefix that a terminal broke:
// "ator.cc:273] text" or "3] text".
func wrappedPrefix(s string) (string, bool) {
	end := strings.Index(s, "] ")
	if end < 1 || end > 60 || !isDigit(s[end-1]) {
		return "", false
	}
	for i := range end {
		if !isWord(s[i]) && s[i] != '/' && s[i] != '.' && s[i] != ':' {
			return "", false
		}
	}
	return strings.TrimSpace(s[end+2:]), true
}

// learn remembers the text before a stamp and returns the part of it that
// tells processes apart.
func (p *prefixes) learn(prefix string) string {
	if strings.TrimSpace(prefix) == "" || looksLikeProgress(prefix) {
		return ""
	}
	known := false
	for _, s := range p.shapes {
		known = known || shapeEqual(s, prefix)
	}
	if !known && len(p.shapes) < maxPrefixes && len(prefix) <= 200 {
		p.shapes = append(p.shapes, prefix)
	}
	return sourceOf(prefix)
}

// strip removes a learned prefix from a line without a stamp.
func (p *prefixes) strip(raw string) (source, body string) {
	for _, s := range p.shapes {
		if len(raw) >= len(s) && shapeEqual(raw[:len(s)], s) {
			return sourceOf(raw[:len(s)]), strings.TrimSpace(raw[len(s):])
		}
		if t := strings.TrimRight(s, " "); len(raw) == len(t) && shapeEqual(raw, t) {
			return sourceOf(raw), ""
		}
	}
	return "", strings.TrimSpace(raw)
}

// sourceOf keeps what names a process or container: a prefix that ends like
// one, without the tokens that are times.
func sourceOf(prefix string) string {
	t := strings.TrimSpace(prefix)
	if t == "" || len(t) > 120 || strings.IndexByte("|:>])", t[len(t)-1]) < 0 {
		return ""
	}
	var keep []string
	for w := range strings.FieldsSeq(t) {
		if strings.Count(w, ":") >= 2 || len(w) >= 10 && shapeEqual(w[:10], "2006-01-02") {
			continue
		}
		keep = append(keep, w)
	}
	return strings.Join(keep, " ")
}

func looksLikeProgress(s string) bool {
	for _, w := range []string{"ETA", "[=", "==", "it/s", "loss", "%|", "step", "Epoch", "...."} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

func containsFold(s, sub string) bool {
	return strings.Contains(strings.ToLower(s), sub)
}
