package device

import (
	"strings"
	"testing"
)

// A real card is one card for all who ask for it by its preset, with what
// others hold of it taken off.
func TestRealCards(t *testing.T) {
	m := NewMachine(nil)
	p := &Preset{Name: "cuda:0", Title: "Tesla T4", Major: 7, Minor: 5, Total: Figure{1000, Measured}}
	if _, ok := m.Find("cuda:0"); ok {
		t.Error("found before it was there")
	}
	if err := m.Add(p, 300); err != nil {
		t.Fatal(err)
	}
	if got, ok := m.Find("cuda:0"); !ok || got != p {
		t.Errorf("%v, %v", got, ok)
	}
	if _, ok := m.Find("t4-16g"); !ok {
		t.Error("virtual kinds are gone")
	}
	a, err := m.Card("one", p)
	if err != nil {
		t.Fatal(err)
	}
	b, err := m.Card("two", p)
	if err != nil || a != b || a.Free() != 700 {
		t.Errorf("%p and %p, %d free: %v", a, b, a.Free(), err)
	}
	if cards := m.Real(); len(cards) != 1 || cards[0] != p {
		t.Errorf("%v", cards)
	}
	for _, c := range []struct {
		name string
		held int64
		want string
	}{{"cuda:0", 0, "there already"}, {"t4-16g", 0, "virtual kind"}, {"cuda:1", 2000, "cannot hold"}} {
		q := *p
		q.Name = c.name
		if err := m.Add(&q, c.held); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
