package device

import "testing"

func TestTilePadding(t *testing.T) {
	for _, c := range []struct {
		extents []int64
		want    int64
	}{
		{[]int64{1024, 1024, 4}, 512 * mib}, // 16 MiB unpadded: factor 32
		{[]int64{1024, 1024, 128}, 512 * mib},
		{[]int64{8, 128}, 4096},
		{[]int64{9, 129}, 4 * 4096},
		{[]int64{1}, 4096},
		{nil, 4096},
		{[]int64{0, 8, 128}, 0},
	} {
		if got := TilePadded(c.extents); got != c.want {
			t.Errorf("%v: %d bytes, want %d", c.extents, got, c.want)
		}
	}
}
