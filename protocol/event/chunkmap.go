package event

import (
	"fmt"
	"strconv"
	"strings"
)

// Chunk is one piece of a region: in use or free.
type Chunk struct {
	Address   uint64
	Size      int64
	Requested int64 // of the present or, for a free chunk, the last use
	InUse     bool
}

// Region is one piece of memory got from the driver, tiled by its chunks.
type Region struct {
	Address uint64
	Size    int64
	Chunks  []Chunk
}

// ChunkMap is everything an allocator holds at an instant, ascending by
// address. It travels inside an OutOfMemory event as text.
type ChunkMap []Region

// Encode writes one line per region ("r ADDR SIZE") followed by one per chunk
// ("u ADDR SIZE REQUESTED" in use, "f ADDR SIZE REQUESTED" free); addresses in
// hexadecimal.
func (m ChunkMap) Encode() string {
	var b []byte
	for _, r := range m {
		b = append(b, 'r', ' ')
		b = strconv.AppendUint(b, r.Address, 16)
		b = append(b, ' ')
		b = strconv.AppendInt(b, r.Size, 10)
		b = append(b, '\n')
		for _, c := range r.Chunks {
			tag := byte('f')
			if c.InUse {
				tag = 'u'
			}
			b = append(b, tag, ' ')
			b = strconv.AppendUint(b, c.Address, 16)
			b = append(b, ' ')
			b = strconv.AppendInt(b, c.Size, 10)
			b = append(b, ' ')
			b = strconv.AppendInt(b, c.Requested, 10)
			b = append(b, '\n')
		}
	}
	return string(b)
}

// ParseChunkMap reads what Encode wrote. An error names the line; the regions
// before it are returned.
func ParseChunkMap(s string) (ChunkMap, error) {
	var m ChunkMap
	for n, line := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
		if line == "" {
			continue
		}
		f := strings.Fields(line)
		bad := fmt.Errorf("chunk map, line %d: %q is neither 'r ADDR SIZE' nor 'u|f ADDR SIZE REQUESTED'", n+1, line)
		if len(f) < 3 {
			return m, bad
		}
		addr, err1 := strconv.ParseUint(f[1], 16, 64)
		size, err2 := strconv.ParseInt(f[2], 10, 64)
		if err1 != nil || err2 != nil {
			return m, bad
		}
		switch {
		case f[0] == "r" && len(f) == 3:
			m = append(m, Region{Address: addr, Size: size})
		case (f[0] == "u" || f[0] == "f") && len(f) == 4 && len(m) > 0:
			req, err := strconv.ParseInt(f[3], 10, 64)
			if err != nil {
				return m, bad
			}
			last := &m[len(m)-1]
			last.Chunks = append(last.Chunks, Chunk{addr, size, req, f[0] == "u"})
		default:
			return m, bad
		}
	}
	return m, nil
}

// Totals sums the map: bytes held, in use, free, and the largest free chunk.
func (m ChunkMap) Totals() (pool, inUse, free, largestFree int64) {
	for _, r := range m {
		pool += r.Size
		for _, c := range r.Chunks {
			if c.InUse {
				inUse += c.Size
				continue
			}
			free += c.Size
			largestFree = max(largestFree, c.Size)
		}
	}
	return pool, inUse, free, largestFree
}
