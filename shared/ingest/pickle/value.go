package pickle

import "math"

// Value is one value of a pickle: four bits of type, sixty of content. It has
// a meaning only together with the Machine that made it.
type Value uint64

// Kind is what a Value is.
type Kind uint8

// The kinds. Int covers every integer of 64 bits; Big is a longer one.
const (
	None Kind = iota
	Bool
	Int
	wideInt
	Float
	Text
	Bytes
	Big
	List
	Tuple
	Dict
	Set
	Global
	Custom // made by a Sink
	object // a list, dict or set by its identity
)

const (
	kindBits    = 4
	payloadBits = 64 - kindBits
	maxInline   = int64(1)<<(payloadBits-1) - 1
	minInline   = -int64(1) << (payloadBits - 1)
)

func pack(k Kind, n uint64) Value { return Value(n<<kindBits | uint64(k)) }

func (v Value) tag() Kind       { return Kind(v & (1<<kindBits - 1)) }
func (v Value) payload() uint64 { return uint64(v) >> kindBits }
func (v Value) inline() int64   { return int64(v) >> kindBits }

// MakeCustom packs 60 bits of a Sink's own choice.
func MakeCustom(n uint64) Value { return pack(Custom, n) }

// CustomNumber is what MakeCustom packed; ok is false for any other value.
func (v Value) CustomNumber() (n uint64, ok bool) { return v.payload(), v.tag() == Custom }

// TextNumber is the number of a text, the same for equal texts, for At and
// comparisons; ok is false when v is no text.
func (v Value) TextNumber() (n uint32, ok bool) { return uint32(v.payload()), v.tag() == Text }

// span is a run of cells; a list that grew in pieces is a chain of them.
type span struct{ off, n, next uint32 }

type chain struct {
	first, last uint32
	n           int
}

func (m *Machine) integer(n int64) Value {
	if n >= minInline && n <= maxInline {
		return pack(Int, uint64(n))
	}
	m.wide = append(m.wide, n)
	m.charge(8)
	return pack(wideInt, uint64(len(m.wide)-1))
}

func (m *Machine) float(f float64) Value {
	m.wide = append(m.wide, int64(math.Float64bits(f)))
	m.charge(8)
	return pack(Float, uint64(len(m.wide)-1))
}

// resolve replaces a container's identity by what it has become.
func (m *Machine) resolve(v Value) Value {
	if v.tag() == object {
		return m.objects[v.payload()]
	}
	return v
}

// Kind is the value's kind.
func (m *Machine) Kind(v Value) Kind {
	k := m.resolve(v).tag()
	if k == wideInt {
		return Int
	}
	return k
}

// Int is an integer of 64 bits, or a boolean as 0 or 1.
func (m *Machine) Int(v Value) (int64, bool) {
	switch v.tag() {
	case Int:
		return v.inline(), true
	case wideInt:
		return m.wide[v.payload()], true
	case Bool:
		return int64(v.payload()), true
	default:
		return 0, false
	}
}

// Small is an integer of up to 60 bits, as nearly all are; ok is false for any
// other value.
func (v Value) Small() (n int64, ok bool) { return v.inline(), v.tag() == Int }

// Uint is an integer from 0 to 2^64-1, as addresses are.
func (m *Machine) Uint(v Value) (uint64, bool) {
	if v.tag() == Big {
		var n uint64
		s := m.texts.at(uint32(v.payload()))
		for i := range len(s) {
			if s[i] < '0' || s[i] > '9' || n > (math.MaxUint64-9)/10 && !fits(n, s[i]) {
				return 0, false
			}
			n = n*10 + uint64(s[i]-'0')
		}
		return n, len(s) > 0
	}
	n, ok := m.Int(v)
	return uint64(n), ok && n >= 0
}

func fits(n uint64, digit byte) bool {
	return n < math.MaxUint64/10 || n == math.MaxUint64/10 && uint64(digit-'0') <= math.MaxUint64%10
}

// Float is a float, or an integer as one.
func (m *Machine) Float(v Value) (float64, bool) {
	if v.tag() == Float {
		return math.Float64frombits(uint64(m.wide[v.payload()])), true
	}
	n, ok := m.Int(v)
	return float64(n), ok
}

// Text is a text; for Bytes, Big and Global it is the bytes, the digits and
// the dotted name.
func (m *Machine) Text(v Value) (string, bool) {
	switch v.tag() {
	case Text, Bytes, Big, Global:
		return m.texts.at(uint32(v.payload())), true
	default:
		return "", false
	}
}

// TextAt is the text of a number that TextNumber gave.
func (m *Machine) TextAt(n uint32) string { return m.texts.at(n) }

// Texts is how many different texts were met.
func (m *Machine) Texts() int { return len(m.texts.ends) }

// Len is the number of items of a container (pairs, for a dict).
func (m *Machine) Len(v Value) int {
	v = m.resolve(v)
	switch v.tag() {
	case Tuple:
		return int(m.spans[v.payload()].n)
	case List, Set:
		return m.chains[v.payload()].n
	case Dict:
		return m.chains[v.payload()].n / 2
	default:
		return 0
	}
}

// Items visits a container's items in order until visit returns false; for a
// dict keys and values alternate.
func (m *Machine) Items(v Value, visit func(i int, item Value) bool) {
	v = m.resolve(v)
	var s uint32
	i := 0
	switch v.tag() {
	case Tuple:
		s = uint32(v.payload()) + 1
	case List, Set, Dict:
		s = m.chains[v.payload()].first
	default:
		return
	}
	for ; s != 0; s = m.spans[s-1].next {
		at := m.spans[s-1]
		for _, c := range m.cells[at.off : at.off+at.n] {
			if !visit(i, m.resolve(c)) {
				return
			}
			i++
		}
	}
}

// Lookup is the value of a text key of a dict; the last one set counts.
func (m *Machine) Lookup(v Value, key string) (found Value, ok bool) {
	var k Value
	m.Items(v, func(i int, item Value) bool {
		if i%2 == 0 {
			k = item
		} else if s, isText := m.Text(k); isText && k.tag() == Text && s == key {
			found, ok = item, true
		}
		return true
	})
	return found, ok
}
