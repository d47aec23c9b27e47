package record

import (
	"fmt"
	"io"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// Source is a timeline that can be read block by block: a recording, which may
// still grow, or a file that was opened. It is safe for concurrent use.
type Source interface {
	// State is what there is now.
	State() State
	// Frame reads block i whole, into buf if that is long enough.
	Frame(i int, buf []byte) ([]byte, error)
	// Catchup appends to dst blocks with all strings that a reader needs who
	// begins with block i.
	Catchup(dst []byte, i int) ([]byte, error)
	// File is what has been written, for downloading.
	File() *io.SectionReader
	// Close lets go of the file. Readers that are still there get errors.
	Close() error
}

// State is what a Source holds at an instant.
type State struct {
	Blocks   []timeline.Entry // in order; the caller must not change them
	Events   uint64           // sequence number after the last block
	Bytes    int64            // of the file
	Finished bool             // no more will come
	Failure  error            // why the recording stopped early; nil when all is well
	Lost     uint64           // events that were not recorded after the failure
	Changed  <-chan struct{}  // closed when there is more, or when it is finished
}

// Find is the number of the block that holds the event with sequence number
// seq, or of the first one after it.
func (s *State) Find(seq uint64) int {
	lo, hi := 0, len(s.Blocks)
	for lo < hi {
		if mid := (lo + hi) / 2; s.Blocks[mid].Next() <= seq {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	// Blocks of strings only have no events: those just before belong to it.
	for lo > 0 && s.Blocks[lo-1].Events == 0 && s.Blocks[lo-1].First >= seq {
		lo--
	}
	return lo
}

// Opened is a finished timeline.
type Opened struct {
	file   *timeline.File
	blocks []timeline.Entry
	number []int // of each block in the file: index blocks are left out
	at     io.ReaderAt
	size   int64
	close  func() error
}

// Open opens a timeline of size bytes. Close calls closer, which may be nil.
func Open(at io.ReaderAt, size int64, closer func() error) (*Opened, error) {
	f, err := timeline.Open(at, size)
	if err != nil {
		return nil, err
	}
	o := &Opened{file: f, at: at, size: size, close: closer}
	for i, e := range f.Blocks() {
		if e.Kind == block.Events || e.Kind == block.Strings || e.Kind == block.Readings {
			o.blocks = append(o.blocks, e)
			o.number = append(o.number, i)
		}
	}
	return o, nil
}

// Check reads every block and returns what is wrong with the first that is
// not sound. An index alone does not tell.
func (o *Opened) Check() error {
	for _, d := range o.file.Damage() {
		return d
	}
	var buf []byte
	for i := range o.blocks {
		b, err := o.Frame(i, buf)
		if err != nil {
			return err
		}
		buf = b[:cap(b)]
	}
	return nil
}

// State never changes: the file is whole.
func (o *Opened) State() State {
	s := State{Blocks: o.blocks, Bytes: o.size, Finished: true}
	if n := len(o.blocks); n > 0 {
		s.Events = o.blocks[n-1].Next()
	}
	return s
}

// Frame reads block i.
func (o *Opened) Frame(i int, buf []byte) ([]byte, error) {
	if i < 0 || i >= len(o.blocks) {
		return nil, fmt.Errorf("read block %d of a timeline of %d blocks", i, len(o.blocks))
	}
	return o.file.Frame(o.number[i], buf)
}

// Catchup gathers the strings before block i.
func (o *Opened) Catchup(dst []byte, i int) ([]byte, error) {
	if i <= 0 || i > len(o.blocks) {
		return dst, nil
	}
	n, first := len(o.file.Blocks()), o.blocks[i-1].Next()
	if i < len(o.blocks) {
		n, first = o.number[i], o.blocks[i].First
	}
	t, err := o.file.Strings(n)
	if err != nil {
		return dst, fmt.Errorf("gather the strings before block %d: %w", i, err)
	}
	return block.AppendStrings(dst, t, 1, t.Len(), first, 0), nil
}

// File is the whole file as it lies on disk.
func (o *Opened) File() *io.SectionReader { return io.NewSectionReader(o.at, 0, o.size) }

// Close calls what was handed to Open.
func (o *Opened) Close() error {
	if o.close == nil {
		return nil
	}
	return o.close()
}

var _ event.Sink = (*Recording)(nil)
