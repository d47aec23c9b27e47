package pickle

import "encoding/binary"

// patternKeys is how many keys a pattern has at most. A dict of them, each
// opcode as long as it can be, is shorter than ahead.
const patternKeys = 16

// pattern is the keys of the last dict by the bytes that fetch them from the
// memo. A file of a million events has a million dicts that differ in nothing
// but their values, so a dict with the same keys is read in one go, without a
// look at what the keys say.
type pattern struct {
	number int // of the keys in their order; other keys have another
	n      int // keys; 0 means no pattern
	keys   [patternKeys]fetch
	items  [2 * patternKeys]Value // the keys in their places
}

// fetch is BINGET or LONG_BINGET with its argument, as it lies in the file.
type fetch struct {
	bits, mask uint64
	width      int
}

// fetchAt is the fetch that a file's next eight bytes begin with.
func fetchAt(b []byte) (f fetch, memo uint32, ok bool) {
	f.bits = binary.LittleEndian.Uint64(b)
	switch b[0] {
	case opBinGet:
		f.width, f.mask = 2, 1<<16-1
	case opLongBinGet:
		f.width, f.mask = 5, 1<<40-1
	default:
		return f, 0, false
	}
	f.bits &= f.mask
	return f, uint32(f.bits >> 8), true
}

// opening is how long EMPTY_DICT, the opcode that memoizes it as the next
// entry, and MARK are; 0 means that something else is there.
func (m *Machine) opening(b []byte) int {
	width := 1
	switch b[1] {
	case opMemoize:
		if len(m.far) != 0 {
			return 0
		}
	case opBinPut:
		if int(b[2]) != len(m.memo) {
			return 0
		}
		width = 2
	case opLongBinPut:
		if uint64(binary.LittleEndian.Uint32(b[2:])) != uint64(len(m.memo)) {
			return 0
		}
		width = 5
	default:
		return 0
	}
	if b[0] != opEmptyDict || b[1+width] != opMark {
		return 0
	}
	return width + 2
}

// simple is the value that the opcode at b pushes, and how long that is; 0
// for opcodes that do more than push one, or might fail.
func (m *Machine) simple(b []byte) (v Value, width int) {
	b = b[:16]
	var n uint32
	switch b[0] {
	case opBinInt1:
		return pack(Int, uint64(b[1])), 2
	case opBinGet:
		n, width = uint32(b[1]), 2
	case opLongBinGet:
		n, width = binary.LittleEndian.Uint32(b[1:]), 5
	case opLong1:
		size := uint(b[1])
		shift := (64 - 8*size) & 63
		x := int64(binary.LittleEndian.Uint64(b[2:])<<shift) >> shift
		if size-1 >= 8 || x < minInline || x > maxInline {
			return 0, 0
		}
		return pack(Int, uint64(x)), 2 + int(size)
	case opBinInt:
		return pack(Int, uint64(int64(int32(binary.LittleEndian.Uint32(b[1:]))))), 5
	case opBinInt2:
		return pack(Int, uint64(binary.LittleEndian.Uint16(b[1:]))), 3
	case opNone:
		return pack(None, 0), 1
	case opNewTrue:
		return pack(Bool, 1), 1
	case opNewFalse:
		return pack(Bool, 0), 1
	default:
		return 0, 0
	}
	if uint64(n) >= uint64(len(m.memo)) {
		return 0, 0
	}
	switch v = m.memo[n]; v.tag() {
	case Global:
		return 0, 0
	case object:
		if v == hole {
			return 0, 0
		}
		if r := m.objects[v.payload()]; r.tag() == Custom {
			v = r
		}
	default:
	}
	return v, width
}

// repeat reads a dict with the keys of the last one, from its EMPTY_DICT, with
// which b begins, to its SETITEMS. It returns the dict and how many bytes it
// is; 0 means that it is another dict, of which nothing was done.
func (m *Machine) repeat(b []byte) (dict Value, size int) {
	p := &m.pattern
	b = b[:ahead]
	at := m.opening(b)
	if at == 0 {
		return 0, 0
	}
	for i := range p.keys[:p.n] {
		k := &p.keys[i]
		if binary.LittleEndian.Uint64(b[at:])&k.mask != k.bits {
			return 0, 0
		}
		at += k.width
		if b[at] == opBinInt1 { // the shortest of simple's, without a call
			p.items[2*i+1] = pack(Int, uint64(b[at+1]))
			at += 2
			continue
		}
		v, width := m.simple(b[at:])
		if width == 0 {
			return 0, 0
		}
		p.items[2*i+1] = v
		at += width
	}
	if b[at] != opSetItems {
		return 0, 0
	}
	m.layout = p.number
	dict = m.filled(pack(Dict, 0), p.items[:2*p.n])
	m.layout = 0
	m.charge(2 * 8) // the memo's entry, and the mark
	if dict.tag() != Custom {
		// It may grow, wherever it is referred to. What a Sink took may not.
		m.objects = append(room(m.objects), dict)
		dict = pack(object, uint64(len(m.objects)-1))
		m.charge(8)
	}
	m.memo = append(room(m.memo), dict)
	return dict, at + 1
}

// learn makes the dict that the first size bytes of b are, from its EMPTY_DICT
// to its SETITEMS, the pattern, if all its keys are texts from the memo and all
// its values simple. More than ahead bytes are there.
func (m *Machine) learn(b []byte, size int) {
	p := pattern{number: m.pattern.number + 1}
	at := 2
	switch b[1] {
	case opMemoize:
	case opBinPut:
		at = 3
	case opLongBinPut:
		at = 6
	default:
		return
	}
	for at++; b[at] != opSetItems; p.n++ { // MARK is passed over
		f, memo, ok := fetchAt(b[at:])
		if !ok || p.n == patternKeys || uint64(memo) >= uint64(len(m.memo)) || m.memo[memo].tag() != Text {
			return
		}
		_, width := m.simple(b[at+f.width:])
		if width == 0 {
			return
		}
		p.keys[p.n], p.items[2*p.n] = f, m.memo[memo]
		at += f.width + width
	}
	if at != size-1 || p.n == 0 || p.n == m.pattern.n && p.keys == m.pattern.keys {
		return
	}
	m.pattern = p
}

// Layout is a number that dicts share which have the same keys in the same
// order: for a Sink's Dict, while it is called. 0 means that it is not known.
func (m *Machine) Layout() int { return m.layout }
