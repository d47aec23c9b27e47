package redact

import (
	"strconv"
	"strings"
)

// Kind is what a name is of; its pseudonyms are numbered apart.
type Kind string

// The kinds of names.
const (
	Tensor    Kind = "tensor"
	Op        Kind = "op"
	File      Kind = "file"
	Host      Kind = "host"
	Process   Kind = "process"
	Allocator Kind = "allocator"
	Series    Kind = "series"
	Stage     Kind = "stage"
	Run       Kind = "run"
	Name      Kind = "name"
	scope     Kind = "scope"
)

// Redactor gives pseudonyms. It is not safe for concurrent use.
type Redactor struct {
	known map[string]string // what was replaced, by the original
	count map[Kind]int
	keep  map[string]bool // further words that may stay
}

// New is a Redactor that has given no pseudonym yet.
func New() *Redactor {
	return &Redactor{known: map[string]string{}, count: map[Kind]int{}, keep: map[string]bool{}}
}

// Keep lets a word stay that Tideline's own words do not have, such as an
// address that a report tells.
func (r *Redactor) Keep(word string) { r.keep[word] = true }

// Name is what stands for a name of that kind: itself if all its words are
// Tideline's own, else a pseudonym for the whole.
func (r *Redactor) Name(kind Kind, s string) string {
	if r.ours(s) {
		return s
	}
	return r.pseudonym(kind, s)
}

// ours says whether every word of a text may stay.
func (r *Redactor) ours(s string) bool {
	for w := range strings.FieldsSeq(s) {
		if core, _, _ := trim(w); !r.safe(core) {
			return false
		}
	}
	return true
}

// pseudonym is the replacement of a name, new or as before.
func (r *Redactor) pseudonym(kind Kind, s string) string {
	if p, ok := r.known[s]; ok {
		return p
	}
	var p strings.Builder
	if inner := strings.LastIndexByte(s, '/'); inner > 0 && (kind == Op || kind == Tensor) && !strings.ContainsAny(s, " \n\\") {
		for part := range strings.SplitSeq(s[:inner], "/") {
			p.WriteString(r.scope(part) + "/")
		}
	}
	r.count[kind]++
	p.WriteString(string(kind) + "-" + strconv.Itoa(r.count[kind]))
	r.known[s] = p.String()
	return p.String()
}

// scope is the pseudonym of one level of a name.
func (r *Redactor) scope(part string) string {
	key := "\x00" + part // apart from whole names
	if p, ok := r.known[key]; ok {
		return p
	}
	r.count[scope]++
	p := string(scope) + "-" + strconv.Itoa(r.count[scope])
	r.known[key] = p
	return p
}

// tooLong is from how many words on a text that is not all ours is left out
// whole: what is left of a foreign sentence says more than it should.
const tooLong = 4

// LeftOut stands for a text that is left out.
const LeftOut = "(left out)"

// Sized is Foreign for what may begin with a figure of ours, such as "12.50 MiB idle
// of 20.00 MiB, kept by 1 block of 7.50 MiB, step adam.py:113": what stands before
// the first word that is not ours stays, and the rest becomes one pseudonym.
func (r *Redactor) Sized(s string) string {
	number, rest, _ := strings.Cut(s, " ")
	unit, _, _ := strings.Cut(rest, " ")
	if !isNumber(number) || !isUnit(unit) {
		return r.Foreign(s)
	}
	for at := 0; at < len(s); {
		for at < len(s) && isBreak(s[at]) {
			at++
		}
		end := at
		for end < len(s) && !isBreak(s[end]) {
			end++
		}
		if core, _, _ := trim(s[at:end]); core != "" && !r.safe(core) {
			return s[:at] + r.pseudonym(Op, s[at:])
		}
		at = end
	}
	return s
}

// isUnit says whether sizes are told in it.
func isUnit(s string) bool {
	switch s {
	case "B", "bytes", "KiB", "MiB", "GiB", "TiB", "KB", "MB", "GB":
		return true
	}
	return false
}

// Foreign is Text for what may be a sentence of somebody else's.
func (r *Redactor) Foreign(s string) string {
	words, replaced := 0, 0
	for w := range strings.FieldsSeq(s) {
		words++
		if core, _, _ := trim(w); !r.safe(core) {
			replaced++
		}
	}
	if words > tooLong && replaced > 0 {
		return LeftOut
	}
	return r.Text(s)
}

// Text goes through a sentence of ours and replaces every word in it that is
// not: the names that were put into it. Blanks stay as they are.
func (r *Redactor) Text(s string) string {
	if p, ok := r.known[s]; ok {
		return p
	}
	var b strings.Builder
	before := "" // the word before
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && isBreak(s[j]) {
			j++
		}
		b.WriteString(s[i:j])
		i = j
		for j < len(s) && !isBreak(s[j]) {
			j++
		}
		if i == j {
			continue
		}
		core, head, tail := trim(s[i:j])
		b.WriteString(head)
		b.WriteString(r.word(core, before))
		b.WriteString(tail)
		before, i = core, j
	}
	return b.String()
}

// isBreak: what stands between words.
func isBreak(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>', ',', ';', '|':
		return true
	}
	return false
}

// trim parts a word from the punctuation around it.
func trim(w string) (core, head, tail string) {
	i, j := 0, len(w)
	for i < j && strings.IndexByte("\"'`([{<,;", w[i]) >= 0 {
		i++
	}
	for j > i && strings.IndexByte(".:!?,;\"'`)]}>", w[j-1]) >= 0 {
		j--
	}
	return w[i:j], w[:i], w[j:]
}

func (r *Redactor) word(w, before string) string {
	if digits(w) && w != "" && isProcess(before) {
		r.pseudonym(Process, w)
	}
	if p, ok := r.known[w]; ok {
		return p
	}
	if r.safe(w) {
		return w
	}
	return r.pseudonym(kindOf(w), w)
}

func isProcess(word string) bool {
	switch strings.ToLower(word) {
	case "process", "pid":
		return true
	}
	return false
}

// kindOf guesses what a word names, by its looks.
func kindOf(w string) Kind {
	switch {
	case strings.Contains(w, `\`), strings.HasPrefix(w, "/"), strings.HasPrefix(w, "~"), strings.HasPrefix(w, "./"), hasExtension(w):
		return File
	case strings.Contains(w, "@"), strings.Count(w, ".") >= 2:
		return Host
	case strings.Contains(w, "/"):
		return Op
	}
	return Name
}

var extensions = []string{".py", ".cc", ".cpp", ".cu", ".h", ".so", ".go", ".log", ".txt", ".pickle", ".pkl", ".json", ".gz", ".pb", ".yaml", ".tideline", ".csv", ".prof", ".out"}

func hasExtension(w string) bool {
	if i := strings.LastIndexByte(w, ':'); i > 0 && digits(w[i+1:]) {
		w = w[:i]
	}
	for _, e := range extensions {
		if strings.HasSuffix(w, e) {
			return true
		}
	}
	return false
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }
