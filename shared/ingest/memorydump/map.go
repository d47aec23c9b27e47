package memorydump

import (
	"errors"
	"fmt"
	"math"

	"tideline/shared/ingest/wire"
)

// Map is a memory map. Sizes are bytes.
type Map struct {
	Allocator string
	Bins      []Bin   // 21 of them, unless the file is cut
	Chunks    []Chunk // by address, none over another
	History   []Point // by count of actions; builds with memory debugging only
	Stats     Stats
	HasStats  bool // they come last: without them the file is cut

	// Rest is what follows the message after a line break: a text that was put
	// behind the file.
	Rest []byte
}

// Bin is one size class, of chunks of 256<<Number bytes and more.
type Bin struct {
	Number       int
	BytesInUse   int64
	Bytes        int64 // in use or free
	InUse, Total int64 // chunks
}

// Chunk is one piece of a region.
type Chunk struct {
	Address   uint64
	Size      int64
	Requested int64 // of a free chunk: by some earlier use
	Bin       int   // -1 while in use
	InUse     bool
	FreedAt   uint64 // stamp of the timing counter, of a free chunk; 0 for none

	// Builds with memory debugging only.
	Op     string
	Step   uint64
	Action uint64 // count of actions when it was taken or freed
}

// Point is how much was in use after an action.
type Point struct {
	Action uint64
	InUse  int64
}

// Stats are the allocator's sums.
type Stats struct {
	Allocs, InUse, Peak, LargestAlloc int64
	Fragmentation                     float32 // NaN when nothing is free
}

// ErrNone says that a message holds nothing of a memory map.
var ErrNone = errors.New("no memory map of a BFC allocator")

// Bounds on what is kept. An allocator has some thousand chunks, and the
// history 4096 points.
const (
	maxChunks = 1 << 20
	maxPoints = 1 << 16
)

// The field numbers of the message and of those in it.
const (
	fileName  = 1
	fileBin   = 2
	fileChunk = 3
	filePoint = 4
	fileStats = 5

	binNumber      = 1
	binBytesInUse  = 2
	binBytes       = 3
	binChunksInUse = 4
	binChunks      = 5

	chunkAddress   = 1
	chunkSize      = 2
	chunkRequested = 3
	chunkBin       = 4
	chunkOp        = 5
	chunkFreedAt   = 6
	chunkAction    = 7
	chunkInUse     = 8
	chunkStep      = 9

	pointAction = 1
	pointInUse  = 2

	statAllocs        = 1
	statInUse         = 2
	statPeak          = 3
	statLargest       = 4
	statFragmentation = 5
)

// Decode reads a map. Of a file that is cut or turns bad it returns what came
// before together with the error, and of what is no map ErrNone without one.
func Decode(b []byte) (*Map, error) {
	if !Is(b[:min(len(b), 4096)]) {
		return nil, ErrNone
	}
	m := &Map{Chunks: make([]Chunk, 0, count(b))}
	r := wire.New(b)
	for {
		if at := r.Offset(); m.HasStats && at < len(b) && b[at] == '\n' {
			m.Rest = b[at+1:]
			return m, nil
		}
		if !r.Next() {
			break
		}
		f := r.Field()
		if f.Type != wire.Bytes {
			continue // none of ours
		}
		if err := m.field(f); err != nil {
			return m, err
		}
	}
	if r.Err() != nil {
		return m, fmt.Errorf("the memory map is cut: %w", r.Err())
	}
	if !m.HasStats {
		return m, errors.New("the memory map is cut: the statistics, which come last, are missing")
	}
	return m, nil
}

// count is how many chunks a file can have: its parts that have room for an
// address and a size.
func count(b []byte) (n int) {
	const least = 4
	r := wire.New(b)
	for r.Next() && n < maxChunks {
		if f := r.Field(); f.Number == fileChunk && len(f.Data) >= least {
			n++
		}
	}
	return n
}

func (m *Map) field(f *wire.Field) error {
	switch f.Number {
	case fileName:
		m.Allocator = f.Text()
	case fileBin:
		b, ok := bin(f.Data)
		if !ok || b.Number != len(m.Bins) {
			return fmt.Errorf("the memory map is damaged: what should be bin %d is none", len(m.Bins))
		}
		m.Bins = append(m.Bins, b)
	case fileChunk:
		return m.chunk(f.Data)
	case filePoint:
		return m.point(f.Data)
	case fileStats:
		return m.stats(f.Data)
	}
	return nil
}

// bin reads a size class; false for what cannot be one.
func bin(b []byte) (out Bin, ok bool) {
	r := wire.New(b)
	last := int32(0)
	for r.Next() {
		f := r.Field()
		if f.Type != wire.Varint || f.Number <= last || f.Int() < 0 {
			return out, false
		}
		last = f.Number
		switch f.Number {
		case binNumber:
			out.Number = int(min(f.N, NumBins))
		case binBytesInUse:
			out.BytesInUse = f.Int()
		case binBytes:
			out.Bytes = f.Int()
		case binChunksInUse:
			out.InUse = f.Int()
		case binChunks:
			out.Total = f.Int()
		}
	}
	return out, r.Err() == nil && out.Number < NumBins && out.InUse <= out.Total && out.BytesInUse <= out.Bytes
}

func (m *Map) chunk(b []byte) error {
	c := Chunk{}
	r := wire.New(b)
	for r.Next() {
		switch f := r.Field(); f.Number {
		case chunkAddress:
			c.Address = f.N
		case chunkSize:
			c.Size = f.Int()
		case chunkRequested:
			c.Requested = f.Int()
		case chunkBin:
			c.Bin = int(int32(f.N)) //nolint:gosec // an int32 is what the field is
		case chunkOp:
			c.Op = f.Text()
		case chunkFreedAt:
			c.FreedAt = f.N
		case chunkAction:
			c.Action = f.N
		case chunkInUse:
			c.InUse = f.N != 0
		case chunkStep:
			c.Step = f.N
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("the memory map is damaged: chunk %d: %w", len(m.Chunks), r.Err())
	}
	end := uint64(0)
	if n := len(m.Chunks); n > 0 {
		end = m.Chunks[n-1].Address + uint64(m.Chunks[n-1].Size)
	}
	switch {
	case len(m.Chunks) == maxChunks:
		return fmt.Errorf("the memory map has more than %d chunks; the rest was not read", maxChunks)
	case c.Size <= 0 || c.Address > math.MaxInt64 || c.Size > math.MaxInt64-int64(c.Address):
		return fmt.Errorf("the memory map is damaged: chunk %d at %x has %d bytes", len(m.Chunks), c.Address, c.Size)
	case c.Address < end:
		return fmt.Errorf("the memory map is damaged: chunk %d at %x lies over the one before, which ends at %x", len(m.Chunks), c.Address, end)
	}
	m.Chunks = append(m.Chunks, c)
	return nil
}

func (m *Map) point(b []byte) error {
	var p Point
	r := wire.New(b)
	for r.Next() {
		switch f := r.Field(); f.Number {
		case pointAction:
			p.Action = f.N
		case pointInUse:
			p.InUse = f.Int()
		}
	}
	if r.Err() != nil || p.InUse < 0 {
		return fmt.Errorf("the memory map is damaged: point %d of the history cannot be read", len(m.History))
	}
	if n := len(m.History); n == maxPoints || n > 0 && p.Action <= m.History[n-1].Action {
		return nil // beyond what a history holds, or told already
	}
	m.History = append(m.History, p)
	return nil
}

func (m *Map) stats(b []byte) error {
	r := wire.New(b)
	for r.Next() {
		switch f := r.Field(); f.Number {
		case statAllocs:
			m.Stats.Allocs = f.Int()
		case statInUse:
			m.Stats.InUse = f.Int()
		case statPeak:
			m.Stats.Peak = f.Int()
		case statLargest:
			m.Stats.LargestAlloc = f.Int()
		case statFragmentation:
			m.Stats.Fragmentation = math.Float32frombits(uint32(f.N)) //nolint:gosec // four bytes are what the field is
		}
	}
	if r.Err() != nil {
		return fmt.Errorf("the memory map is damaged: the statistics: %w", r.Err())
	}
	m.HasStats = true
	return nil
}
