package snapshot

import (
	"tideline/shared/ingest/pickle"
)

// What the sink puts in place of containers: four bits of row kind, the rest a
// number.
type rowKind uint8

const (
	frameRow rowKind = iota + 1
	stackRow
	eventRow
	eventRun
	blockRow
	blockRun
	segmentRow
	segmentRun
	poolRow
	historyRow
	historyRun
)

func row(k rowKind, n int) pickle.Value { return pickle.MakeCustom(uint64(n)<<4 | uint64(k)) }

func rowOf(v pickle.Value) (rowKind, int) {
	n, ok := v.CustomNumber()
	if !ok {
		return 0, 0
	}
	return rowKind(n & 15), int(n >> 4)
}

type run struct{ first, n int }

// past is an entry of a block's history in old files.
type past struct {
	size  int64
	stack uint32
}

type sink struct {
	codes codes
	vals  [keySlots]pickle.Value
	s     *Snapshot
	runs  []run

	frameOf map[Frame]uint32
	stackOf map[uint64]uint32 // by hash; more of the same hash hang on nextOf
	nextOf  []uint32
	streams map[int64]uint16
	pools   map[PoolID]uint16
	past    []past
	scratch []uint32
}

const pastCharge, frameCharge, stackCharge = 16, 60, 60

// Dict implements pickle.Sink.
func (k *sink) Dict(m *pickle.Machine, items []pickle.Value) (pickle.Value, bool) {
	// Keys that are missing must not keep the value of the dict before.
	k.vals = [keySlots]pickle.Value{}
	var has uint64
	for i := 0; i+1 < len(items); i += 2 {
		c := k.codes.key(m, items[i]) & (keySlots - 1)
		k.vals[c] = items[i+1]
		has |= 1 << c
	}
	in := func(c key) bool { return has&(1<<c) != 0 }
	switch {
	case in(kAction):
		return k.event(m), true
	case in(kFile) && in(kName):
		return k.frame(m), true
	case in(kState) && in(kSize):
		return k.block(m, in(kRequested)), true
	case in(kTotal):
		return k.segment(m, in(kRequested)), true
	case in(kRealSize):
		n, _ := m.Int(k.vals[kRealSize])
		k.past = append(k.past, past{n, k.stack(k.vals[kFrames])})
		m.Charge(pastCharge)
		return row(historyRow, len(k.past)-1), true
	}
	return 0, false
}

func (k *sink) event(m *pickle.Machine) pickle.Value {
	e := k.s.events.add()
	m.Charge(40)
	e.Action = Action(k.codes.word(m, k.vals[kAction]))
	if e.Action >= numActions {
		e.Action = Unknown
	}
	e.Addr, _ = m.Uint(k.vals[kAddr])
	if e.Action == OOM {
		e.Addr, _ = m.Uint(k.vals[kDeviceFree])
	}
	e.Size, _ = m.Int(k.vals[kSize])
	e.Time, _ = m.Int(k.vals[kTime])
	e.Stack = k.stack(k.vals[kFrames])
	e.Stream = k.stream(m, k.vals[kStream])
	if kind, n := rowOf(k.vals[kPool]); kind == poolRow {
		e.Pool = uint16(n)
	}
	if n, ok := k.vals[kMeta].TextNumber(); ok {
		e.Meta = n + 1
	}
	return row(eventRow, k.s.events.len()-1)
}

func (k *sink) frame(m *pickle.Machine) pickle.Value {
	var f Frame
	f.File, _ = k.vals[kFile].TextNumber()
	f.Name, _ = k.vals[kName].TextNumber()
	line, _ := m.Int(k.vals[kLine])
	f.Line = int32(line)
	n, ok := k.frameOf[f]
	if !ok {
		n = uint32(len(k.s.frames))
		k.s.frames = append(k.s.frames, f)
		k.frameOf[f] = n
		m.Charge(frameCharge)
	}
	return row(frameRow, int(n))
}

// stack is the number of the stack that a value of the key frames is.
func (k *sink) stack(v pickle.Value) uint32 {
	if kind, n := rowOf(v); kind == stackRow {
		return uint32(n)
	}
	return 0
}

// stream numbers a stream's handle. Beyond 65535 streams, which no program
// has, the rest share the last number.
func (k *sink) stream(m *pickle.Machine, v pickle.Value) uint16 {
	n, _ := m.Int(v)
	if int(k.s.lastStream) < len(k.s.streams) && k.s.streams[k.s.lastStream] == n {
		return k.s.lastStream
	}
	i, ok := k.streams[n]
	if !ok {
		if len(k.s.streams) == 1<<16 {
			return 1<<16 - 1
		}
		i = uint16(len(k.s.streams))
		k.s.streams = append(k.s.streams, n)
		k.streams[n] = i
	}
	k.s.lastStream = i
	return i
}

func (k *sink) block(m *pickle.Machine, sized bool) pickle.Value {
	b := k.s.blocks.add()
	m.Charge(40)
	b.Address, _ = m.Uint(k.vals[kAddress])
	b.Size, _ = m.Int(k.vals[kSize])
	b.State = State(k.codes.word(m, k.vals[kState]))
	if b.State > ActivePendingFree {
		b.State = Inactive
	}
	b.Stack = k.stack(k.vals[kFrames])
	b.Requested = -1
	if sized {
		b.Requested, _ = m.Int(k.vals[kRequested])
	}
	if kind, n := rowOf(k.vals[kHistory]); kind == historyRun {
		if newest := k.past[k.runs[n].first]; !sized {
			b.Requested, b.Stack = newest.size, newest.stack
		}
	}
	return row(blockRow, k.s.blocks.len()-1)
}

func (k *sink) segment(m *pickle.Machine, sized bool) pickle.Value {
	var s Segment
	s.Address, _ = m.Uint(k.vals[kAddress])
	s.Total, _ = m.Int(k.vals[kTotal])
	s.Allocated, _ = m.Int(k.vals[kAllocated])
	s.Active, _ = m.Int(k.vals[kActive])
	s.Requested = -1
	if sized {
		s.Requested, _ = m.Int(k.vals[kRequested])
	}
	device, _ := m.Int(k.vals[kDevice])
	s.Device = int(device)
	s.Stack = k.stack(k.vals[kFrames])
	s.Stream = k.stream(m, k.vals[kStream])
	text, _ := m.Text(k.vals[kType])
	s.Large = text == "large"
	expandable, _ := m.Int(k.vals[kExpandable])
	s.Expandable = expandable != 0
	if kind, n := rowOf(k.vals[kSegmentPool]); kind == poolRow {
		s.Pool = uint16(n)
	}
	if kind, n := rowOf(k.vals[kBlocks]); kind == blockRun {
		s.first, s.n = k.runs[n].first, k.runs[n].n
	}
	k.s.segments = append(k.s.segments, s)
	m.Charge(120)
	return row(segmentRow, len(k.s.segments)-1)
}

// Tuple implements pickle.Sink: pairs of integers are pool ids.
func (k *sink) Tuple(m *pickle.Machine, items []pickle.Value) (pickle.Value, bool) {
	if len(items) != 2 {
		return 0, false
	}
	a, ok := m.Int(items[0])
	b, ok2 := m.Int(items[1])
	if !ok || !ok2 {
		return 0, false
	}
	id := PoolID{a, b}
	n, ok := k.pools[id]
	if !ok {
		if len(k.s.pools) == 1<<16 {
			return 0, false
		}
		n = uint16(len(k.s.pools))
		k.s.pools = append(k.s.pools, id)
		k.pools[id] = n
	}
	return row(poolRow, int(n)), true
}

// runOf is the run that rows of a kind form.
var runOf = map[rowKind]rowKind{eventRow: eventRun, blockRow: blockRun, segmentRow: segmentRun, historyRow: historyRun}

// List implements pickle.Sink.
func (k *sink) List(m *pickle.Machine, so pickle.Value, items []pickle.Value) (pickle.Value, bool) {
	kind, number := rowOf(so)
	first, _ := rowOf(items[0])
	if kind == 0 {
		if first == frameRow {
			return k.stackList(m, items)
		}
		if kind = runOf[first]; kind == 0 {
			return 0, false
		}
		number = len(k.runs)
		_, at := rowOf(items[0])
		k.runs = append(k.runs, run{at, 0})
		m.Charge(16)
	}
	switch kind {
	case stackRow:
		all := append(append([]uint32(nil), k.s.Frames(uint32(number))...), k.frames(items)...)
		return row(stackRow, int(k.intern(m, all))), true
	case eventRun, blockRun, segmentRun, historyRun:
	default:
		return 0, false // a dict, which items cannot be appended to
	}
	r := &k.runs[number]
	for _, v := range items {
		rk, n := rowOf(v)
		if runOf[rk] != kind || n != r.first+r.n {
			k.s.skipped++ // something else in the list, or the same row twice
			continue
		}
		r.n++
	}
	return row(kind, number), true
}

func (k *sink) frames(items []pickle.Value) []uint32 {
	k.scratch = k.scratch[:0]
	for _, v := range items {
		if kind, n := rowOf(v); kind == frameRow {
			k.scratch = append(k.scratch, uint32(n))
		}
	}
	return k.scratch
}

func (k *sink) stackList(m *pickle.Machine, items []pickle.Value) (pickle.Value, bool) {
	return row(stackRow, int(k.intern(m, k.frames(items)))), true
}

// intern is the number of a stack. Files that refer to their stacks by memo
// come here once a stack, files without a memo once an event.
func (k *sink) intern(m *pickle.Machine, frames []uint32) uint32 {
	h := uint64(len(frames))
	for _, f := range frames {
		h = (h ^ uint64(f)) * 0x9E3779B97F4A7C15
		h ^= h >> 31
	}
	first, ok := k.stackOf[h]
	for n := first; ok && n != 0; n = k.nextOf[n] {
		if equal(k.s.Frames(n), frames) {
			return n
		}
	}
	n := uint32(len(k.s.stackEnds))
	k.s.stackFrames = append(k.s.stackFrames, frames...)
	k.s.stackEnds = append(k.s.stackEnds, uint32(len(k.s.stackFrames)))
	k.nextOf = append(k.nextOf, first)
	k.stackOf[h] = n
	m.Charge(int64(stackCharge + 4*len(frames)))
	return n
}

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
