package redact

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed words.txt
var wordList string

// own are Tideline's own words, in lower case with every number as 0.
var own = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.SplitSeq(wordList, "\n") {
		m[w] = true
	}
	return m
})

// Known says whether a word is one of Tideline's own, or a number.
func Known(word string) bool { return New().safe(word) }

// safe says whether a word may stay.
func (r *Redactor) safe(w string) bool {
	if r.keep[w] || isOwn(w) || isNumber(w) || isDevice(w) {
		return true
	}
	if owner, ok := strings.CutSuffix(w, "'s"); ok { // ONNX Runtime's
		return r.safe(owner)
	}
	// A setting such as PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128.
	for _, mark := range []string{"=", ":", "->", "..", "#"} {
		if a, b, ok := strings.Cut(w, mark); ok {
			return r.safe(a) && r.safe(b)
		}
	}
	return false
}

// setting says whether a dotted name of a field is ours in all its parts.
func (r *Redactor) setting(key string) bool {
	for part := range strings.SplitSeq(key, ".") {
		if !digits(part) && !r.safe(part) {
			return false
		}
	}
	return true
}

// isOwn looks a word up: as it is, or in lower case, each number as 0.
func isOwn(w string) bool { return own()[normal(w)] }

// normal is the form in which words are listed.
func normal(w string) string {
	b := make([]byte, 0, len(w))
	for i := range len(w) {
		c := w[i]
		switch {
		case c >= '0' && c <= '9':
			if n := len(b); n > 0 && b[n-1] == '0' {
				continue
			}
			c = '0'
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

var numberUnits = map[string]bool{
	"": true, "b": true, "kib": true, "mib": true, "gib": true, "tib": true, "pib": true, "eib": true, "kb": true, "mb": true, "gb": true, "tb": true,
	"ns": true, "us": true, "µs": true, "ms": true, "s": true, "m": true, "h": true, "%": true, "x": true, "×": true, "k": true, "g": true, "st": true,
	"nd": true, "rd": true, "th": true, "byte": true, "bytes": true,
}

// isNumber: a number with a sign and a unit; a span such as 1m2.5s; an address
// 0x7f00; dimensions such as 3x224x224. No two dots in one, which a host's
// address has.
func isNumber(w string) bool {
	if w == "" || strings.ContainsAny(w, "/\\@_") && !strings.HasPrefix(w, "/") {
		return w == "" || strings.Trim(w, "/_\\") == ""
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(w), "0x"); ok {
		return hex != "" && strings.Trim(hex, "0123456789abcdef") == ""
	}
	if strings.Count(w, ".") > 1 && strings.IndexFunc(w, letter) < 0 {
		return strings.Trim(w, ".") == ""
	}
	rest, found := w, false
	for rest != "" {
		rest = strings.TrimLeft(rest, "+-−–±~≈<>.")
		i := 0
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '.') {
			i++
		}
		if i == 0 {
			// Signs alone, or what is drawn: bars, arrows, dots.
			return !found && strings.IndexFunc(rest, letter) < 0 || rest == "" && found
		}
		found, rest = true, rest[i:]
		i = strings.IndexAny(rest, "0123456789+-")
		if i < 0 {
			i = len(rest)
		}
		if !numberUnits[strings.ToLower(strings.Trim(rest[:i], "."))] {
			return false
		}
		rest = rest[i:]
	}
	return found || w != "" && strings.IndexFunc(w, letter) < 0
}

func letter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c > 0x7f && !strings.ContainsRune("█▒·▔…–−×±≈µ°→←↑↓“”‘’", c)
}

var jobs = map[string]bool{"localhost": true, "worker": true, "ps": true, "chief": true}

// isDevice: a device's name as TensorFlow, JAX and PyTorch write it.
func isDevice(w string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(w, "/"), "/") {
		kind, n, numbered := strings.Cut(part, ":")
		if kind == "device" {
			kind, n, numbered = strings.Cut(n, ":")
		}
		switch kind {
		case "job":
			if !jobs[n] {
				return false
			}
			continue
		case "replica", "task":
		default:
			switch strings.ToUpper(kind) {
			case "CPU", "GPU", "TPU", "XLA_GPU", "XLA_CPU", "CUDA", "HOST":
			default:
				return false
			}
		}
		if numbered && !digits(n) && n != "*" {
			return false
		}
	}
	return w != ""
}
