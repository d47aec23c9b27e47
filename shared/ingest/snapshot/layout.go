package snapshot

import "tideline/shared/ingest/pickle"

// rowType is what a dict describes, by its keys.
type rowType uint8

const (
	otherType rowType = iota
	eventType
	frameType
	blockType
	segmentType
	pastType
)

// layout is where the values of a dict lie: dicts of the same keys, of which a
// file has millions in a row, share it.
type layout struct {
	number int              // pickle.Machine's; 0 means that there is none
	place  [keySlots]uint32 // of a key's value among the items, +1; 0 where the dict lacks the key
	what   rowType
	sized  bool // says how much was requested
}

func (l *layout) learn(number int, m *pickle.Machine, c *codes, items []pickle.Value) {
	*l = layout{number: number}
	for i := 0; i+1 < len(items); i += 2 {
		l.place[c.key(m, items[i])&(keySlots-1)] = uint32(i) + 2
	}
	in := func(c key) bool { return l.place[c] != 0 }
	switch {
	case in(kAction):
		l.what = eventType
	case in(kFile) && in(kName):
		l.what = frameType
	case in(kState) && in(kSize):
		l.what = blockType
	case in(kTotal):
		l.what = segmentType
	case in(kRealSize):
		l.what = pastType
	}
	l.sized = in(kRequested)
}

// value is a key's value; None, which every column takes for nothing, where
// the dict lacks it.
func (k *sink) value(c key) pickle.Value {
	if i := k.layout.place[c] - 1; i < uint32(len(k.items)) {
		return k.items[i]
	}
	return 0
}

// number is a key's integer; 0 where it has none.
func (k *sink) number(m *pickle.Machine, c key) int64 {
	v := k.value(c)
	if n, ok := v.Small(); ok {
		return n
	}
	n, _ := m.Int(v)
	return n
}

// address is a key's integer from 0 to 2^64-1; 0 where it has none.
func (k *sink) address(m *pickle.Machine, c key) uint64 {
	v := k.value(c)
	if n, ok := v.Small(); ok && n >= 0 {
		return uint64(n)
	}
	n, _ := m.Uint(v)
	return n
}
