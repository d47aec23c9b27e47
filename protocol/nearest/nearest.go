// Package nearest guesses which of the known words a misspelt one meant, for
// complaints that say "did you mean". It stands by itself, as what complains is
// in modules that know no workload: package api's table of fields would come
// with it.
package nearest

import "strings"

// Word returns the known word that a misspelt one most likely meant, or ""
// when none is so near that it would not be a guess: one edit for every three
// letters, or one word begins with or holds the other.
func Word(word string, known []string) string {
	w := strings.ToLower(word)
	best, bestCost := "", (len(w)+1)/3+1
	for _, k := range known {
		l := strings.ToLower(k)
		distance := editDistance(w, l)
		cost := distance
		if len(w) >= 2 && (strings.HasPrefix(l, w) || strings.HasPrefix(w, l)) {
			cost = 0
		} else if len(w) >= 3 && strings.Contains(l, w) {
			cost = min(cost, 1)
		}
		if distance <= 1 { // a slip is nearer than what merely begins alike
			cost -= 3 - distance
		}
		if cost < bestCost {
			best, bestCost = k, cost
		}
	}
	return best
}

// editDistance counts insertions, removals and replacements of bytes. Words
// longer than any name of ours are as far away as they are long, so that a
// huge word costs nothing.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	var rows [2][66]int
	prev, cur := rows[0][:], rows[1][:]
	for j := 0; j <= len(b); j++ {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			change := prev[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			cur[j] = min(change, prev[j]+1, cur[j-1]+1)
		}
		prev, cur = cur, prev
	}
	return prev[len(b)]
}
