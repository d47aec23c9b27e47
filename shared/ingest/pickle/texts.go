package pickle

// texts keeps every text once. The bytes lie in chunks, so that a million
// texts are no million objects for the collector.
type texts struct {
	index []uint32 // open addressing; number+1
	hash  []uint32
	ends  []place
	chunk [][]byte
}

type place struct{ chunk, off, n uint32 }

const textChunk = 1 << 16

func hashOf(b []byte) uint32 {
	h := uint64(14695981039346656037) ^ uint64(len(b))
	for len(b) >= 8 {
		h = (h ^ (uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56)) * 0x9E3779B97F4A7C15
		h ^= h >> 29
		b = b[8:]
	}
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 32
	return uint32(h)
}

func (t *texts) at(n uint32) string {
	if int(n) >= len(t.ends) {
		return ""
	}
	p := t.ends[n]
	return string(t.chunk[p.chunk][p.off : p.off+p.n])
}

func (t *texts) bytes(n uint32) []byte {
	p := t.ends[n]
	return t.chunk[p.chunk][p.off : p.off+p.n]
}

// put returns the number of a text and how many bytes it newly costs.
func (t *texts) put(b []byte) (number uint32, cost int) {
	if 4*(len(t.ends)+1) > 3*len(t.index) {
		t.grow()
	}
	h, mask := hashOf(b), uint32(len(t.index)-1)
	at := h & mask
	for ; t.index[at] != 0; at = (at + 1) & mask {
		n := t.index[at] - 1
		if t.hash[n] == h && string(t.bytes(n)) == string(b) {
			return n, 0
		}
	}
	last := len(t.chunk) - 1
	if last < 0 || cap(t.chunk[last])-len(t.chunk[last]) < len(b) {
		t.chunk = append(t.chunk, make([]byte, 0, max(textChunk, len(b))))
		last++
	}
	n := uint32(len(t.ends))
	t.ends = append(t.ends, place{uint32(last), uint32(len(t.chunk[last])), uint32(len(b))})
	t.chunk[last] = append(t.chunk[last], b...)
	t.hash = append(t.hash, h)
	t.index[at] = n + 1
	return n, len(b) + 24
}

func (t *texts) grow() {
	t.index = make([]uint32, max(256, 2*len(t.index)))
	mask := uint32(len(t.index) - 1)
	for n, h := range t.hash {
		at := h & mask
		for t.index[at] != 0 {
			at = (at + 1) & mask
		}
		t.index[at] = uint32(n) + 1
	}
}
