package store

import "tideline/protocol/event"

// TrackKind says what the spans of a track are.
type TrackKind uint8

// The kinds of track.
const (
	OpTrack       TrackKind = iota // ops of one stream; class: event.OpForward …
	TransferTrack                  // copies from Device to Peer; class: event.TransferCause, value: bytes
	StepTrack                      // steps; value: the batch
	StallTrack                     // waits of Device for its input; op: the stage to blame
	StageTrack                     // elements in one stage of the input pipeline; value: bytes out
)

// NumClasses bounds Span.Class.
const NumClasses = 8

// Span is one thing that began and ended.
type Span struct {
	Index  int
	Begin  int64 // nanoseconds
	End    int64 // Alive when it has not ended
	Value  int64 // bytes, or what the track's kind says
	Op     event.StringID
	Tensor event.StringID
	Step   int32
	Class  uint8
	Flags  event.Flags
}

// Sums is a number for each class.
type Sums [NumClasses]int64

// Total is the sum over all classes.
func (s *Sums) Total() int64 {
	var n int64
	for _, v := range s {
		n += v
	}
	return n
}

func (s *Sums) add(o *Sums) {
	for i := range s {
		s[i] += o[i]
	}
}

// SpanBucket is a track over one bucket of a Window.
type SpanBucket struct {
	Busy  Sums // nanoseconds of the bucket; together they may exceed its length where spans overlap
	Value Sums // of the spans' values, each spread evenly over its time
	Count int  // spans that begin in the bucket
}

// Track is one row of spans in order of begin.
type Track struct {
	Index  int // in Timeline.Tracks
	Kind   TrackKind
	Device event.DeviceID
	Peer   event.DeviceID // TransferTrack: the destination
	Stream event.StreamID // OpTrack, TransferTrack
	Op     event.StringID // StageTrack: the stage

	spans  rows // columns: beginCol …
	lives  lifetimes[int64]
	busy   sumTree // of ended spans
	values sumTree // of ended spans; empty for kinds without a value
	now    int64   // time of the last event
}

// The columns of spans.
const (
	beginCol = iota
	spanOpCol
	spanTensorCol
	spanStepCol
	spanValueCol
	spanKindCol // class, flags
	spanCols
)

// sumTree holds sums over runs of 16, 256, … spans. Nodes above the lowest level
// are only noted when what is below them changes, and made when they are looked
// at.
type sumTree struct {
	levels []vector[Sums]
	node   int      // of the lowest level, that was added to last: spans mostly end near each other
	low    *Sums    // the node itself; nil: none yet
	stale  []int32  // nodes of the second level that were noted
	noted  []uint64 // a bit for each node: it is among them
}

// add counts v in for span i.
func (t *sumTree) add(i, class int, v int64) {
	if i>>fanoutBits != t.node || t.low == nil {
		t.turn(i >> fanoutBits)
	}
	t.low[class&(NumClasses-1)] += v
}

// turn makes another node of the lowest level the one that is added to. Nodes
// are made for spans in order, so a node that is missing is the next one.
func (t *sumTree) turn(node int) {
	if len(t.levels) == 0 {
		t.levels = append(t.levels, vector[Sums]{})
	}
	t.node, t.low = node, t.levels[0].reach(node)
	up := node >> fanoutBits
	w, bit := up>>6, uint64(1)<<(up&63)
	for w >= len(t.noted) {
		t.noted = append(t.noted, 0)
	}
	if t.noted[w]&bit == 0 {
		t.noted[w] |= bit
		t.stale = append(t.stale, int32(up))
	}
}

// settle brings the upper levels up to date, which must be done before they
// are read.
func (t *sumTree) settle() {
	if len(t.stale) == 0 {
		return
	}
	for _, n := range t.stale {
		t.noted[n>>6] &^= 1 << (n & 63)
	}
	nodes := t.stale
	t.stale, t.low = t.stale[:0], nil // what is added next must be noted anew
	for l := 1; t.levels[l-1].n > 1; l++ {
		if l == len(t.levels) { // a new level, all of which is missing
			t.levels = append(t.levels, vector[Sums]{})
			nodes = nodes[:0]
			for k := range (t.levels[l-1].n-1)>>fanoutBits + 1 {
				nodes = append(nodes, int32(k))
			}
		}
		up := nodes[:0]
		for _, n := range nodes {
			t.sum(l, int(n))
			if n >>= fanoutBits; len(up) == 0 || up[len(up)-1] != n {
				up = append(up, n)
			}
		}
		nodes = up
	}
}

// sum makes node n of level l of those below it.
func (t *sumTree) sum(l, n int) {
	into, below := t.levels[l].reach(n), &t.levels[l-1]
	*into = Sums{}
	for k := n << fanoutBits; k < min((n+1)<<fanoutBits, below.n); k++ {
		into.add(below.at(k))
	}
}

// reach is at, with elements added up to i.
func (v *vector[T]) reach(i int) *T {
	for v.n <= i {
		v.next()
	}
	return v.at(i)
}

// Spans is the number of spans so far.
func (t *Track) Spans() int { return t.spans.n }

// Span is span i, 0 <= i < Spans().
func (t *Track) Span(i int) Span {
	k := t.spans.at(spanKindCol, i)
	return Span{
		Index: i, Begin: t.spans.at(beginCol, i), End: t.ended(i), Value: t.spans.at(spanValueCol, i),
		Op: event.StringID(t.spans.at(spanOpCol, i)), Tensor: event.StringID(t.spans.at(spanTensorCol, i)), Step: int32(t.spans.at(spanStepCol, i)),
		Class: uint8(k), Flags: event.Flags(k >> 8),
	}
}

func (t *Track) ended(i int) int64 {
	if n := *t.lives.end.at(i); n != 0 {
		return n - 1
	}
	return Alive
}

func (t *Track) class(i int) int { return int(uint8(t.spans.at(spanKindCol, i))) }

func (t *Track) start(e *event.Event, class uint8) int {
	i := t.spans.n
	if class >= NumClasses {
		class = 0
	}
	k := t.spans.add()
	r, s := t.spans.open[k:], t.spans.stride
	_ = r[(spanCols-1)*s]
	r[beginCol*s] = e.Time
	r[spanOpCol*s] = int64(e.Op)
	r[spanTensorCol*s] = int64(e.Tensor)
	r[spanStepCol*s] = int64(e.Step)
	r[spanValueCol*s] = e.Size
	r[spanKindCol*s] = int64(class) | int64(e.Flags)<<8
	t.lives.begin()
	return i
}

func (t *Track) finish(i int, at int64) {
	c := t.class(i)
	t.ends(i, c, t.spans.at(beginCol, i), at)
	if t.hasValue() {
		t.values.add(i, c, t.spans.at(spanValueCol, i))
	}
}

// ends notes the end of a span of a class that began at a time.
func (t *Track) ends(i, class int, begin, at int64) {
	// Ends are kept as one more than the time, for 0 means open.
	t.lives.finish(i, at+1)
	t.busy.add(i, class, at-begin)
}

func (t *Track) hasValue() bool { return t.Kind == TransferTrack || t.Kind == StageTrack }

// sum adds the times and values of the ended spans [a,b).
func (t *Track) sum(busy, value *Sums, a, b int) {
	t.sumOf(&t.busy, busy, a, b, func(i int) int64 { return t.ended(i) - t.spans.at(beginCol, i) })
	if t.hasValue() {
		t.sumOf(&t.values, value, a, b, func(i int) int64 { return t.spans.at(spanValueCol, i) })
	}
}

func (t *Track) sumOf(tree *sumTree, into *Sums, a, b int, of func(int) int64) {
	each := func(a, b int) {
		for i := a; i < b; i++ {
			if *t.lives.end.at(i) != 0 {
				into[t.class(i)] += of(i)
			}
		}
	}
	lo, hi := (a+fanout-1)>>fanoutBits, b>>fanoutBits
	if lo >= hi {
		each(a, b)
		return
	}
	tree.settle()
	each(a, lo<<fanoutBits)
	each(hi<<fanoutBits, b)
	for l := range tree.levels {
		nodes := &tree.levels[l]
		add := func(a, b int) {
			for i := a; i < min(b, nodes.n); i++ {
				into.add(nodes.at(i))
			}
		}
		up, down := (lo+fanout-1)>>fanoutBits, hi>>fanoutBits
		if up >= down || l == len(tree.levels)-1 {
			add(lo, hi)
			return
		}
		add(lo, up<<fanoutBits)
		add(down<<fanoutBits, hi)
		lo, hi = up, down
	}
}

// overhang is what the sums of ended spans count too much, or not at all, at
// an instant: the rest of those that end later, and what those that never
// ended did so far.
func (t *Track) overhang(busy, value *Sums, spans []int32, at int64) {
	for _, r := range spans {
		i := int(r)
		begin, end, c := t.spans.at(beginCol, i), t.ended(i), t.class(i)
		if end == Alive {
			busy[c] += min(at, max(t.now, begin)) - begin
			continue
		}
		over := end - at
		busy[c] -= over
		if t.hasValue() {
			value[c] -= int64(float64(t.spans.at(spanValueCol, i)) * (float64(over) / float64(end-begin)))
		}
	}
}

// Buckets fills dst, which must have w.W elements. scratch is room to work in;
// the longer one comes back.
func (t *Track) Buckets(w Window, dst []SpanBucket, scratch []int32) []int32 {
	if !w.valid() {
		return scratch
	}
	a := t.spans.after(beginCol, w.T0-1, 0)
	// What is up to each edge, less what is up to the edge before it.
	var busyIn, valueIn Sums
	open := t.lives.reaching(scratch[:0], 0, a, w.T0+1, 0)
	t.overhang(&busyIn, &valueIn, open, w.T0)
	for i := range dst[:w.W] {
		edge := w.Edge(i + 1)
		b := t.spans.after(beginCol, edge-1, a)
		// Open at the next edge is what still is, and what began since.
		still := open[:0]
		for _, r := range open {
			if end := *t.lives.end.at(int(r)); end == 0 || end > edge+1 {
				still = append(still, r)
			}
		}
		open = t.lives.reaching(still, a, b, edge+1, 0)
		d := &dst[i]
		*d = SpanBucket{Count: b - a}
		var busyOut, valueOut Sums
		if b > a {
			t.sum(&d.Busy, &d.Value, a, b)
		}
		if len(open) > 0 {
			t.overhang(&busyOut, &valueOut, open, edge)
		}
		for c := range d.Busy {
			d.Busy[c] += busyOut[c] - busyIn[c]
			d.Value[c] += valueOut[c] - valueIn[c]
		}
		busyIn, valueIn, a = busyOut, valueOut, b
	}
	return open
}

// Overlapping appends the spans that overlap [t0,t1), by begin; it stops when
// dst has limit of them (0: no limit).
func (t *Track) Overlapping(dst []int32, t0, t1 int64, limit int) []int32 {
	return t.lives.reaching(dst, 0, t.spans.after(beginCol, t1-1, 0), t0+1, limit)
}

// Began is the number of spans that begin in [t0,t1).
func (t *Track) Began(t0, t1 int64) int {
	a := t.spans.after(beginCol, t0-1, 0)
	return t.spans.after(beginCol, t1-1, a) - a
}

// Sum is the time and the values of the spans that begin in [t0,t1) and have
// ended, by class, and how many begin.
func (t *Track) Sum(t0, t1 int64) (busy, value Sums, count int) {
	a := t.spans.after(beginCol, t0-1, 0)
	b := t.spans.after(beginCol, t1-1, a)
	t.sum(&busy, &value, a, b)
	return busy, value, b - a
}

func (t *Track) bytes() int64 {
	n := t.lives.bytes(8) + t.spans.bytes()
	for _, tree := range []*sumTree{&t.busy, &t.values} {
		tree.settle()
		for i := range tree.levels {
			n += tree.levels[i].bytes(NumClasses * 8)
		}
		n += 4*int64(cap(tree.stale)) + 8*int64(cap(tree.noted))
	}
	return n
}

// Most is the class with the largest sum.
func (s *Sums) Most() uint8 {
	best := 0
	for c, n := range s {
		if n > s[best] {
			best = c
		}
	}
	return uint8(best)
}
