package alloc_test

import (
	"testing"

	"tideline/shared/alloc"
)

func newSpace(t *testing.T, o alloc.SpaceOptions) *alloc.Space {
	t.Helper()
	s, err := alloc.NewSpace(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpaceWalksInItsOrder(t *testing.T) {
	const base = 0x100000
	for order, want := range map[alloc.Order][]uint64{
		alloc.Up:     {base, base + 0x1400, base + 0x2800},
		alloc.Down:   {base - 0x1000, base - 0x2400, base - 0x3800},
		alloc.Zigzag: {base, base - 0x1000, base + 0x1400},
	} {
		s := newSpace(t, alloc.SpaceOptions{Base: base, Order: order, Gap: 0x400})
		for i, w := range want {
			if got, n, ok := s.Take(64, 0x1000); !ok || n != 0x1000 || got != w {
				t.Errorf("%s, range %d: %x, want %x", order, i, got, w)
			}
		}
		if s.Held() != 0x3000 {
			t.Errorf("%d bytes are held", s.Held())
		}
	}
}

func TestSpaceGranularityAndAlignment(t *testing.T) {
	s := newSpace(t, alloc.SpaceOptions{Base: 0x1100, Granularity: 0x1000})
	if addr, n, ok := s.Take(0x10000, 1); !ok || addr != 0x10000 || n != 0x1000 {
		t.Errorf("got %x, %d bytes", addr, n)
	}
	s = newSpace(t, alloc.SpaceOptions{Base: 0x1100, IgnoreAlignment: true})
	if addr, _, ok := s.Take(0x10000, 1); !ok || addr != 0x1100 {
		t.Errorf("got %x", addr)
	}
}

func TestSpacesShareACard(t *testing.T) {
	card := alloc.NewCard(1000)
	a := newSpace(t, alloc.SpaceOptions{Card: card})
	b := newSpace(t, alloc.SpaceOptions{Card: card, Base: 0x1000})
	addr, _, ok := a.Take(256, 600)
	if !ok {
		t.Fatal("600 of 1000 bytes were refused")
	}
	if _, _, ok := b.Take(256, 600); ok {
		t.Error("1200 of 1000 bytes were given")
	}
	if !card.Hold(300) || card.Hold(101) {
		t.Error("the card's bytes do not add up")
	}
	a.Give(addr, 600)
	a.Give(addr, 600) // not held any more: nothing happens
	if _, _, ok := b.Take(256, 700); !ok || card.Held() != 1000 {
		t.Errorf("700 bytes after the give-back: %v, %d held", ok, card.Held())
	}
}

func TestSpaceReusesItsTop(t *testing.T) {
	s := newSpace(t, alloc.SpaceOptions{Reuse: true})
	a, _, _ := s.Take(256, 512)
	b, _, _ := s.Take(256, 512)
	s.Give(a, 512) // b lies above
	if c, _, _ := s.Take(256, 512); c != b+512 {
		t.Errorf("got %x", c)
	}
	s.Give(b, 1024) // b and c as one
	if c, _, _ := s.Take(256, 512); c != b {
		t.Errorf("got %x, want %x", c, b)
	}
}

func TestSpaceRefusesNonsense(t *testing.T) {
	s := newSpace(t, alloc.SpaceOptions{Base: ^uint64(0) - 1000})
	for _, n := range []int64{0, -1, -1 << 63, 1<<63 - 1, 2000} {
		if _, _, ok := s.Take(256, n); ok {
			t.Errorf("%d bytes were given", n)
		}
	}
	s = newSpace(t, alloc.SpaceOptions{Base: 1000, Order: alloc.Down})
	if _, _, ok := s.Take(256, 2000); ok {
		t.Error("2000 bytes below address 1000 were given")
	}
	for _, o := range []alloc.SpaceOptions{
		{Granularity: -1}, {Alignment: 48}, {Gap: -1}, {Order: 7}, {Reuse: true, Order: alloc.Down},
	} {
		if _, err := alloc.NewSpace(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
