package draw

import "testing"

func TestTimeTicksAreRoundAndInside(t *testing.T) {
	for _, c := range []struct {
		t0, t1   int64
		w, every int
		want     []string
	}{
		{0, 1e9, 1000, 200, []string{"0 ms", "200 ms", "400 ms", "600 ms", "800 ms"}},
		{0, 5e9, 1000, 200, []string{"0 s", "1 s", "2 s", "3 s", "4 s"}},
		{1_200_000, 1_201_000, 500, 100, []string{"1.2000 ms", "1.2002 ms", "1.2004 ms", "1.2006 ms", "1.2008 ms"}},
		{0, 200e9, 800, 200, []string{"0 s", "1:00", "2:00", "3:00"}},
		{3600e9, 3601e9, 600, 300, []string{"1:00:00.0", "1:00:00.5"}},
		{-10, 10, 100, 50, []string{"-10 ns", "0 ns"}},
		{5, 5, 100, 50, nil},
	} {
		got := TimeTicks(c.t0, c.t1, c.w, c.every)
		if len(got) != len(c.want) {
			t.Errorf("[%d,%d): got %v, want %v", c.t0, c.t1, got, c.want)
			continue
		}
		for i, k := range got {
			if k.Label != c.want[i] || k.At < c.t0 || k.At >= c.t1 || k.Pixel < 0 || k.Pixel >= c.w {
				t.Errorf("[%d,%d): tick %d is %+v, want %q", c.t0, c.t1, i, k, c.want[i])
			}
		}
	}
}

func TestByteTicksAreRoundInIECUnits(t *testing.T) {
	for _, c := range []struct {
		top      int64
		h, every int
		want     []string
	}{
		{16 << 30, 200, 50, []string{"0 B", "4 GiB", "8 GiB", "12 GiB", "16 GiB"}},
		{3 << 20, 120, 40, []string{"0 B", "1 MiB", "2 MiB", "3 MiB"}},
		{3 << 29, 120, 40, []string{"0 B", "512 MiB", "1 GiB", "1.5 GiB"}},
		{0, 100, 20, nil},
	} {
		got := ByteTicks(c.top, c.h, c.every)
		if len(got) != len(c.want) {
			t.Errorf("%d: got %v, want %v", c.top, got, c.want)
			continue
		}
		for i, k := range got {
			if k.Label != c.want[i] || k.Pixel > c.h {
				t.Errorf("%d: tick %d is %+v, want %q", c.top, i, k, c.want[i])
			}
		}
	}
}

func TestFormatTimePicksTheUnit(t *testing.T) {
	for _, c := range []struct {
		ns, step int64
		want     string
	}{
		{0, 0, "0 ns"},
		{999, 0, "999 ns"},
		{1500, 0, "1.50 µs"},
		{45_600_000, 0, "45.6 ms"},
		{2_345_000_000, 0, "2.35 s"},
		{61e9, 0, "1:01"},
		{3723e9, 0, "1:02:03"},
		{-1500, 0, "-1.50 µs"},
	} {
		if got := FormatTime(c.ns, c.step); got != c.want {
			t.Errorf("FormatTime(%d, %d) = %q, want %q", c.ns, c.step, got, c.want)
		}
	}
}
