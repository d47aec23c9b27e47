package exec

import (
	"tideline/protocol/event"
	"tideline/shared/alloc"
)

// Timestamps switch on TensorFlow's experimental timestamped allocator: freed
// memory carries the number of the kernel before it, and a copy to the device
// takes only memory whose last kernel has run, so that it need not wait for
// the compute stream. The numbers say how often the runtime looks: after so
// many kernels or bytes, with at most so many looks outstanding; all zero is
// after each kernel, without a bound. What memory a copy finds then depends on
// time, and so on the Backend.
type Timestamps struct {
	MaxInterval int
	MaxBytes    int64
	MaxPending  int
}

// leastBytes is TensorFlow's floor under MaxBytes in a look's weight.
const leastBytes = 16386

// tracker numbers the kernels of one device.
type tracker struct {
	Timestamps
	counter alloc.Counter
	queue   []tracked // oldest first
	pending int       // their weights
	kernels int       // since the last look
	bytes   int64     // allocated since
	memory  stamped
	front   uint64
	safe    func() uint64 // front, for requests
}

// tracked is a look that is outstanding.
type tracked struct {
	count  uint64
	end    int64
	weight int
}

// stamped is an allocator whose frees can carry stamps.
type stamped interface {
	SetCounter(c *alloc.Counter) error
	SetSafeFrontier(count uint64)
}

// launched notes a kernel that will end at a time. It says whether a look was
// placed behind it.
func (t *tracker) launched(end int64) bool {
	t.kernels++
	if t.bytes < t.MaxBytes && t.kernels < t.MaxInterval {
		return false
	}
	w := int(max(1, t.bytes/max(leastBytes, t.MaxBytes)))
	if t.MaxPending > 0 {
		w = min(t.MaxPending, w)
	}
	t.kernels, t.bytes = 0, 0
	t.queue = append(t.queue, tracked{t.counter.Next(), end, w})
	t.pending += w
	return true
}

// advance takes off what has ended by now and moves the safe frontier.
func (t *tracker) advance(now int64) {
	n := 0
	for n < len(t.queue) && t.queue[n].end <= now {
		t.pending -= t.queue[n].weight
		t.front = t.queue[n].count
		n++
	}
	if n == 0 {
		return
	}
	t.queue = t.queue[:copy(t.queue, t.queue[n:])]
	t.memory.SetSafeFrontier(t.front)
}

// full says whether the host must wait before it launches more.
func (t *tracker) full() bool { return t.MaxPending > 0 && t.pending > t.MaxPending }

// attachTracker lets a device's frees carry stamps.
func (r *Runtime) attachTracker(s *space) error {
	m, ok := s.memory.(stamped)
	if !ok || r.cfg.Timestamps == nil {
		return nil
	}
	t := &tracker{Timestamps: *r.cfg.Timestamps, memory: m}
	if err := m.SetCounter(&t.counter); err != nil {
		return err
	}
	t.front = t.counter.Next() // frontier 0 stands for no constraint
	m.SetSafeFrontier(t.front)
	t.safe = func() uint64 { return t.front }
	s.tracker = t
	return nil
}

// pause lets the host wait until a device's tracker has room.
func (r *Runtime) pause(dev event.DeviceID) {
	t := r.trackerOf(dev)
	if t == nil {
		return
	}
	t.advance(r.backend.Now())
	for t.full() {
		r.backend.WaitUntil(t.queue[0].end)
		t.advance(max(r.backend.Now(), t.queue[0].end))
	}
}

func (r *Runtime) trackerOf(dev event.DeviceID) *tracker {
	if r.cfg.Timestamps == nil || r.dry != nil || r.memory[dev] == noSpace {
		return nil
	}
	return r.spaces[r.memory[dev]].tracker
}
