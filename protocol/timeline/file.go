package timeline

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"tideline/protocol/block"
	"tideline/protocol/event"
)

// File gives random access to the blocks of a timeline.
type File struct {
	r       io.ReaderAt
	size    int64
	entries []Entry
	damage  []Damage
	indexed bool
}

// Open reads the index of a timeline of size bytes, or walks over its blocks
// when there is no sound one. Errors are those of NewStream and of r.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	if f.readIndex() {
		f.indexed = true
		return f, nil
	}
	return f, f.scan()
}

// readIndex looks for footer and index, and is content with nothing less than
// both being sound.
func (f *File) readIndex() bool {
	if f.size < HeaderSize+block.HeaderSize+FooterSize {
		return false
	}
	var head [HeaderSize]byte
	if _, err := f.r.ReadAt(head[:], 0); err != nil || string(head[:8]) != fileMagic || checkHeader(head[:]) != nil {
		return false
	}
	var foot [FooterSize]byte
	if n, _ := f.r.ReadAt(foot[:], f.size-FooterSize); n != FooterSize {
		return false
	}
	at, ok := parseFooter(foot[:])
	room := f.size - FooterSize - at
	if !ok || at < HeaderSize || room < block.HeaderSize || room > block.HeaderSize+block.MaxPayload {
		return false
	}
	// The index is as long as the file really is there, so this allocates no
	// more than the file has.
	b := make([]byte, room)
	if n, _ := f.r.ReadAt(b, at); n != len(b) {
		return false
	}
	frame, n, err := block.Next(b)
	if err != nil || n != len(b) {
		return false
	}
	if h, err := block.ParseHeader(frame); err != nil || h.Kind != block.Index || h.Flags&block.Deflated != 0 {
		return false
	}
	f.entries, err = parseIndex(frame[block.HeaderSize:], at)
	return err == nil
}

// scan walks over all blocks.
func (f *File) scan() error {
	s, err := NewStream(io.NewSectionReader(f.r, 0, f.size))
	if err != nil {
		return err
	}
	for {
		_, h, offset, err := s.frame()
		if errors.Is(err, io.EOF) {
			f.damage = s.damage
			return nil
		}
		if err != nil {
			return err
		}
		if h.Kind == block.Events || h.Kind == block.Strings || h.Kind == block.Readings {
			f.entries = enter(f.entries, entryOf(&h, offset))
		}
	}
}

// Indexed reports whether the file has a sound index: its writer finished.
func (f *File) Indexed() bool { return f.indexed }

// Damage lists what a walk over the blocks found; nothing for an indexed file,
// whose blocks are checked when they are read.
func (f *File) Damage() []Damage { return f.damage }

// Blocks are the file's blocks in order. The caller must not change them.
func (f *File) Blocks() []Entry { return f.entries }

// Find returns the number of the block that has the event with sequence number
// seq, or of the first one after it; len(Blocks()) when there is none.
func (f *File) Find(seq uint64) int { return FindSequence(f.entries, seq) }

// FindSequence is Find for the blocks of a Writer.
func FindSequence(blocks []Entry, seq uint64) int {
	return sort.Search(len(blocks), func(i int) bool { return blocks[i].Next() > seq })
}

// FindTime returns the number of the first block that ends at or after t.
func (f *File) FindTime(t int64) int {
	return sort.Search(len(f.entries), func(i int) bool { return f.entries[i].LastTime >= t })
}

// Frame reads block i whole, into buf if that is long enough, and checks it.
func (f *File) Frame(i int, buf []byte) ([]byte, error) {
	e := &f.entries[i]
	if int64(cap(buf)) < e.Size {
		buf = make([]byte, e.Size)
	}
	buf = buf[:e.Size]
	if n, err := f.r.ReadAt(buf, e.Offset); n != len(buf) {
		return nil, fmt.Errorf("reading block %d at offset %d: %w", i, e.Offset, err)
	}
	frame, n, err := block.Next(buf)
	if err != nil {
		return nil, Damage{Block: i, Offset: e.Offset, Bytes: e.Size, Err: err}
	}
	if n != len(buf) {
		return nil, Damage{Block: i, Offset: e.Offset, Bytes: e.Size, Err: fmt.Errorf("%w: %d bytes long, the index says %d", block.ErrCorrupt, n, len(buf))}
	}
	return frame, nil
}

// Strings gathers the strings of all blocks before block i: what a reader who
// begins there needs. Damaged blocks leave empty strings.
func (f *File) Strings(i int) (*event.Strings, error) {
	dec := block.NewDecoder()
	var buf []byte
	for n := range f.entries[:i] {
		if f.entries[n].Strings == 0 {
			continue
		}
		frame, err := f.Frame(n, buf)
		if err == nil {
			buf = frame
			err = dec.DecodeStrings(frame)
		}
		if err != nil {
			dec.AllowStringGap(block.MaxStrings)
			if _, ok := errors.AsType[Damage](err); ok {
				return dec.Strings(), err
			}
		}
	}
	return dec.Strings(), nil
}

// Stream reads the file from its beginning.
func (f *File) Stream() (*Stream, error) {
	return NewStream(io.NewSectionReader(f.r, 0, f.size))
}
