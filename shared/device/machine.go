package device

import (
	"fmt"

	"tideline/shared/alloc"
)

// Locker serialises the runs that share a Machine. It is sync.Locker, named
// here because the core starts no goroutines and needs none of it.
type Locker interface {
	Lock()
	Unlock()
}

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// Machine is the physical cards that runs share, as processes share the cards
// of a computer: a region that one run takes, no other can have.
type Machine struct {
	lock  Locker
	cards []*Card
}

// NewMachine returns a machine without cards; they come into being when a run
// first names them. A nil lock is enough where one run at a time uses it.
func NewMachine(lock Locker) *Machine {
	if lock == nil {
		lock = noLock{}
	}
	return &Machine{lock: lock}
}

// Card is one physical card.
type Card struct {
	Name   string // default PRESET#N
	Preset *Preset
	m      *Machine
	memory *alloc.Card
	real   bool // put in by Add
}

// Add puts a card into the machine that a driver knows, with what others hold
// of it now, the program's own context included. The preset is its description
// and its name the card's: whoever asks for that preset gets this very card.
func (m *Machine) Add(p *Preset, held int64) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, c := range m.cards {
		if c.Name == p.Name {
			return fmt.Errorf("card %s is there already", p.Name)
		}
	}
	if _, ok := Find(p.Name); ok {
		return fmt.Errorf("card %s has the name of a virtual kind of card", p.Name)
	}
	c := &Card{Name: p.Name, Preset: p, m: m, memory: alloc.NewCard(p.Total.Value), real: true}
	if !c.memory.Hold(held) {
		return fmt.Errorf("card %s of %d bytes cannot hold %d", p.Name, p.Total.Value, held)
	}
	m.cards = append(m.cards, c)
	return nil
}

// Find returns the preset of a name: a real card's of this machine, or a kind
// that any machine can have.
func (m *Machine) Find(name string) (*Preset, bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, c := range m.cards {
		if c.real && c.Name == name {
			return c.Preset, true
		}
	}
	return Find(name)
}

// Real lists the presets of the cards that Add put in, in that order.
func (m *Machine) Real() []*Preset {
	m.lock.Lock()
	defer m.lock.Unlock()
	var out []*Preset
	for _, c := range m.cards {
		if c.real {
			out = append(out, c.Preset)
		}
	}
	return out
}

// Card returns the card of that name, making it from the preset when it is
// new. A known name with another preset is an error.
func (m *Machine) Card(name string, p *Preset) (*Card, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, c := range m.cards {
		if c.real && c.Preset == p {
			return c, nil // there is one such card, whatever the workload calls it
		}
		if c.Name != name {
			continue
		}
		if c.Preset.Name != p.Name {
			return nil, fmt.Errorf("card %q is a %s, not a %s: name another card, or use its preset", name, c.Preset.Name, p.Name)
		}
		return c, nil
	}
	c := &Card{Name: name, Preset: p, m: m, memory: alloc.NewCard(p.Total.Value)}
	m.cards = append(m.cards, c)
	return c, nil
}

// Total and Free are the card's bytes as the driver reports them now.
func (c *Card) Total() int64 { return c.memory.Capacity() }

// Free is what is left of Total.
func (c *Card) Free() int64 {
	c.m.lock.Lock()
	defer c.m.lock.Unlock()
	return c.memory.Capacity() - c.memory.Held()
}

// Hold takes bytes off the card for something that no allocator manages, or
// with a negative number gives them back. It reports whether the card had
// them.
func (c *Card) Hold(bytes int64) bool {
	c.m.lock.Lock()
	defer c.m.lock.Unlock()
	return c.memory.Hold(bytes)
}

// Reserve is what the card's rule leaves to the system of so many free bytes.
func (c *Card) Reserve(free int64) int64 {
	if c.Preset.Reserve.Value > 0 {
		return c.Preset.Reserve.Value
	}
	return Reserve(free, c.Preset.Major)
}

// Space is a fresh address space over the card's memory, one per logical
// device of a process, starting at base.
func (c *Card) Space(base uint64) (alloc.SubAllocator, error) {
	s, err := alloc.NewSpace(alloc.SpaceOptions{Base: base, Card: c.memory})
	if err != nil {
		return nil, fmt.Errorf("address space of card %s: %w", c.Name, err)
	}
	return &sharedSpace{s, c.m.lock}, nil
}

// sharedSpace holds the machine's lock while it moves bytes of a card.
type sharedSpace struct {
	*alloc.Space
	lock Locker
}

func (s *sharedSpace) Take(alignment, bytes int64) (addr uint64, received int64, ok bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.Space.Take(alignment, bytes)
}

func (s *sharedSpace) Give(addr uint64, bytes int64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.Space.Give(addr, bytes)
}
