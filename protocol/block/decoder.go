package block

import (
	"encoding/binary"
	"fmt"
	"slices"

	"tideline/protocol/event"
)

// Decoder turns blocks into events and gathers their strings. It is not safe
// for concurrent use.
type Decoder struct {
	strings event.Strings
	gap     int
	inflate inflater
	heads   []head
	allocs  []liveBlock // the block's allocations so far
	p       predictor
	cols    [numColumns]input // of the block being decoded
	count   int               // its events
	done    int               // of them
}

// head is a row of the table of heads.
type head struct {
	// Device, peer, allocator, kind and category in one number, in the order in
	// which they lie in an event: the compiler stores them at once.
	front  uint64
	stream event.StreamID
	cause  uint8
	flags  event.Flags
	model  uint8
	coding uint16
}

// NewDecoder makes a decoder with an empty string table.
func NewDecoder() *Decoder { return &Decoder{} }

// Strings is the table gathered so far. The decoder goes on filling it.
func (d *Decoder) Strings() *event.Strings { return &d.strings }

// AllowStringGap lets the next blocks leave out up to n strings, as they must
// after a damaged block was skipped. The missing ones read as empty.
func (d *Decoder) AllowStringGap(n int) { d.gap = n }

// Decode appends the events of a whole block, as Next returned it, to into,
// and its strings to Strings. Blocks of strings append no event; blocks of an
// unknown kind are skipped. On an error into is returned as it was. Checksums
// are left to Next.
func (d *Decoder) Decode(frame []byte, into []event.Event) ([]event.Event, error) {
	return d.decode(frame, into, d.whole, true)
}

// DecodePayload is Decode for a payload that the caller has inflated, as a
// browser can natively.
func (d *Decoder) DecodePayload(h *Header, raw []byte, into []event.Event) ([]event.Event, error) {
	return d.payload(h, raw, into, d.whole, true)
}

// Begin starts on a whole block, as Next returned it, and gathers its strings;
// More then gives its events. A thousand at a time stay in the processor's
// cache while they are used, which a block of 64k does not.
func (d *Decoder) Begin(frame []byte) error {
	d.count, d.done = 0, 0
	_, err := d.decode(frame, nil, d.begin, true)
	return err
}

// More appends the next events of the block, at most n, to into: none at its
// end. On an error into is returned as it was; what came before was sound as
// far as the block's checksum and codings can tell.
func (d *Decoder) More(into []event.Event, n int) ([]event.Event, error) {
	n = min(n, d.count-d.done)
	if n <= 0 {
		return into, nil
	}
	out, err := d.some(into, n)
	if err == nil && d.done == d.count {
		err = d.end()
	}
	if err != nil {
		d.count, d.done = 0, 0
		return into, err
	}
	return out, nil
}

// Left is how many events More has still to give.
func (d *Decoder) Left() int { return d.count - d.done }

// DecodeEvents is Decode without the strings: Strings stays as it is, and no
// string need have been seen before. Ids stay numbers that another table may
// resolve. For random access.
func (d *Decoder) DecodeEvents(frame []byte, into []event.Event) ([]event.Event, error) {
	return d.decode(frame, into, d.whole, false)
}

// DecodeStrings gathers the strings of a whole block and leaves its events.
func (d *Decoder) DecodeStrings(frame []byte) error {
	_, err := d.decode(frame, nil, nil, true)
	return err
}

// events is what is done with a block's columns of events; nil: nothing.
type events func(h *Header, into []event.Event) ([]event.Event, error)

func (d *Decoder) decode(frame []byte, into []event.Event, take events, strings bool) ([]event.Event, error) {
	h, err := ParseHeader(frame)
	if err != nil {
		return into, err
	}
	if len(frame) < h.Size() {
		return into, fmt.Errorf("%w: %d bytes of %d", ErrShort, len(frame), h.Size())
	}
	raw := frame[HeaderSize:h.Size()]
	if h.Kind != Events && h.Kind != Strings {
		return into, nil
	}
	if h.Flags&Deflated != 0 {
		if raw, err = d.inflate.inflate(&h, raw); err != nil {
			return into, err
		}
	}
	return d.payload(&h, raw, into, take, strings)
}

func (d *Decoder) payload(h *Header, raw []byte, into []event.Event, take events, strings bool) ([]event.Event, error) {
	err := split(&d.cols, raw)
	if err != nil {
		return into, err
	}
	var lengths []int
	if strings {
		if lengths, err = d.checkStrings(h, &d.cols); err != nil {
			return into, err
		}
	}
	out := into
	if take != nil && h.Kind == Events {
		if out, err = take(h, into); err != nil {
			return into, err
		}
	}
	d.addStrings(h, lengths, d.cols[colStringBytes].b)
	return out, nil
}

// split parts a payload into its columns. Columns beyond those known are
// ignored.
func split(cols *[numColumns]input, raw []byte) error {
	*cols = [numColumns]input{}
	in := input{b: raw}
	n := in.uvarint()
	if n > uint64(len(raw)) {
		return fmt.Errorf("%w: %d columns in %d bytes", ErrCorrupt, n, len(raw))
	}
	var lengths [numColumns]uint64
	for i := range n {
		l := in.uvarint()
		if i < numColumns {
			lengths[i] = l
		}
	}
	if in.bad {
		return fmt.Errorf("%w: the table of columns is cut short", ErrCorrupt)
	}
	rest := raw[in.n:]
	for i, l := range lengths {
		if l > uint64(len(rest)) {
			return fmt.Errorf("%w: column %d has %d bytes, %d are left", ErrCorrupt, i, l, len(rest))
		}
		cols[i].b = rest[:l]
		rest = rest[l:]
	}
	return nil
}

// input is a column being read. Reading past its end gives zeros and sets bad,
// so that the loop over events needs no error checks.
type input struct {
	b   []byte
	n   int
	bad bool
}

// uvarint reads a number.
func (c *input) uvarint() uint64 {
	v, ok := c.short()
	if !ok {
		v = c.long()
	}
	return v
}

// short reads a number of one byte, or nothing and reports false. Unlike
// uvarint it is small enough to be inlined, which matters most in WebAssembly,
// where calls are dear.
func (c *input) short() (v uint64, ok bool) {
	if c.n < len(c.b) && c.b[c.n] < 0x80 {
		c.n++
		return uint64(c.b[c.n-1]), true
	}
	return 0, false
}

func (c *input) long() uint64 {
	v, n := binary.Uvarint(c.b[c.n:])
	if n <= 0 {
		c.bad = true
		c.n = len(c.b)
		return 0
	}
	c.n += n
	return v
}

// longAt is long from a place that the caller keeps.
func (c *input) longAt(n int) (v uint64, next int) {
	c.n = n
	v = c.long()
	return v, c.n
}

func (c *input) byte() uint8 {
	if c.n < len(c.b) {
		c.n++
		return c.b[c.n-1]
	}
	c.bad = true
	return 0
}

// checkStrings reads the lengths of the block's strings and checks them all
// before one is kept.
func (d *Decoder) checkStrings(h *Header, cols *[numColumns]input) ([]int, error) {
	in := &cols[colStringLengths]
	if int(h.Strings) > len(in.b) {
		return nil, fmt.Errorf("%w: %d strings but %d lengths", ErrCorrupt, h.Strings, len(in.b))
	}
	if h.Strings == 0 {
		return nil, nil
	}
	if gap := int(h.StringBase) - d.strings.Len(); gap > d.gap {
		return nil, fmt.Errorf("%w: the block's strings begin at id %d, the table ends at %d; ask for a block of strings first",
			ErrStringGap, h.StringBase, d.strings.Len())
	}
	lengths := make([]int, h.Strings)
	left := uint64(len(cols[colStringBytes].b))
	for i := range lengths {
		n := in.uvarint()
		if in.bad || n > left || n > MaxString {
			return nil, fmt.Errorf("%w: string %d has %d bytes, %d are left", ErrCorrupt, int(h.StringBase)+i, n, left)
		}
		left -= n
		lengths[i] = int(n)
	}
	return lengths, nil
}

// addStrings keeps the strings that the table lacks.
func (d *Decoder) addStrings(h *Header, lengths []int, b []byte) {
	if len(lengths) == 0 {
		return
	}
	for d.strings.Len() < int(h.StringBase) {
		d.strings.Append("")
		d.gap--
	}
	all := string(b) // one allocation; the strings share it
	id, at := int(h.StringBase), 0
	for _, n := range lengths {
		if id >= d.strings.Len() {
			d.strings.Append(all[at : at+n])
		}
		id++
		at += n
	}
}

// parseHeads reads the table of heads.
func (d *Decoder) parseHeads(b []byte) error {
	d.heads = d.heads[:0]
	in := input{b: b}
	for in.n < len(b) {
		var h head
		kind := in.byte()
		h.model = in.byte()
		category := in.byte()
		h.stream, h.cause, h.flags = event.StreamID(in.byte()), in.byte(), event.Flags(in.byte())
		coding := in.uvarint()
		device, peer, allocator := in.uvarint(), in.uvarint(), in.uvarint()
		if in.bad || device|peer|allocator > 0xffff {
			return fmt.Errorf("%w: head %d is cut short or out of range", ErrCorrupt, len(d.heads))
		}
		if coding > 0xffff || coding&unknownCodings != 0 || h.model >= numModels ||
			addressCodes[h.model]>>(coding&addressMask>>addressShift)&1 == 0 ||
			coding&sizeMask>>sizeShift >= numValueCodes || coding&requestedMask>>requestedShift >= numValueCodes {
			return fmt.Errorf("%w: head %d has coding %#x and model %d", ErrCorrupt, len(d.heads), coding, h.model)
		}
		h.coding = uint16(coding)
		h.front = device | peer<<16 | allocator<<32 | uint64(kind)<<48 | uint64(category)<<56
		d.heads = append(d.heads, h)
	}
	return nil
}

// whole decodes all events.
func (d *Decoder) whole(h *Header, into []event.Event) ([]event.Event, error) {
	if _, err := d.begin(h, nil); err != nil {
		return nil, err
	}
	out, err := d.some(into, d.count)
	if err != nil {
		return nil, err
	}
	return out, d.end()
}

// begin makes ready to decode the events of the block.
func (d *Decoder) begin(h *Header, _ []event.Event) ([]event.Event, error) {
	count := int(h.Events)
	if count > len(d.cols[colHead].b) {
		return nil, fmt.Errorf("%w: %d events but %d bytes of heads", ErrCorrupt, count, len(d.cols[colHead].b))
	}
	if err := d.parseHeads(d.cols[colHeads].b); err != nil {
		return nil, err
	}
	d.p.reset()
	d.p.time = h.FirstTime
	d.allocs = d.allocs[:0]
	d.count, d.done = count, 0
	return nil, nil
}

// end checks that the events took up all of the columns.
func (d *Decoder) end() error {
	for i := colHead; i < numColumns; i++ {
		if c := &d.cols[i]; c.bad || c.n != len(c.b) {
			return fmt.Errorf("%w: %d events do not use up column %d exactly (%d of %d bytes)", ErrCorrupt, d.count, i, c.n, len(c.b))
		}
	}
	return nil
}

// some decodes the next n events. What nearly all of them need is done in this
// one function and in variables of its own: calls and fields cost more than the
// work, above all in WebAssembly.
func (d *Decoder) some(into []event.Event, n int) ([]event.Event, error) {
	cols, p := &d.cols, &d.p
	at := len(into)
	out := slices.Grow(into, n)[:at+n]
	events := out[at:]
	rows, rowAt := cols[colHead].b, cols[colHead].n
	times, timeAt := cols[colTime].b, cols[colTime].n
	heads, allocs, time := d.heads, d.allocs, p.time
	for i := range events {
		var row uint64
		if rowAt < len(rows) && rows[rowAt] < 0x80 {
			row = uint64(rows[rowAt])
			rowAt++
		} else {
			row, rowAt = cols[colHead].longAt(rowAt)
		}
		if row >= uint64(len(heads)) {
			return nil, fmt.Errorf("%w: event %d has head %d of %d", ErrCorrupt, d.done+i, row, len(heads))
		}
		hd := &heads[row]
		e := &events[i]
		coding := hd.coding
		if coding&codedTime != 0 {
			// One byte or two, without a branch: see Encoder.Append.
			if n := timeAt; n+1 < len(times) && times[n]&times[n+1] < 0x80 {
				more := uint64(times[n] >> 7)
				time += int64(uint64(times[n]&0x7f) | uint64(times[n+1])&-more<<7)
				timeAt = n + 1 + int(more)
			} else {
				var v uint64
				v, timeAt = cols[colTime].longAt(n)
				time += int64(v)
			}
		}
		// Every field is set, by the head or by the model: writing zeros first
		// would cost more.
		e.Time, e.Text = time, 0
		x := hd.front
		e.Device, e.Peer, e.Allocator = event.DeviceID(x), event.DeviceID(x>>16), event.AllocatorID(x>>32)
		e.Kind, e.Category = event.Kind(x>>48), event.Category(x>>56)
		e.Stream, e.Cause, e.Flags = hd.stream, hd.cause, hd.flags
		if coding&(codedStep|codedText) != 0 {
			d.stepAndText(e, coding, cols)
		}
		e.Step = p.step
		switch hd.model {
		case modelAlloc: // mirrors Encoder.alloc
			after := &p.after[successor(event.Alloc, saltTensor, uint32(p.lastTensor))]
			if coding&codedTensor != 0 {
				*after += uint32(unzigzag(cols[colTensor].uvarint()))
			}
			tensor := p.lastTensor + event.StringID(*after)
			p.lastTensor = tensor
			e.Op, e.Tensor, e.ID = p.running, tensor, 0
			if coding&(codedOp|codedID) != 0 {
				d.allocExtras(e, coding, cols)
			}
			held := &p.held[tensor%tensors]
			requested, size := held.requested, held.size
			if c := coding & requestedMask; c != 0 {
				requested = d.number(c>>requestedShift, &cols[colRequested], cols)
				size = rounded(requested)
			}
			if c := coding & sizeMask; c != 0 {
				size = d.number(c>>sizeShift, &cols[colSize], cols)
			}
			end := &p.end[e.Device%devices]
			address := held.address
			if c := coding & addressMask; c == addressFollows<<addressShift {
				address = *end
			} else if c == addressCached<<addressShift {
				address = p.place[cols[colPlace].byte()]
			} else if c != 0 {
				address = *end + cols[colAddress].difference(c)
			}
			*end = address + uint64(size)
			held.address, held.size, held.requested = address, size, requested
			e.Address, e.Size, e.Requested = address, size, requested
			allocs = append(allocs, liveBlock{address, size})
		case modelFree: // mirrors Encoder.free
			last := &p.last[e.Kind]
			e.Op, e.Tensor, e.ID, e.Requested = 0, 0, 0, 0
			if coding&(codedOp|codedTensor|codedID|requestedMask) != 0 {
				d.freeExtras(e, coding, cols)
			}
			address, size := last.address, last.size
			if c := coding & addressMask; c == addressFollows<<addressShift {
				distance, ok := cols[colDistance].short()
				if !ok {
					distance = cols[colDistance].long()
				}
				k := uint64(len(allocs)) - distance
				if k >= uint64(len(allocs)) {
					return nil, fmt.Errorf("%w: event %d frees an allocation that the block does not have", ErrCorrupt, d.done+i)
				}
				address, size = allocs[k].address, allocs[k].size
			} else if c != 0 {
				address += cols[colAddress].difference(c)
			}
			if c := coding & sizeMask; c != 0 {
				size = d.number(c>>sizeShift, &cols[colSize], cols)
			}
			p.place[placeSlot(address)] = address
			last.address, last.size = address, size
			e.Address, e.Size = address, size
		default: // mirrors Encoder.Append
			last := &p.last[e.Kind]
			op, tensor := last.op, last.tensor
			if uint32(coding&(codedOp|codedTensor))|uint32(op|tensor) != 0 {
				if coding&codedOp != 0 || op != 0 {
					after := &p.after[successor(e.Kind, saltOp, uint32(op))]
					if coding&codedOp != 0 {
						*after += uint32(unzigzag(cols[colOp].uvarint()))
					}
					op += event.StringID(*after)
					last.op = op
				}
				if coding&codedTensor != 0 || tensor != 0 {
					after := &p.after[successor(e.Kind, saltTensor, uint32(tensor))]
					if coding&codedTensor != 0 {
						*after += uint32(unzigzag(cols[colTensor].uvarint()))
					}
					tensor += event.StringID(*after)
					last.tensor = tensor
				}
			}
			e.Op, e.Tensor = op, tensor
			id := nextID(last.id)
			if coding&codedID != 0 {
				id += uint64(unzigzag(cols[colID].uvarint()))
			}
			last.id, e.ID = id, id
			if e.Kind == event.OpBegin {
				p.running = op
			}
			if coding&(addressMask|sizeMask|requestedMask) != 0 {
				d.plainSizes(last, coding, cols)
			}
			e.Address, e.Size, e.Requested = last.address, last.size, last.requested
		}
	}
	d.allocs = allocs
	cols[colHead].n, cols[colTime].n = rowAt, timeAt
	p.time = time
	d.done += n
	return out, nil
}

// stepAndText mirrors Encoder.stepAndText.
func (d *Decoder) stepAndText(e *event.Event, coding uint16, cols *[numColumns]input) {
	if coding&codedStep != 0 {
		d.p.step += int32(unzigzag(cols[colStep].uvarint()))
	}
	if coding&codedText != 0 {
		e.Text = event.StringID(cols[colText].uvarint())
	}
}

// plainSizes mirrors Encoder.plainSizes.
func (d *Decoder) plainSizes(last *recent, coding uint16, cols *[numColumns]input) {
	if c := coding & addressMask; c != 0 {
		last.address += cols[colAddress].difference(c)
	}
	if c := coding & sizeMask; c != 0 {
		last.size = d.number(c>>sizeShift, &cols[colSize], cols)
	}
	if c := coding & requestedMask; c != 0 {
		last.requested = d.number(c>>requestedShift, &cols[colRequested], cols)
	}
}

// difference mirrors Encoder.difference; code is a coding's address code.
func (c *input) difference(code uint16) uint64 {
	d := uint64(unzigzag(c.uvarint()))
	if code == addressPages<<addressShift {
		d <<= 8
	}
	return d
}

// number mirrors Encoder.number.
func (d *Decoder) number(code uint16, col *input, cols *[numColumns]input) int64 {
	if code == valueCached {
		return d.p.value[cols[colValue].byte()]
	}
	v := unzigzag(col.uvarint())
	d.p.value[valueSlot(v)] = v
	return v
}

// allocExtras decodes what an allocation of our own seldom has coded.
func (d *Decoder) allocExtras(e *event.Event, coding uint16, cols *[numColumns]input) {
	if coding&codedOp != 0 {
		e.Op += event.StringID(unzigzag(cols[colOp].uvarint()))
	}
	if coding&codedID != 0 {
		e.ID = uint64(unzigzag(cols[colID].uvarint()))
	}
}

// freeExtras mirrors Encoder.freeExtras.
func (d *Decoder) freeExtras(e *event.Event, coding uint16, cols *[numColumns]input) {
	if coding&codedOp != 0 {
		e.Op = event.StringID(unzigzag(cols[colOp].uvarint()))
	}
	if coding&codedTensor != 0 {
		e.Tensor = event.StringID(unzigzag(cols[colTensor].uvarint()))
	}
	if coding&codedID != 0 {
		e.ID = uint64(unzigzag(cols[colID].uvarint()))
	}
	if c := coding & requestedMask; c != 0 {
		e.Requested = d.number(c>>requestedShift, &cols[colRequested], cols)
	}
}
