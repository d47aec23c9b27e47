package torch_test

import (
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

func TestSizesAtTheBoundaries(t *testing.T) {
	const kib, mib = int64(1) << 10, int64(1) << 20
	var s torch.Settings
	for _, c := range []struct{ bytes, rounded, segment int64 }{
		{1, 512, 2 * mib},
		{511, 512, 2 * mib},
		{512, 512, 2 * mib},
		{513, 1024, 2 * mib},
		{mib, mib, 2 * mib},
		{mib + 1, mib + 512, 20 * mib},
		{10*mib - 512, 10*mib - 512, 20 * mib},
		{10*mib - 511, 10 * mib, 10 * mib},
		{10 * mib, 10 * mib, 10 * mib},
		{10*mib + 1, 10*mib + 512, 12 * mib},
		{12 * mib, 12 * mib, 12 * mib},
		{1 << 60, 1 << 60, 1 << 60},
	} {
		r := s.Round(c.bytes)
		if g := s.Segment(r); r != c.rounded || g != c.segment {
			t.Errorf("%d bytes: rounded %d in a segment of %d, want %d in %d", c.bytes, r, g, c.rounded, c.segment)
		}
	}
	if s.Round(3*kib) != 3*kib {
		t.Error("without divisions a multiple of 512 stays")
	}
}

func TestLargeSegmentsAreAsLargeAsSet(t *testing.T) {
	s, err := torch.ParseSettings("large_segment_size_mb:12")
	if err != nil {
		t.Fatal(err)
	}
	for r, want := range map[int64]int64{1 << 20: 2 << 20, 1<<20 + 512: 12 << 20, 10<<20 - 512: 12 << 20, 10 << 20: 10 << 20} {
		if g := s.Segment(r); g != want {
			t.Errorf("segment of %d is %d, want %d", r, g, want)
		}
	}
}

func TestRoundingToSteps(t *testing.T) {
	const mib = int64(1) << 20
	for _, c := range []struct{ d, bytes, want int64 }{
		// The example of 1200 is below the least size to which steps apply (512
		// times the divisions), so it is rounded as usual.
		{4, 1200, 1536},
		{4, 512 * 4, 512 * 4},
		{4, 512*4 + 1, 2560},
		{4, 1200 * 1024, 1280 * 1024},
		{4, 1024 * 1024, 1024 * 1024},
		{4, 1025 * 1024, 1280 * 1024},
		{4, 1537 * 1024, 1792 * 1024},
		{4, 1793 * 1024, 2048 * 1024},
		{2, 33 * mib, 48 * mib},
		{2, 49 * mib, 64 * mib},
		{1, 33*mib + 1, 33*mib + 512},
		{0, 33*mib + 1, 33*mib + 512},
		{8, 33 * mib, 36 * mib},
	} {
		var s torch.Settings
		for i := range s.Divisions {
			s.Divisions[i] = c.d
		}
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := s.Round(c.bytes); got != c.want {
			t.Errorf("%d bytes in %d steps: %d, want %d", c.bytes, c.d, got, c.want)
		}
		a := newAllocator(t, alloc.NewCard(0), torch.Options{Settings: s})
		if _, ok := a.AllocateOn(torch.Request{Bytes: c.bytes}); !ok {
			t.Fatal("no memory")
		}
		if got := a.Statistics().AllocatedBytes.All.Current; got < c.want {
			t.Errorf("%d bytes in %d steps: the block has %d", c.bytes, c.d, got)
		}
	}
}

func TestStepsOfAPowerOfTwo(t *testing.T) {
	// 1200 in 4 steps between 1024 and 2048 is 1280, seen where steps apply.
	var s torch.Settings
	s.Divisions[0] = 4
	for shift := 2; shift < 10; shift++ {
		if got, want := s.Round(1200<<shift), int64(1280<<shift); got != want {
			t.Errorf("%d: %d, want %d", 1200<<shift, got, want)
		}
	}
}
