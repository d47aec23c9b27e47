package bridge

import (
	"bytes"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
)

// A run that is followed is shown whole in every picture, in a window that
// changes seldom; and every picture is the one drawn afresh.
func TestAFollowedRunIsWholeInAWindowThatStays(t *testing.T) {
	var b bytes.Buffer
	table := new(event.Strings)
	w := timeline.NewWriter(&b, timeline.Options{Strings: table, Block: block.Options{Events: 600}})
	synthetic.Generate(synthetic.Options{Events: 60_000, Seed: 1, Dynamic: true}, table, w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	file := b.Bytes()
	s := NewSession()
	s.Ask("reset\t0\trun\tlive")
	var t0, t1 int64
	changes, pictures := 0, 0
	for len(file) > 0 {
		n := min(len(file), 2000)
		if err := s.Feed(Current, file[:n]); err != nil {
			t.Fatal(err)
		}
		file = file[n:]
		sl := s.slots[Current]
		if sl.tl.Events() == 0 {
			continue
		}
		before := len(s.lanes)
		if s.Ask("status"); len(s.lanes) != before {
			place(s)
		}
		was0, was1 := t0, t1
		if t0, t1 = sl.window(); t0 != was0 || t1 != was1 {
			changes++
		}
		first, last := sl.tl.Span()
		if t1 <= last || t0 < first || t1-first > (last-first)*17/16+2 {
			t.Fatalf("a run of [%d,%d] is shown in [%d,%d)", first, last, t0, t1)
		}
		s.Draw(Lanes, 300, 500, 1, t0, t1, 0)
		pictures++
		got := bytes.Clone(s.Pixels(Lanes))
		s.Invalidate(Lanes)
		s.Draw(Lanes, 300, 500, 1, t0, t1, 0)
		if !bytes.Equal(got, s.Pixels(Lanes)) {
			t.Fatalf("picture %d of [%d,%d) is not the one drawn afresh", pictures, t0, t1)
		}
	}
	if changes > pictures*3/4 || pictures < 50 {
		t.Errorf("%d windows in %d pictures", changes, pictures)
	}
}

func TestRoomForMoreIsNotMuch(t *testing.T) {
	for d := int64(0); d < 1<<61; d += 1 + d/7 {
		if n := roomFor(d); n <= d || d > 32 && n-d > d/16 {
			t.Fatalf("%d has room for %d", d, n)
		}
	}
}
