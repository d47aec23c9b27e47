package pprof

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"tideline/shared/ingest/unzip"
	"tideline/shared/ingest/wire"
)

// ValueType is what one of a sample's values is.
type ValueType struct{ Type, Unit string }

// Label is a mark on a sample: text or a number.
type Label struct {
	Key, Text string
	Number    int64
	Unit      string
}

// Sample is what one stack holds.
type Sample struct {
	Values []int64
	Labels []Label  // shared by the samples that have the same
	stack  []uint32 // numbers of locations, the innermost first
}

// Label is the text of a label, or "".
func (s *Sample) Label(key string) string {
	for _, l := range s.Labels {
		if l.Key == key {
			return l.Text
		}
	}
	return ""
}

// Frame is one line of a stack.
type Frame struct {
	Function, File string
	Line           int64
}

type location struct {
	lines []line
	told  bool // else samples only name it
}

type line struct {
	function uint64
	number   int64
}

type function struct{ name, file int64 }

// Profile is a file's content.
type Profile struct {
	Zipped    bool
	Types     []ValueType
	Samples   []Sample
	Functions int
	Locations int
	Strings   int
	Time      int64 // nanoseconds since 1970; 0 where the file has none
	Comments  []string

	strings   []string
	locations []location        // in the order in which they are first named
	numbers   map[uint64]uint32 // of locations, by id
	functions map[uint64]function

	// What the samples have lies together, in pieces: a profile has hundreds
	// of thousands.
	values piece[int64]
	stacks piece[uint32]
	labels map[string][]Label // by their bytes in the file
	raw    []byte             // of the labels of a sample
}

// piece is memory from which short slices are cut.
type piece[T any] struct {
	free    []T
	scratch []T // what the next slice is to hold
}

const pieceLen = 4096

// cut moves the scratch into a slice of its own.
func (p *piece[T]) cut() []T {
	n := len(p.scratch)
	if n == 0 {
		return nil
	}
	if n > len(p.free) {
		p.free = make([]T, max(pieceLen, n))
	}
	out := p.free[:n:n]
	p.free = p.free[n:]
	copy(out, p.scratch)
	p.scratch = p.scratch[:0]
	return out
}

// ErrNoProfile is wrapped when the file is something else.
var ErrNoProfile = errors.New("it is no pprof profile")

// Is says whether a file with that beginning, unpacked, may be a profile: its
// fields are those of one, in any order, as writers differ in it.
func Is(head []byte) bool {
	const enough = 3
	r, seen := wire.New(head), 0
	for ; r.Next(); seen++ {
		switch f := r.Field(); f.Number {
		case 1, 2, 3, 4, 5, 6, 11:
			if f.Type != wire.Bytes {
				return false
			}
		case 7, 8, 9, 10, 12, 14, 15:
			if f.Type != wire.Varint {
				return false
			}
		case 13: // comments, packed or not
		default:
			return false
		}
	}
	return seen >= enough
}

// Read reads a profile of at most limit bytes unpacked; 0 means the default of
// package unzip.
func Read(r io.Reader, limit int64) (*Profile, error) {
	data, zipped, err := unzip.All(r, limit)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	p, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	p.Zipped = zipped
	return p, nil
}

// Decode is Read for an unpacked file in memory.
func Decode(data []byte) (*Profile, error) {
	p := &Profile{numbers: map[uint64]uint32{}, functions: map[uint64]function{}, labels: map[string][]Label{}}
	// The string table stands behind what refers to it.
	r, samples := wire.New(data), 0
	for r.Next() {
		switch f := r.Field(); {
		case f.Type != wire.Bytes:
		case f.Number == 6:
			p.strings = append(p.strings, f.Text())
		case f.Number == 2:
			samples++
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(p.strings) == 0 || p.strings[0] != "" {
		return nil, fmt.Errorf("%w: it has no string table that begins with the empty string", ErrNoProfile)
	}
	p.Strings = len(p.strings)
	p.Samples = make([]Sample, 0, samples) // each of them was there, in at least two bytes
	for r = wire.New(data); r.Next(); {
		if err := p.field(r.Field()); err != nil {
			return nil, err
		}
	}
	if len(p.Types) == 0 {
		return nil, fmt.Errorf("%w: it names no sample type", ErrNoProfile)
	}
	for i := range p.Samples {
		if len(p.Samples[i].Values) != len(p.Types) {
			return nil, fmt.Errorf("%w: sample %d has %d values of %d types", ErrNoProfile, i, len(p.Samples[i].Values), len(p.Types))
		}
	}
	p.Functions, p.Locations = len(p.functions), 0
	for i := range p.locations {
		if p.locations[i].told {
			p.Locations++
		}
	}
	p.values, p.stacks, p.labels, p.raw, p.numbers = piece[int64]{}, piece[uint32]{}, nil, nil, nil
	return p, nil
}

func (p *Profile) text(n int64) string {
	if n < 0 || n >= int64(len(p.strings)) {
		return ""
	}
	return p.strings[n]
}

func (p *Profile) field(f *wire.Field) error {
	switch {
	case f.Number == 9 && f.Type == wire.Varint:
		p.Time = f.Int()
	case f.Number == 13:
		return f.Numbers(func(n uint64) { p.Comments = append(p.Comments, p.text(int64(n))) })
	case f.Type != wire.Bytes:
	case f.Number == 1:
		var v ValueType
		err := each(f.Data, func(g *wire.Field) error {
			switch g.Number {
			case 1:
				v.Type = p.text(g.Int())
			case 2:
				v.Unit = p.text(g.Int())
			}
			return nil
		})
		p.Types = append(p.Types, v)
		return err
	case f.Number == 2:
		return p.sample(f.Data)
	case f.Number == 4:
		return p.location(f.Data)
	case f.Number == 5:
		return p.function(f.Data)
	}
	return nil
}

func each(b []byte, visit func(f *wire.Field) error) error {
	r := wire.New(b)
	for r.Next() {
		if err := visit(r.Field()); err != nil {
			return err
		}
	}
	return r.Err()
}

func (p *Profile) sample(b []byte) error {
	p.values.scratch, p.stacks.scratch, p.raw = p.values.scratch[:0], p.stacks.scratch[:0], p.raw[:0]
	r := wire.New(b)
	for r.Next() {
		f := r.Field()
		var err error
		switch f.Number {
		case 1:
			err = f.Numbers(func(n uint64) { p.stacks.scratch = append(p.stacks.scratch, p.number(n)) })
		case 2:
			err = f.Numbers(func(n uint64) { p.values.scratch = append(p.values.scratch, int64(n)) })
		case 3:
			p.raw = binary.AppendUvarint(p.raw, uint64(len(f.Data)))
			p.raw = append(p.raw, f.Data...)
		}
		if err != nil {
			return err
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	labels, err := p.labelsOf()
	p.Samples = append(p.Samples, Sample{Values: p.values.cut(), Labels: labels, stack: p.stacks.cut()})
	return err
}

// number is the number of a location, which may be told of later.
func (p *Profile) number(id uint64) uint32 {
	n, ok := p.numbers[id]
	if !ok {
		n = uint32(len(p.locations))
		p.locations = append(p.locations, location{})
		p.numbers[id] = n
	}
	return n
}

// labelsOf are the labels whose bytes were put into raw, each after its length.
func (p *Profile) labelsOf() ([]Label, error) {
	if len(p.raw) == 0 {
		return nil, nil
	}
	if l, ok := p.labels[string(p.raw)]; ok {
		return l, nil
	}
	var list []Label
	for b := p.raw; len(b) > 0; {
		n, width := binary.Uvarint(b)
		var l Label
		r := wire.New(b[width:][:n])
		for r.Next() {
			switch g := r.Field(); g.Number {
			case 1:
				l.Key = p.text(g.Int())
			case 2:
				l.Text = p.text(g.Int())
			case 3:
				l.Number = g.Int()
			case 4:
				l.Unit = p.text(g.Int())
			}
		}
		if err := r.Err(); err != nil {
			return nil, err
		}
		list = append(list, l)
		b = b[width+int(n):]
	}
	p.labels[string(p.raw)] = list
	return list, nil
}

func (p *Profile) location(b []byte) error {
	var id uint64
	var l location
	err := each(b, func(f *wire.Field) error {
		switch f.Number {
		case 1:
			id = f.N
		case 4:
			var n line
			err := each(f.Data, func(g *wire.Field) error {
				switch g.Number {
				case 1:
					n.function = g.N
				case 2:
					n.number = g.Int()
				}
				return nil
			})
			l.lines = append(l.lines, n)
			return err
		}
		return nil
	})
	l.told = true
	p.locations[p.number(id)] = l
	return err
}

func (p *Profile) function(b []byte) error {
	var id uint64
	var fn function
	err := each(b, func(f *wire.Field) error {
		switch f.Number {
		case 1:
			id = f.N
		case 2:
			fn.name = f.Int()
		case 4:
			fn.file = f.Int()
		}
		return nil
	})
	p.functions[id] = fn
	return err
}

// Stack visits a sample's frames, the innermost first.
func (p *Profile) Stack(s *Sample, visit func(f Frame)) {
	for _, n := range s.stack {
		for _, l := range p.locations[n].lines {
			fn := p.functions[l.function]
			visit(Frame{p.text(fn.name), p.text(fn.file), l.number})
		}
	}
}

// Leaf is the innermost function of a sample, or "".
func (p *Profile) Leaf(s *Sample) string {
	for _, n := range s.stack {
		if l := p.locations[n].lines; len(l) > 0 {
			return p.text(p.functions[l[0].function].name)
		}
	}
	return ""
}

// column is the index of the value with a unit, or -1. Of several in bytes the
// one that is in use now counts, as in Go's heap profiles.
func (p *Profile) column(unit string) int {
	at := -1
	for i, t := range p.Types {
		if t.Unit == unit && (at < 0 || t.Type == "inuse_space" || t.Type == "inuse_objects") {
			at = i
		}
	}
	return at
}
