package fit

// Largest is the largest n of [1,most] for which fits says yes, if it says yes
// up to there and no beyond: it doubles from the first guess on, then bisects.
// The answer and the number after it have both been asked, but for most. 0 when
// not even 1 fits. It asks at most about twice the logarithm of most times.
func Largest(guess, most int, fits func(n int) bool) int {
	lo, hi := 0, most+1 // fits(lo), not fits(hi)
	for n := max(1, min(guess, most)); ; {
		if fits(n) {
			lo = n
			if n == most {
				return most
			}
			if hi <= most {
				break
			}
			n = min(2*n, most)
			continue
		}
		hi = n
		if lo > 0 || n == 1 {
			break
		}
		n = max(1, n/2)
	}
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// Smallest is the smallest n of [least,most] for which fits says yes, if it
// does from there on. 0 when not even most fits.
func Smallest(least, most int, fits func(n int) bool) int {
	if most < least || !fits(most) {
		return 0
	}
	lo, hi := least-1, most // not fits(lo) as far as asked, fits(hi)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if fits(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
