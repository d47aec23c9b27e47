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
	codes  codes
	layout layout
	items  []pickle.Value // of the dict being read
	s      *Snapshot
	runs   []run

	lastStream uint16 // number of the handle seen last
	lastHandle int64

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
	if n := m.Layout(); n == 0 || n != k.layout.number {
		k.layout.learn(n, m, &k.codes, items)
	}
	k.items = items
	switch k.layout.what {
	case eventType:
		return k.event(m), true
	case frameType:
		return k.frame(m), true
	case blockType:
		return k.block(m), true
	case segmentType:
		return k.segment(m), true
	case pastType:
		k.past = append(k.past, past{k.number(m, kRealSize), stackOf(k.value(kFrames))})
		m.Charge(pastCharge)
		return row(historyRow, len(k.past)-1), true
	default:
		return 0, false
	}
}

func (k *sink) event(m *pickle.Machine) pickle.Value {
	n := k.s.events.len()
	e := k.s.events.add()
	m.Charge(40)
	e.Action = Action(k.codes.word(m, k.value(kAction)))
	addr := kAddr
	if e.Action >= OOM {
		if e.Action == OOM {
			addr = kDeviceFree
		} else {
			e.Action = Unknown
		}
	}
	e.Addr = k.address(m, addr)
	e.Size = k.number(m, kSize)
	e.Time = k.number(m, kTime)
	e.Stack = stackOf(k.value(kFrames))
	if stream := k.number(m, kStream); stream == k.lastHandle {
		e.Stream = k.lastStream
	} else {
		e.Stream = k.stream(m, stream)
	}
	if kind, n := rowOf(k.value(kPool)); kind == poolRow {
		e.Pool = uint16(n)
	}
	if n, ok := k.value(kMeta).TextNumber(); ok {
		e.Meta = n + 1
	}
	return row(eventRow, n)
}

func (k *sink) frame(m *pickle.Machine) pickle.Value {
	var f Frame
	f.File, _ = k.value(kFile).TextNumber()
	f.Name, _ = k.value(kName).TextNumber()
	f.Line = int32(k.number(m, kLine))
	n, ok := k.frameOf[f]
	if !ok {
		n = uint32(len(k.s.frames))
		k.s.frames = append(k.s.frames, f)
		k.frameOf[f] = n
		m.Charge(frameCharge)
	}
	return row(frameRow, int(n))
}

// stackOf is the number of the stack that a value of the key frames is.
func stackOf(v pickle.Value) uint32 {
	if kind, n := rowOf(v); kind == stackRow {
		return uint32(n)
	}
	return 0
}

// stream numbers a stream's handle. Beyond 65535 streams, which no program
// has, the rest share the last number.
func (k *sink) stream(m *pickle.Machine, n int64) uint16 {
	i, ok := k.streams[n]
	if !ok {
		if len(k.s.streams) == 1<<16 {
			return 1<<16 - 1
		}
		i = uint16(len(k.s.streams))
		k.s.streams = append(k.s.streams, n)
		k.streams[n] = i
	}
	k.lastStream, k.lastHandle = i, n
	return i
}

func (k *sink) block(m *pickle.Machine) pickle.Value {
	sized := k.layout.sized
	b := k.s.blocks.add()
	m.Charge(40)
	b.Address = k.address(m, kAddress)
	b.Size = k.number(m, kSize)
	b.State = State(k.codes.word(m, k.value(kState)))
	if b.State > ActivePendingFree {
		b.State = Inactive
	}
	b.Stack = stackOf(k.value(kFrames))
	b.Requested = -1
	if sized {
		b.Requested = k.number(m, kRequested)
	}
	if kind, n := rowOf(k.value(kHistory)); kind == historyRun {
		if newest := k.past[k.runs[n].first]; !sized {
			b.Requested, b.Stack = newest.size, newest.stack
		}
	}
	return row(blockRow, k.s.blocks.len()-1)
}

func (k *sink) segment(m *pickle.Machine) pickle.Value {
	s := Segment{
		Address: k.address(m, kAddress), Total: k.number(m, kTotal), Allocated: k.number(m, kAllocated),
		Active: k.number(m, kActive), Requested: -1, Device: int(k.number(m, kDevice)),
		Stack: stackOf(k.value(kFrames)), Stream: k.stream(m, k.number(m, kStream)), Expandable: k.number(m, kExpandable) != 0,
	}
	if k.layout.sized {
		s.Requested = k.number(m, kRequested)
	}
	text, _ := m.Text(k.value(kType))
	s.Large = text == "large"
	if kind, n := rowOf(k.value(kSegmentPool)); kind == poolRow {
		s.Pool = uint16(n)
	}
	if kind, n := rowOf(k.value(kBlocks)); kind == blockRun {
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
var runOf = [16]rowKind{eventRow: eventRun, blockRow: blockRun, segmentRow: segmentRun, historyRow: historyRun}

// List implements pickle.Sink.
func (k *sink) List(m *pickle.Machine, so pickle.Value, items []pickle.Value) (pickle.Value, bool) {
	kind, number := rowOf(so)
	first, _ := rowOf(items[0])
	if kind == 0 {
		if first == frameRow {
			return k.stackList(m, items)
		}
		if kind = runOf[first&15]; kind == 0 {
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
		if runOf[rk&15] != kind || n != r.first+r.n {
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
