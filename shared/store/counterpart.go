package store

import "strings"

// Seat is the place that an allocator takes in a program: what it is found by in
// another run of it.
type Seat struct {
	Name        string
	Device      string // its name: "/GPU:0"
	Accelerator bool   // the device is one
	Planned     bool   // an arena inside another allocator's memory
}

// Counterparts gives for each of a's seats the index of the one in b that goes
// with it, or -1: the one of the same name, on the same device before any other;
// else, in order, the one in the same role under another name, as when another
// allocator serves the card. Each of b goes with one of a.
func Counterparts(a, b []Seat) []int {
	out := make([]int, len(a))
	match(out, make([]bool, len(b)), a, b)
	return out
}

// match is Counterparts into out; taken is all false.
func match(out []int, taken []bool, a, b []Seat) {
	for i := range out {
		out[i] = -1
	}
	for pass := range 3 {
		for i := range a {
			for j := range b {
				if out[i] < 0 && !taken[j] && fits(pass, &a[i], &b[j]) {
					out[i], taken[j] = j, true
				}
			}
		}
	}
}

func fits(pass int, p, q *Seat) bool {
	switch pass {
	case 0:
		return p.Name == q.Name && p.Planned == q.Planned && p.Device == q.Device
	case 1:
		return p.Name == q.Name && p.Planned == q.Planned
	}
	return sameRole(p, q)
}

// sameRole reports whether both are an arena, pinned host memory, or the memory
// of the same device. A GPU in one run and a TPU in the other are the same when
// their numbers are.
func sameRole(p, q *Seat) bool {
	same := p.Device == q.Device || p.Accelerator && q.Accelerator && numberOf(p.Device) == numberOf(q.Device)
	return same && p.Planned == q.Planned && p.pinned() == q.pinned()
}

// pinned: the pool of pinned host memory lies on the CPU beside its own.
func (p *Seat) pinned() bool { return strings.Contains(p.Name, "host") }

// numberOf is the last part of a device's name: "0" of "/GPU:0".
func numberOf(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// Counterpart is the index in b of the pool that goes with a's pool i, as
// Counterparts has it; -1 for none.
func Counterpart(a *Timeline, i int, b *Timeline) int {
	// It is asked for every frame, so the usual few pools cost no allocation.
	var sa, sb [few]Seat
	var out [few]int
	var taken [few]bool
	if len(a.pools) > few || len(b.pools) > few {
		return Counterparts(a.seats(nil), b.seats(nil))[i]
	}
	match(out[:len(a.pools)], taken[:len(b.pools)], a.seats(sa[:0]), b.seats(sb[:0]))
	return out[i]
}

// few is more pools than programs have, usually.
const few = 16

func (t *Timeline) seats(out []Seat) []Seat {
	for _, p := range t.pools {
		d := t.Device(p.Device)
		out = append(out, Seat{Name: p.Name, Device: d.Name, Accelerator: d.Kind != "" && d.Kind != "cpu", Planned: p.Planned()})
	}
	return out
}
