package remedy

import (
	"fmt"
	"slices"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis/reading"
)

// Recorded is a device's part of a PyTorch snapshot.
type Recorded struct {
	Segments []torch.SnapshotSegment // at the end
	Trace    []torch.TraceEntry      // up to the end
	Settings torch.Settings
}

// Torch replays a snapshot's trace up to its last refused request.
func Torch(in *Recorded, o Options) Outcome {
	t := caching{in: in, work: o.work()}
	t.end = len(in.Trace)
	for i := range in.Trace {
		if in.Trace[i].Action == torch.ActionOOM {
			t.end, t.failed = i+1, true
		}
	}
	if len(in.Trace) == 0 {
		return Outcome{} // a state without a failure tells of no request
	}
	var err error
	if t.begin, err = torch.Rewind(in.Segments, in.Trace, &in.Settings); err != nil {
		return Outcome{Replayed: "The trace and the state at its end do not agree, so nothing was replayed: " + err.Error() + "."}
	}
	t.measure()
	if t.failed {
		t.failure()
	} else {
		t.peaks()
	}
	t.out.order()
	return t.out
}

// caching is the work on one snapshot.
type caching struct {
	in     *Recorded
	begin  []torch.SnapshotSegment // where the trace begins
	end    int                     // entries that are replayed
	failed bool
	how    way
	*work
	out Outcome

	capacity int64 // of the device for this process; 0 when unknown
	limited  bool  // by a fraction, below what the device had
	beyond   int64 // what the device had for this process then
	peak     int64 // most bytes reserved, as recorded
	live     int   // blocks at the beginning
}

// measure finds the capacity: at a refused request the file tells what the
// device had free, and the trace what was reserved.
func (t *caching) measure() {
	var reserved int64
	for i := range t.begin {
		reserved += t.begin[i].Total
		for _, b := range t.begin[i].Blocks {
			if b.State != torch.Inactive {
				t.live++
			}
		}
	}
	peak := reserved
	for i := range t.in.Trace[:t.end] {
		switch e := &t.in.Trace[i]; e.Action {
		case torch.ActionSegmentAlloc, torch.ActionSegmentMap:
			reserved += e.Size
			peak = max(peak, reserved)
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap:
			reserved -= e.Size
		case torch.ActionOOM:
			free := int64(min(e.Addr, 1<<60))
			t.limited = free >= t.needs(e.Size)
			if t.limited {
				t.beyond, t.capacity = reserved+free, 0
			} else if c := reserved + free; t.capacity == 0 || c < t.capacity {
				t.capacity = c
			}
		default:
		}
	}
	if t.peak = peak; t.failed {
		t.capacity = max(t.capacity, peak)
	}
}

// needs is what a request takes of the driver at the most. Pages are mapped
// whole.
func (t *caching) needs(bytes int64) int64 {
	s := &t.in.Settings
	r := s.Round(max(1, bytes))
	if !s.Expandable || r <= torch.SmallLimit {
		return s.Segment(r)
	}
	page := s.LargeSegment
	if page == 0 {
		page = torch.DefaultLargeSegment
	}
	return (r + page - 1) / page * page
}

// maxSmallIdle bounds the pieces that a file can ask for. A segment of small
// blocks is 2 MiB; runs of expandable ones grow.
const maxSmallIdle = 4 << 30

// idle are pieces that stand for an idle block of a segment while the state is
// built up: requests that its pool serves.
func idle(size int64, large bool, piece func(bytes int64)) {
	if !large && size > maxSmallIdle {
		return // no allocator's; a file that claims so is not believed
	}
	for ; !large && size > torch.SmallLimit; size -= torch.SmallLimit {
		piece(torch.SmallLimit)
	}
	if size > torch.SmallLimit == large && size > 0 {
		piece(size)
	}
}

// way is how the state at the beginning of a trace comes about.
type way uint8

const (
	withHoles way = iota // by requests for live blocks and for what was idle between, which is given back
	liveAlone            // by requests for live blocks
	backwards            // as withHoles, the segments from the highest address to the lowest
	inPlace              // as recorded; settings change where the trace begins
)

// sequence is the state at the beginning and the trace behind it.
func (t *caching) sequence(how way) *sequence {
	s := newSequence(t.end + 2*t.live)
	at := make(map[uint64]int32, t.live)
	if how == inPlace {
		t.asItStood(s, at)
	} else {
		var gaps []int32
		for i := range t.begin {
			if how == backwards {
				i = len(t.begin) - 1 - i
			}
			gaps = t.segment(s, &t.begin[i], how != liveAlone, at, gaps)
		}
		for _, slot := range gaps {
			s.drop(slot)
		}
	}
	s.begins = len(s.calls)
	private := t.private()
	for i := 0; i < t.end; i++ {
		switch e := &t.in.Trace[i]; e.Action {
		case torch.ActionAlloc:
			if e.Size > 0 {
				at[e.Addr] = s.add(call{what: ask, bytes: e.Size, stream: uint32(e.Stream), pool: s.pool(poolOf(private, e.Addr))})
			}
		case torch.ActionFreeCompleted:
			if slot, ok := at[e.Addr]; ok {
				s.drop(slot)
				delete(at, e.Addr)
			}
		case torch.ActionOOM:
			s.add(call{what: refused, bytes: max(1, e.Size), stream: uint32(e.Stream)})
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap:
			next, forced := t.givenBack(i)
			if !forced {
				s.add(call{what: empty})
			}
			i = t.frees(s, at, i, next)
		default:
		}
	}
	return s
}

// frees takes the frees out of a run of segments that were given back, which
// ends before entry next, and returns the run's last entry.
func (t *caching) frees(s *sequence, at map[uint64]int32, i, next int) int {
	for ; i < next; i++ {
		if e := &t.in.Trace[i]; e.Action == torch.ActionFreeCompleted {
			if slot, ok := at[e.Addr]; ok {
				s.drop(slot)
				delete(at, e.Addr)
			}
		}
	}
	return next - 1
}

// givenBack is where a run of segments that were given back ends, and whether
// a request forced it: then it is for the replay to find that out again. What
// a program gave back right before the driver was asked looks the same, and
// counts as forced: that favours no setting.
func (t *caching) givenBack(i int) (next int, forced bool) {
	for next = i; next < t.end; next++ {
		switch t.in.Trace[next].Action {
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap, torch.ActionFreeCompleted:
		case torch.ActionSegmentAlloc, torch.ActionSegmentMap, torch.ActionOOM:
			return next, true
		default:
			return next, false
		}
	}
	return next, false
}

// asItStood gives slots to the blocks that are there when the trace begins.
// Those that wait for a stream come back by themselves.
func (t *caching) asItStood(s *sequence, at map[uint64]int32) {
	for i := range t.begin {
		for _, b := range t.begin[i].Blocks {
			if b.State == torch.ActiveAllocated {
				at[b.Address] = s.take()
				s.held = append(s.held, b.Address)
			}
		}
		s.streams = max(s.streams, uint32(t.begin[i].Stream)+1)
		s.pool(t.begin[i].Pool)
	}
}

// segment asks for what a segment held. A segment of the large pool was once a
// single request; that one goes first, and its blocks are then cut out of it.
func (t *caching) segment(s *sequence, g *torch.SnapshotSegment, holes bool, at map[uint64]int32, gaps []int32) []int32 {
	if g.Active == 0 && !holes {
		return gaps
	}
	c := call{what: ask, stream: uint32(g.Stream), pool: s.pool(g.Pool)}
	if holes && g.Large && !g.Expandable {
		c.bytes = g.Total
		s.drop(s.add(c))
	}
	for _, b := range g.Blocks {
		if b.State != torch.Inactive {
			c.bytes = b.Size
			if b.Requested > 0 && t.in.Settings.Round(b.Requested) == b.Size {
				c.bytes = b.Requested
			}
			at[b.Address] = s.add(c)
		} else if holes {
			idle(b.Size, g.Large, func(bytes int64) {
				c.bytes = bytes
				gaps = append(gaps, s.add(c))
			})
		}
	}
	return gaps
}

// private are the segments of private pools that are there at the end or at
// the beginning: the trace does not say of which pool a request was.
func (t *caching) private() (list []torch.SnapshotSegment) {
	for _, l := range [][]torch.SnapshotSegment{t.in.Segments, t.begin} {
		for i := range l {
			if !l[i].Pool.Default() && len(list) < maxPools {
				list = append(list, l[i])
			}
		}
	}
	return list
}

func poolOf(private []torch.SnapshotSegment, addr uint64) torch.PoolID {
	for i := range private {
		if g := &private[i]; addr >= g.Address && addr-g.Address < uint64(g.Total) {
			return g.Pool
		}
	}
	return torch.PoolID{}
}

// machine is the program's own allocator under some settings. capacity 0 is an
// endless device.
func (t *caching) machine(settings *torch.Settings, capacity int64) (machine, error) {
	o := torch.Options{Settings: *settings}
	card := capacity
	if settings.GarbageCollection > 0 && capacity > 0 && t.limited {
		// The limit is a fraction of a larger device.
		card = max(t.beyond, capacity+1)
		o.Fraction = (float64(capacity) + 0.5) / float64(card)
	}
	if t.how == inPlace {
		o.Settings = t.in.Settings
	}
	a, err := torch.New(torch.NewDevice(alloc.NewCard(card), 0), o)
	if err == nil && t.how == inPlace {
		if err = a.Restore(t.begin); err == nil {
			err = a.SetSettings(*settings)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("replay a snapshot under %q: %w", settings.String(), err)
	}
	return pytorch{a}, nil
}

// candidate is something to try.
type candidate struct {
	setting  string
	kind     string
	own      bool
	capacity int64 // 0 means that of the original
	assumes  string
	telling  bool // tried also where a replay is long and no request failed
	make     func(capacity int64) (machine, error)
}

func ofKind(setting, kind string, settings ...kinds.Setting) candidate {
	c := candidate{setting: setting, kind: kind}
	k, err := kinds.ByName(kind)
	if err == nil && k.Modelled {
		c.assumes = "its pool is modelled, not exact"
	}
	c.make = func(capacity int64) (machine, error) {
		if err != nil {
			return nil, fmt.Errorf("replay through another allocator: %w", err)
		}
		x, err := k.New(kinds.Env{Limit: capacity, Card: alloc.NewCard(capacity)}, settings)
		if err != nil {
			return nil, fmt.Errorf("replay through another allocator: %w", err)
		}
		return some{x}, nil
	}
	return c
}

// conf words settings as their user writes them.
func conf(s *torch.Settings, off string) string {
	text := s.String()
	if off != "" {
		if text != "" {
			text += ","
		}
		text += off
	}
	return "PYTORCH_CUDA_ALLOC_CONF=" + text
}

// maxSplits are the limits that are tried, in MiB.
var maxSplits = []int64{512, 256, 128, 64, 32, 20}

// candidates are other settings of the caching allocator, and other allocators.
func (t *caching) candidates() (list []candidate) {
	base := t.in.Settings
	own := func(off string, change func(*torch.Settings)) {
		s := base
		change(&s)
		if s == base || s.Validate() != nil {
			return
		}
		list = append(list, candidate{
			setting: conf(&s, off), kind: "torch", own: true,
			telling: s.Expandable != base.Expandable || s.MaxSplit == 128<<20,
			make:    func(capacity int64) (machine, error) { return t.machine(&s, capacity) },
		})
	}
	if base.Expandable {
		own("expandable_segments:False", func(s *torch.Settings) { s.Expandable = false })
	} else {
		own("", func(s *torch.Settings) { s.Expandable = true })
	}
	largest := t.largestSegment()
	for _, mb := range maxSplits {
		if mb<<20 > largest && !base.Expandable {
			continue // no block is ever that large
		}
		own("", func(s *torch.Settings) { s.MaxSplit = mb << 20 })
	}
	if t.live == 0 || !t.failed {
		for _, n := range []int64{16, 8, 4} {
			own("", func(s *torch.Settings) {
				for i := range s.Divisions {
					s.Divisions[i] = n
				}
			})
		}
		own("roundup_power2_divisions:1", func(s *torch.Settings) { s.Divisions = torch.Settings{}.Divisions })
	} else {
		// Of made programs of which the state and the tail were kept, a third
		// of what this seemed to serve it did not.
		t.out.say("Rounding of sizes was not tried: what it does comes of all requests, and those before the trace are not known.")
	}
	if t.limited {
		own("", func(s *torch.Settings) { s.GarbageCollection = 0.8 })
		own("", func(s *torch.Settings) { s.GarbageCollection = 0.6 })
		if t.beyond > t.capacity {
			list = append(list, candidate{
				setting: "torch.cuda.set_per_process_memory_fraction(1.0)", kind: "torch", own: true, capacity: t.beyond,
				make: func(capacity int64) (machine, error) { return t.machine(&base, capacity) },
			})
		}
	}
	if t.how == inPlace {
		return list // another allocator cannot begin in this one's state
	}
	async := ofKind("PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync", "async")
	async.telling = true
	list = append(append(list, async), others("torch", "async")...)
	slices.SortStableFunc(list, func(a, b candidate) int { // should the budget not do for all
		switch {
		case a.telling && !b.telling:
			return -1
		case b.telling && !a.telling:
			return 1
		}
		return 0
	})
	return list
}

// largestSegment is the largest that the driver was ever asked for.
func (t *caching) largestSegment() (n int64) {
	for i := range t.begin {
		n = max(n, t.begin[i].Total)
	}
	for i := range t.in.Trace[:t.end] {
		if e := &t.in.Trace[i]; e.Action == torch.ActionSegmentAlloc || e.Action == torch.ActionOOM {
			n = max(n, t.in.Settings.Segment(t.in.Settings.Round(max(1, e.Size))))
		}
	}
	return n
}

// others are the other allocators of devices, but for those named.
func others(but ...string) (list []candidate) {
next:
	for _, c := range []candidate{
		ofKind("the allocator bfc of TensorFlow", "bfc", kinds.Setting{Name: "growth", Value: "false"}),
		ofKind("the allocator bfc of TensorFlow, growing", "bfc", kinds.Setting{Name: "growth", Value: "true"}),
		ofKind("the caching allocator of PyTorch", "torch"),
		ofKind("the caching allocator of PyTorch with expandable segments", "torch", kinds.Setting{Name: "expandable_segments", Value: "true"}),
		ofKind("the arena of ONNX Runtime", "ort", kinds.Setting{Name: "arena_extend_strategy", Value: "same_as_requested"}),
		ofKind("the pool of RMM", "rmm-pool"),
		ofKind("CUDA's stream-ordered pool (cudaMallocAsync)", "async"),
		ofKind("the driver alone, without an allocator", "direct"),
	} {
		for _, b := range but {
			if c.kind == b {
				continue next
			}
		}
		list = append(list, c)
	}
	return list
}

// played is a sequence with what it takes for granted.
type played struct {
	*sequence
	assumes string
	// doubts are other ways in which the state may have come about: a setting
	// serves only if it does so in all of them.
	doubts []*sequence
}

// try replays every candidate. One that cannot hold what is built up before the
// recorded requests gets a second chance with the easier sequence, if there is
// one: what fails even that, fails; of what does not, nothing is known.
func (w *work) try(out *Outcome, s, easier played, list []candidate, capacity int64) {
	left, open := 0, 0
	for i := range list {
		c := &list[i]
		room := capacity
		if c.capacity > 0 {
			room = c.capacity
		}
		r, possible := w.attempt(c, s.sequence, room)
		assumes := s.assumes
		if r.broke && r.at < s.begins && easier.sequence != nil {
			if r, possible = w.attempt(c, easier.sequence, room); r.serves(easier.sequence) {
				open++
				continue
			}
			assumes = easier.assumes
		}
		if !possible {
			continue // it cannot be had under these terms
		}
		if !r.played {
			left = len(list) - i
			break
		}
		serves := r.serves(s.sequence)
		for _, doubt := range s.doubts {
			if serves {
				again, _ := w.attempt(c, doubt, room)
				serves = again.serves(doubt)
				r.spare = min(r.spare, again.spare)
			}
		}
		x := reading.Trial{
			Setting: c.setting, Allocator: c.kind, Own: c.own, Serves: serves, Spare: -1, Peak: r.peak,
			Assumes: joined(assumes, c.assumes),
		}
		if x.Serves {
			x.Spare = r.spare
		}
		out.Trials = append(out.Trials, x)
	}
	if open > 0 {
		out.say(fmt.Sprintf("Of %s nothing is known: what was live fits, placed anew without holes, but not the state as it was.", counted(open, "other setting or allocator", "other settings and allocators")))
	}
	if left > 0 {
		out.say(fmt.Sprintf("There are too many requests to try everything: %s left out.", counted(left, "setting was", "settings were")))
	}
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func (w *work) attempt(c *candidate, s *sequence, room int64) (r result, possible bool) {
	m, err := c.make(room)
	if err != nil {
		return r, false
	}
	return w.play(s, m, room), true
}

const buildsUp = "what was live before the trace begins is asked for first, segment by segment in the order of addresses"

// failure tries what would have served the last refused request.
func (t *caching) failure() {
	s, ok := t.baseline()
	if t.stopped {
		t.out.say("There are too many requests to replay them here.")
		return
	}
	t.out.say(t.restored())
	if t.limited {
		t.out.say("The device had room when the request was refused, so a limit refused it; it is taken to be what was reserved at the most.")
	}
	t.short()
	if !ok {
		t.out.say("Replayed under the recorded settings, the requests do not fail as recorded: what broke the memory up is not in the trace, so no setting can be said to serve.")
		return
	}
	if t.how == inPlace {
		t.out.say("Replayed from that state under the recorded settings, the request fails as recorded; from an empty device it does not.")
	} else {
		t.out.say("Replayed from an empty device under the recorded settings, the request fails as recorded.")
	}
	t.least(s.sequence)
	var easier played
	if t.how == withHoles && t.live > 0 {
		easier = played{sequence: t.sequence(liveAlone), assumes: assumed[liveAlone]}
		easier.cut()
	}
	if t.live > 0 && t.how != inPlace {
		for _, how := range []way{backwards, liveAlone} {
			doubt := t.sequence(how)
			doubt.cut()
			s.doubts = append(s.doubts, doubt)
		}
	}
	t.try(&t.out, s, easier, t.candidates(), t.capacity)
}

var assumed = [...]string{
	withHoles: buildsUp + ", with the idle parts between, which are then given back",
	liveAlone: buildsUp,
	inPlace:   "the setting holds from where the trace begins; what was held then stays where it was",
}

// baseline finds a way to come to the state under which the recorded settings
// fail as recorded.
func (t *caching) baseline() (s played, ok bool) {
	ways := []way{withHoles, liveAlone, inPlace}
	if t.live == 0 {
		ways = ways[1:2]
	}
	for _, t.how = range ways {
		s = played{sequence: t.sequence(t.how)}
		s.cut()
		m, err := t.machine(&t.in.Settings, t.capacity)
		if err != nil {
			continue
		}
		if r := t.play(s.sequence, m, t.capacity); r.asRecorded(s.sequence) {
			if t.live > 0 {
				s.assumes = assumed[t.how]
			}
			return s, true
		}
	}
	return s, false
}

// least finds the largest request that could have been served in place of the
// refused one.
func (t *caching) least(s *sequence) {
	m, err := t.machine(&t.in.Settings, t.capacity)
	if err != nil {
		return
	}
	if r := t.play(s, m, t.capacity); !r.asRecorded(s) {
		return
	}
	// The failure has given everything idle back, and so does every try: the
	// state stays as it is, and one replay does for all sizes.
	c := *s.last()
	n, _ := largest(c.bytes, torch.Granule, func(bytes int64) (bool, bool) {
		c.bytes = bytes
		addr, ok := m.serve(s, &c)
		if ok && m.Free(addr) == nil {
			m.giveBack()
		}
		return ok, true
	})
	t.out.least(s.last().bytes, n)
}

// short is what even a perfect placement would have lacked.
func (t *caching) short() {
	live := int64(0)
	s := t.sequence(liveAlone)
	s.cut()
	size := make([]int64, s.slots)
	for i := range s.calls {
		switch x := &s.calls[i]; x.what {
		case ask:
			size[x.slot] = (x.bytes + torch.Granule - 1) &^ (torch.Granule - 1)
			live += size[x.slot]
		case drop:
			live -= size[x.slot]
		default:
		}
	}
	t.out.Short = max(0, live+s.last().bytes-t.capacity)
}

// restored plays the trace from the recorded state, addresses and all, and says
// how much of what the allocator did came out the same.
func (t *caching) restored() string {
	if t.stopped || int64(t.end) > t.left {
		return ""
	}
	t.left -= int64(t.end)
	h := &follower{want: t.in.Trace[:t.end]}
	a, err := torch.New(torch.NewDevice(alloc.NewCard(t.capacity), 0), torch.Options{Settings: t.in.Settings, Tracer: h})
	if err != nil {
		return ""
	}
	if err := a.Restore(t.begin); err != nil {
		return ""
	}
	h.play(a, t)
	if h.odd > 0 || h.next < t.end {
		return fmt.Sprintf("From the recorded state on, %d of the %d recorded actions came out the same, then another.", h.next, t.end)
	}
	return fmt.Sprintf("From the recorded state on, all %s recorded actions came out the same, the refused requests too.", thousands(t.end))
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// follower compares what an allocator does with what was recorded, up to the
// first difference. Addresses are compared within segments.
type follower struct {
	want  []torch.TraceEntry
	next  int
	odd   int
	moved map[uint64]uint64 // recorded blocks to those of the replay
}

// Trace implements torch.Tracer.
func (h *follower) Trace(e torch.TraceEntry) {
	if h.odd > 0 || h.next >= len(h.want) {
		return
	}
	w := &h.want[h.next]
	if w.Action != e.Action || w.Size != e.Size || w.Stream != e.Stream && w.Action != torch.ActionSnapshot {
		h.odd++
		return
	}
	if e.Action == torch.ActionAlloc {
		h.moved[w.Addr] = e.Addr
	}
	h.next++
}

func (h *follower) play(a *torch.Allocator, t *caching) {
	h.moved = map[uint64]uint64{}
	private := t.private()
	for i := 0; i < len(h.want) && h.odd == 0; i++ {
		if h.next > i {
			continue // done by the call before
		}
		switch e := &h.want[i]; e.Action {
		case torch.ActionAlloc, torch.ActionSegmentAlloc, torch.ActionSegmentMap, torch.ActionOOM:
			if !h.request(a, i, private) {
				h.odd++
			}
		case torch.ActionFreeCompleted: // of a block that waited when the trace began
			a.ProcessEvents()
		case torch.ActionFreeRequested:
			addr, ok := h.moved[e.Addr]
			if !ok {
				addr = e.Addr
			}
			delete(h.moved, e.Addr)
			if a.Free(addr) != nil {
				h.odd++
			}
		case torch.ActionSegmentFree, torch.ActionSegmentUnmap:
			if _, forced := t.givenBack(i); forced {
				if !h.request(a, i, private) {
					h.odd++
				}
			} else {
				a.EmptyCache()
			}
		case torch.ActionSnapshot:
			h.next++
		}
		if h.next <= i {
			h.odd++
		}
	}
}

// request asks for what the next allocation or failure at or after entry i is
// about.
func (h *follower) request(a *torch.Allocator, i int, private []torch.SnapshotSegment) bool {
	for ; i < len(h.want); i++ {
		e := &h.want[i]
		if e.Action == torch.ActionAlloc || e.Action == torch.ActionOOM {
			r := torch.Request{Bytes: e.Size, Stream: e.Stream}
			if e.Action == torch.ActionAlloc {
				r.Pool = poolOf(private, e.Addr)
			}
			_, ok := a.AllocateOn(r)
			return ok == (e.Action == torch.ActionAlloc)
		}
	}
	return false
}

// manyCalls is from where on a trace without a failure is replayed only under
// the few settings that tell most.
const manyCalls = 300_000

// peaks compares what a trace without a failure takes of the driver.
func (t *caching) peaks() {
	s := t.sequence(withHoles)
	if len(s.calls) == s.begins {
		return
	}
	assumes := ""
	if t.live > 0 {
		assumes = assumed[withHoles]
	}
	base := t.in.Settings
	list := append([]candidate{{
		setting: asRecorded, kind: "torch", own: true, telling: true,
		make: func(capacity int64) (machine, error) { return t.machine(&base, capacity) },
	}}, t.candidates()...)
	if len(s.calls) > manyCalls {
		list = slices.DeleteFunc(list, func(c candidate) bool { return !c.telling })
	}
	var o Outcome
	t.try(&o, played{sequence: s, assumes: assumes}, played{}, list, 0)
	if len(o.Trials) == 0 {
		t.out.say(o.Replayed)
		return
	}
	t.out.Peaks = o.Trials
	t.out.say(fmt.Sprintf("No request failed. Replayed on a device without end, the %s requests and frees took %s of the driver at the most under the recorded settings; %s were recorded.",
		thousands(len(s.calls)-s.begins), event.FormatBytes(o.Trials[0].Peak), event.FormatBytes(t.peak)))
	t.out.say(o.Replayed)
}
