package ranks

import "strings"

// words are those that a number in a file's name may count: a rank, or a place
// in one of the dimensions that a program is spread over.
var words = [...]string{"local_rank", "local-rank", "localrank", "rank", "worker", "process", "proc", "node", "host", "device", "gpu", "fsdp", "dp", "tp", "pp", "ep", "cp", "sp"}

// Rank is which part of a program a file's name says that it is of: "rank 3",
// "dp 0 tp 1"; "" where it does not say. Folders count, the innermost last.
func Rank(name string) string {
	var out []string
	low := strings.ToLower(name)
	for at := 0; at < len(low); {
		w, n, end := label(low, at)
		switch {
		case end == 0:
			at++
			continue
		case w == "rank":
			out = []string{"rank " + n} // says it all
			for at = end; at < len(low); at++ {
				if w, n, end := label(low, at); end > 0 && w == "rank" { // the innermost
					out[0] = "rank " + n
				}
			}
		default:
			out = append(out, w+" "+n)
		}
		at = end
	}
	if len(out) == 0 {
		if n := tail(low); n != "" {
			return "rank " + n
		}
	}
	return strings.Join(out, " ")
}

// label reads a word with its number that begins at a place: rank3, rank_3,
// rank-3, rank 3, rank=3; end is 0 for none.
func label(s string, at int) (word, number string, end int) {
	if at > 0 && letter(s[at-1]) {
		return "", "", 0
	}
	for _, w := range words {
		if !strings.HasPrefix(s[at:], w) {
			continue
		}
		i := at + len(w)
		if i < len(s) && strings.IndexByte("_- =.", s[i]) >= 0 {
			i++
		}
		n := digits(s[i:])
		if n == 0 || n > 5 {
			continue
		}
		switch w {
		case "localrank", "local-rank":
			w = "local_rank"
		case "proc":
			w = "process"
		}
		return strings.ReplaceAll(w, "_", " "), trimmed(s[i : i+n]), i + n
	}
	return "", "", 0
}

// tail is a number that a name without its endings ends with, after a dot, an
// underscore or a hyphen, or that is all of it: snapshot_3.pickle, run.3.log,
// 3.pickle.
func tail(s string) string {
	s = s[strings.LastIndexAny(s, `/\`)+1:]
	for range 3 {
		i := len(s)
		for i > 0 && s[i-1] >= '0' && s[i-1] <= '9' {
			i--
		}
		if n := len(s) - i; n > 0 && n <= 4 && (i == 0 || strings.IndexByte("._-", s[i-1]) >= 0) {
			return trimmed(s[i:])
		}
		dot := strings.LastIndexByte(s, '.')
		if dot < 0 {
			break
		}
		s = s[:dot]
	}
	return ""
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' }

func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// trimmed is a number without the zeros that it is filled up with.
func trimmed(s string) string {
	if t := strings.TrimLeft(s, "0"); t != "" {
		return t
	}
	return "0"
}

// before orders names as people count: runs of digits by their number.
func before(a, b string) bool {
	for a != "" && b != "" {
		m, n := digits(a), digits(b)
		if m > 0 && n > 0 {
			x, y := trimmed(a[:m]), trimmed(b[:n])
			if x != y {
				return len(x) < len(y) || len(x) == len(y) && x < y
			}
			a, b = a[m:], b[n:]
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}
