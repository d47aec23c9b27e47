package ranks

import (
	"strings"
	"testing"
)

// FuzzRank: any name has a rank or none, of words and short numbers, and names are
// ordered one way.
func FuzzRank(f *testing.F) {
	for _, name := range []string{"rank_3.pickle", "dp0-tp1", "a/b.0012.log", "local_rank=7", "rank999999", "\xffrank1", ".", "rank0/rank00"} {
		f.Add(name, "rank 2")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		r := Rank(a)
		for w := range strings.FieldsSeq(r) {
			if n := digits(w); n != 0 && n != len(w) || n > 5 || n > 1 && w[0] == '0' {
				t.Errorf("%q: %q", a, r)
			}
		}
		if before(a, b) && before(b, a) || before(a, a) {
			t.Errorf("%q and %q are before each other", a, b)
		}
	})
}
