package lines

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSieveFindsWhatIsThere compares with a plain search, over a small alphabet
// in which marks overlap and end within each other.
func TestSieveFindsWhatIsThere(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abAB \xe2"[r.IntN(6)]
		}
		return string(b)
	}
	for range 300 {
		lists := make([][]string, 1+r.IntN(MaxLists))
		for i := range lists {
			for range r.IntN(5) {
				lists[i] = append(lists[i], word(1+r.IntN(5)))
			}
		}
		s := NewSieve(lists...)
		for range 20 {
			line := word(r.IntN(30))
			want := Set(0)
			for i, list := range lists {
				for _, m := range list {
					if strings.Contains(asciiLower(line), asciiLower(m)) {
						want |= 1 << i
					}
				}
			}
			if got := s.Of(line); got != want {
				t.Fatalf("%q through %q: %b, want %b", line, lists, got, want)
			}
		}
	}
}

func asciiLower(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] = fold(b[i])
	}
	return string(b)
}

func BenchmarkSieve(b *testing.B) {
	s := NewSieve([]string{"out of memory", "allocator ("}, []string{"step ", "mem"})
	line := strings.Repeat("nothing of interest in 2 lines; ", 4)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		s.Of(line)
	}
}
