package torch

import "testing"

func TestTheStepAboveTwelveHundred(t *testing.T) {
	for _, c := range []struct{ n, d, want int64 }{
		{1200, 4, 1280}, {1024, 4, 1024}, {1025, 4, 1280}, {1281, 4, 1536}, {1793, 4, 2048}, {3, 4, 4}, {5, 8, 8}, {7, 2, 8},
	} {
		if got := roundToStep(c.n, c.d); got != c.want {
			t.Errorf("%d in %d steps: %d, want %d", c.n, c.d, got, c.want)
		}
	}
}
