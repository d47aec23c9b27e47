package fit

import (
	"math/rand/v2"
	"testing"
)

func TestLargestIsFoundFromAnyGuess(t *testing.T) {
	for _, most := range []int{1, 2, 7, 100} {
		for want := 0; want <= most; want++ {
			for _, guess := range []int{0, 1, 3, want, most, 5 * most} {
				asked := map[int]bool{}
				got := Largest(guess, most, func(n int) bool {
					if n < 1 || n > most || asked[n] {
						t.Fatalf("asked for %d of %d, before: %v", n, most, asked[n])
					}
					asked[n] = true
					return n <= want
				})
				if got != want {
					t.Errorf("guess %d, most %d: %d, want %d", guess, most, got, want)
				}
				if got > 0 && !asked[got] || got < most && !asked[got+1] {
					t.Errorf("guess %d, most %d: answer %d without asking for it and its neighbour: %v", guess, most, got, asked)
				}
			}
		}
	}
}

func TestSmallestIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		least := 1 + r.IntN(50)
		most := least + r.IntN(1000)
		want := least + r.IntN(most-least+1)
		count := 0
		if got := Smallest(least, most, func(n int) bool { count++; return n >= want }); got != want {
			t.Errorf("[%d,%d]: %d, want %d", least, most, got, want)
		}
		if count > 13 {
			t.Errorf("[%d,%d]: asked %d times", least, most, count)
		}
	}
	if got := Smallest(1, 10, func(int) bool { return false }); got != 0 {
		t.Errorf("nothing fits: %d", got)
	}
	if got := Smallest(5, 4, func(int) bool { return true }); got != 0 {
		t.Errorf("no range: %d", got)
	}
}
