package block

import (
	"compress/flate"
	"encoding/binary"

	"tideline/protocol/event"
)

// Options of an Encoder. The zero value is ready to use.
type Options struct {
	// First is the sequence number of the first event.
	First uint64
	// Events is after how many events a block is full; 0 and anything above
	// MaxEvents mean MaxEvents.
	Events int
	// Bytes is at about how many payload bytes a block is full, before
	// deflation; 0 means 512 KiB.
	Bytes int
	// Deflate compresses payloads where that makes them shorter: for files and
	// slow links, not for loopback.
	Deflate bool
	// Level is the DEFLATE level from 1 (fast) to 9 (small); 0 means 1.
	Level int
	// StringsSent is how many ids of the table the reader has already; 0 and 1
	// both mean none.
	StringsSent int
}

// Encoder turns events into blocks. It keeps about 5 MB of address space,
// touched only as far as blocks are full, and allocates nothing per event. It
// is not safe for concurrent use; neither is its string table.
type Encoder struct {
	strings *event.Strings
	opts    Options
	deflate deflater
	raw     []byte // the payload being put together
	full    []byte // blocks that a caller who ignores Append left behind

	first     uint64
	count     int
	firstTime int64
	sent      int

	col    [numColumns]column
	heads  []headKey
	lookup [headSlots]headSlot
	p      predictor
	live   liveTable
}

// column is a byte buffer that is as long as a block can make it.
type column struct {
	b []byte
	n int
}

// put appends v as a varint: seven bits a byte, lowest first. The common case
// is small enough to be inlined.
func (c *column) put(v uint64) {
	if v < 0x80 {
		c.b[c.n] = byte(v)
		c.n++
		return
	}
	c.putLong(v)
}

func (c *column) putLong(v uint64) {
	b, n := c.b, c.n
	for v >= 0x80 {
		b[n] = byte(v) | 0x80
		v >>= 7
		n++
	}
	b[n] = byte(v)
	c.n = n + 1
}

// headKey is a head in two words, quick to compare.
type headKey struct {
	a uint64 // kind, category, stream, cause, flags, model, coding (16 bits)
	b uint64 // device, peer, allocator (16 bits each)
}

const (
	headBits  = 10
	headSlots = 1 << headBits
)

type headSlot struct {
	key headKey
	row int32 // one more than the row; 0 when empty
}

// NewEncoder makes an encoder of events whose strings are in the table, which
// the caller goes on filling.
func NewEncoder(strings *event.Strings, opts Options) *Encoder {
	if opts.Events <= 0 || opts.Events > MaxEvents {
		opts.Events = MaxEvents
	}
	if opts.Bytes <= 0 {
		opts.Bytes = 512 << 10
	}
	if opts.Level <= 0 {
		opts.Level = flate.BestSpeed
	}
	e := &Encoder{strings: strings, opts: opts, first: opts.First, sent: max(1, opts.StringsSent)}
	for i, w := range width {
		e.col[i].b = make([]byte, w*opts.Events+1) // Append may touch one byte more of times
	}
	e.heads = make([]headKey, 0, 256)
	e.live.ring = make([]liveBlock, opts.Events)
	e.live.base = 1 // above the empty slots
	e.p.reset()
	return e
}

// Len is the number of events appended since the last Flush.
func (e *Encoder) Len() int { return e.count }

// Size is about how many payload bytes they take before deflation.
func (e *Encoder) Size() int {
	n := 12 * len(e.heads)
	for i := range e.col {
		n += e.col[i].n
	}
	return n
}

// sizeEvery says after how many events, less one, Append looks at Size.
const sizeEvery = 1<<9 - 1

// Next is the sequence number that the next event will get.
func (e *Encoder) Next() uint64 { return e.first + uint64(e.count) }

// Skip leaves out n sequence numbers, for events that were lost before they
// could be appended. It closes the block begun.
func (e *Encoder) Skip(n uint64) {
	if e.count > 0 {
		e.full = e.seal(e.full)
	}
	e.first += n
}

// Append adds an event and reports whether the block is full: time to Flush.
// A caller who goes on appending loses nothing, the blocks pile up in memory.
func (e *Encoder) Append(ev *event.Event) (full bool) {
	if e.count == e.opts.Events {
		e.full = e.seal(e.full)
	}
	if e.count == 0 {
		e.firstTime = ev.Time
		e.p.time = ev.Time
	}
	// What nearly all events need is done in this one function, for calls cost
	// more than the work, above all in WebAssembly.
	p := &e.p
	var coding uint16
	if d := ev.Time - p.time; d != 0 {
		p.time = ev.Time
		coding = codedTime
		c := &e.col[colTime]
		if v := uint64(d); v < 1<<14 {
			// One byte and two are as likely: they are written without a branch, as
			// which of them comes is hard to foresee.
			more := (0x7f - v) >> 63
			b := c.b[c.n : c.n+2]
			b[0] = byte(v) | byte(more<<7)
			b[1] = byte(v >> 7)
			c.n += 1 + int(more)
		} else {
			c.putLong(v)
		}
	}
	if uint32(ev.Step^p.step)|uint32(ev.Text) != 0 {
		coding |= e.stepAndText(ev)
	}
	model := modelOf[ev.Kind]
	switch model {
	case modelAlloc:
		coding |= e.alloc(ev)
	case modelFree:
		coding |= e.free(ev)
	default: // predicts from the last event of the same kind
		last := &p.last[ev.Kind]
		if op := last.op; ev.Op|op != 0 {
			if op != 0 && uint32(ev.Op-op) == p.after[successor(ev.Kind, saltOp, uint32(op))] {
				last.op = ev.Op // as predicted
			} else {
				coding |= e.op(ev, last)
			}
		}
		if ev.Tensor|last.tensor != 0 {
			coding |= e.tensor(ev.Kind, ev.Tensor, &last.tensor)
		}
		if ev.ID|last.id != 0 {
			if want := nextID(last.id); ev.ID != want {
				e.col[colID].put(zigzag(int64(ev.ID - want)))
				coding |= codedID
			}
			last.id = ev.ID
		}
		if ev.Kind == event.OpBegin {
			p.running = ev.Op
		}
		if (ev.Address^last.address)|uint64(ev.Size^last.size)|uint64(ev.Requested^last.requested) != 0 {
			coding |= e.plainSizes(ev, last)
		}
	}
	// The head, in the order of the struct, so that the compiler joins the loads.
	ka := uint64(uint32(ev.Kind)|uint32(ev.Category)<<8|uint32(ev.Stream)<<16|uint32(ev.Cause)<<24) |
		uint64(ev.Flags)<<32 | uint64(model)<<40 | uint64(coding)<<48
	kb := uint64(uint32(ev.Device)|uint32(ev.Peer)<<16) | uint64(ev.Allocator)<<32
	s := &e.lookup[((ka^ka>>29)*0x9E3779B97F4A7C15+kb*0xC2B2AE3D27D4EB4F)>>(64-headBits)]
	if s.key.a != ka || s.key.b != kb || s.row == 0 {
		e.newHead(s, headKey{ka, kb})
	}
	e.col[colHead].put(uint64(s.row - 1))
	e.count++
	return e.count == e.opts.Events || e.count&sizeEvery == 0 && e.Size() >= e.opts.Bytes
}

// newHead adds a row to the table of heads. A slot taken by another head is
// overwritten: if that one comes again it gets a second row, which costs bytes,
// not correctness.
func (e *Encoder) newHead(s *headSlot, key headKey) {
	e.heads = append(e.heads, key)
	s.key, s.row = key, int32(len(e.heads))
}

// stepAndText codes what seldom changes.
func (e *Encoder) stepAndText(ev *event.Event) (coding uint16) {
	if d := ev.Step - e.p.step; d != 0 {
		e.col[colStep].put(zigzag(int64(d)))
		coding |= codedStep
		e.p.step = ev.Step
	}
	if ev.Text != 0 {
		e.col[colText].put(uint64(ev.Text))
		coding |= codedText
	}
	return coding
}

// plainSizes codes the fields that ops do not have.
func (e *Encoder) plainSizes(ev *event.Event, last *recent) (coding uint16) {
	if ev.Address != last.address {
		coding |= e.difference(ev.Address, last.address) << addressShift
		last.address = ev.Address
	}
	if ev.Size != last.size {
		coding |= e.number(colSize, ev.Size) << sizeShift
		last.size = ev.Size
	}
	if ev.Requested != last.requested {
		coding |= e.number(colRequested, ev.Requested) << requestedShift
		last.requested = ev.Requested
	}
	return coding
}

// op codes the op of an event by what followed the last op of the kind. The
// first op of a kind is always coded: a reader takes a kind whose last op is 0
// for one that has no ops.
func (e *Encoder) op(ev *event.Event, last *recent) uint16 {
	after := &e.p.after[successor(ev.Kind, saltOp, uint32(last.op))]
	d := uint32(ev.Op - last.op)
	fromNone := last.op == 0
	last.op = ev.Op
	if d == *after && !fromNone {
		return 0
	}
	e.col[colOp].put(zigzag(int64(int32(d - *after))))
	*after = d
	return codedOp
}

// tensor codes a tensor by what followed the last one.
func (e *Encoder) tensor(kind event.Kind, id event.StringID, last *event.StringID) uint16 {
	after := &e.p.after[successor(kind, saltTensor, uint32(*last))]
	d := uint32(id - *last)
	fromNone := *last == 0
	*last = id
	if d == *after && (!fromNone || d == 0) {
		return 0
	}
	e.col[colTensor].put(zigzag(int64(int32(d - *after))))
	*after = d
	return codedTensor
}

// number codes a size that was not predicted.
func (e *Encoder) number(col int, v int64) uint16 {
	s := valueSlot(v)
	if e.p.value[s] == v {
		e.col[colValue].put1(s)
		return valueCached
	}
	e.p.value[s] = v
	e.col[col].put(zigzag(v))
	return valueLiteral
}

func (c *column) put1(v uint8) { c.b[c.n] = v; c.n++ }

// difference codes an address against a near one.
func (e *Encoder) difference(a, near uint64) uint16 {
	d := int64(a - near)
	if d&255 == 0 {
		e.col[colAddress].put(zigzag(d >> 8))
		return addressPages
	}
	e.col[colAddress].put(zigzag(d))
	return addressBytes
}

// alloc predicts from the allocation before of the same tensor.
func (e *Encoder) alloc(ev *event.Event) (coding uint16) {
	p := &e.p
	if last := p.lastTensor; last != 0 && uint32(ev.Tensor-last) == p.after[successor(event.Alloc, saltTensor, uint32(last))] {
		p.lastTensor = ev.Tensor // as predicted
	} else {
		coding = e.tensor(event.Alloc, ev.Tensor, &p.lastTensor)
	}
	if ev.Op != p.running {
		e.col[colOp].put(zigzag(int64(int32(ev.Op - p.running))))
		coding |= codedOp
	}
	if ev.ID != 0 {
		e.col[colID].put(zigzag(int64(ev.ID)))
		coding |= codedID
	}
	held := &p.held[ev.Tensor%tensors]
	size := held.size
	if ev.Requested != held.requested {
		coding |= e.number(colRequested, ev.Requested) << requestedShift
		size = rounded(ev.Requested)
	}
	if ev.Size != size {
		coding |= e.number(colSize, ev.Size) << sizeShift
	}
	end := &p.end[ev.Device%devices]
	switch place := placeSlot(ev.Address); ev.Address {
	case held.address:
	case *end:
		coding |= addressFollows << addressShift
	case p.place[place]:
		e.col[colPlace].put1(place)
		coding |= addressCached << addressShift
	default:
		coding |= e.difference(ev.Address, *end) << addressShift
	}
	*end = ev.Address + uint64(ev.Size)
	held.address, held.size, held.requested = ev.Address, ev.Size, ev.Requested
	e.live.add(ev)
	return coding
}

// free refers to the allocation that it ends, when this block has it.
func (e *Encoder) free(ev *event.Event) (coding uint16) {
	p := &e.p
	last := &p.last[ev.Kind]
	if ev.Op|ev.Tensor != 0 || ev.ID != 0 || ev.Requested != 0 {
		coding = e.freeExtras(ev)
	}
	size := last.size
	if d := e.live.find(ev); d > 0 {
		e.col[colDistance].put(uint64(d))
		coding |= addressFollows << addressShift
		size = e.live.ring[e.live.n-uint32(d)].size
	} else if ev.Address != last.address {
		coding |= e.difference(ev.Address, last.address) << addressShift
	}
	if ev.Size != size {
		coding |= e.number(colSize, ev.Size) << sizeShift
	}
	p.place[placeSlot(ev.Address)] = ev.Address
	last.address, last.size = ev.Address, ev.Size
	return coding
}

// freeExtras codes what a free of our own never has.
func (e *Encoder) freeExtras(ev *event.Event) (coding uint16) {
	if ev.Op != 0 {
		e.col[colOp].put(zigzag(int64(int32(ev.Op))))
		coding |= codedOp
	}
	if ev.Tensor != 0 {
		e.col[colTensor].put(zigzag(int64(int32(ev.Tensor))))
		coding |= codedTensor
	}
	if ev.ID != 0 {
		e.col[colID].put(zigzag(int64(ev.ID)))
		coding |= codedID
	}
	if ev.Requested != 0 {
		coding |= e.number(colRequested, ev.Requested) << requestedShift
	}
	return coding
}

// Flush appends to dst everything appended since the last Flush, as one block
// of events; before it, blocks of strings where the new strings are too many
// for one block. Without events and new strings it appends nothing.
func (e *Encoder) Flush(dst []byte) []byte {
	if len(e.full) > 0 {
		dst = append(dst, e.full...)
		e.full = nil
	}
	return e.seal(dst)
}

// seal closes the block begun and begins the next.
func (e *Encoder) seal(dst []byte) []byte {
	to := min(e.strings.Len(), MaxTable)
	if e.count == 0 && e.sent >= to {
		return dst
	}
	from := e.sent
	if n, bytes := span(e.strings, from, to); n < to || bytes > maxInline {
		dst = appendStrings(dst, e.strings, from, to, e.first, e.lastTime(), &e.deflate, e.level())
		from = to
	}
	e.sent = to
	if e.count == 0 && from >= to {
		return dst
	}
	h := Header{
		Version: Version, Kind: Events, First: e.first, Events: uint32(e.count),
		FirstTime: e.firstTime, LastTime: e.lastTime(),
		StringBase: uint32(from), Strings: uint32(to - from),
	}
	if e.count == 0 {
		h.Kind = Strings
	}
	dst = finish(dst, &h, e.payload(from, to), &e.deflate, e.level())
	e.begin()
	return dst
}

// level is the DEFLATE level to use; 0 for none.
func (e *Encoder) level() int {
	if !e.opts.Deflate {
		return 0
	}
	return e.opts.Level
}

func (e *Encoder) lastTime() int64 { return e.p.time }

// begin empties the encoder for the next block. The time stays, as a block
// without events carries that of the one before.
func (e *Encoder) begin() {
	t := e.p.time
	e.first += uint64(e.count)
	e.count = 0
	e.firstTime = t
	for i := range e.col {
		e.col[i].n = 0
	}
	e.heads = e.heads[:0]
	e.lookup = [headSlots]headSlot{}
	e.p.reset()
	e.p.time = t
	e.live.begin()
}

// payload puts the columns together.
func (e *Encoder) payload(from, to int) []byte {
	b := e.raw[:0]
	b = append(b, numColumns)
	lengths, texts := stringColumns(e.strings, from, to)
	heads := e.headColumn()
	for i := range numColumns {
		n := e.col[i].n
		switch i {
		case colStringLengths:
			n = len(lengths)
		case colStringBytes:
			n = texts
		case colHeads:
			n = len(heads)
		}
		b = binary.AppendUvarint(b, uint64(n))
	}
	b = append(b, lengths...)
	for i := from; i < to; i++ {
		b = append(b, cut(e.strings.At(event.StringID(i)))...)
	}
	b = append(b, heads...)
	for i := colHead; i < numColumns; i++ {
		b = append(b, e.col[i].b[:e.col[i].n]...)
	}
	e.raw = b
	return b
}

// headColumn writes the table of heads.
func (e *Encoder) headColumn() []byte {
	b := make([]byte, 0, 12*len(e.heads))
	for _, h := range e.heads {
		b = append(b, byte(h.a), byte(h.a>>40), byte(h.a>>8), byte(h.a>>16), byte(h.a>>24), byte(h.a>>32))
		b = binary.AppendUvarint(b, h.a>>48)
		b = binary.AppendUvarint(b, h.b&0xffff)
		b = binary.AppendUvarint(b, h.b>>16&0xffff)
		b = binary.AppendUvarint(b, h.b>>32&0xffff)
	}
	return b
}
