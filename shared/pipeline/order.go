package pipeline

// maxEpochsInBuffer bounds the shuffle buffer over a short source: it is not
// filled on while it holds elements of more epochs than this.
const maxEpochsInBuffer = 3

// Shuffler is the shuffle stage over elements of any kind: a buffer of which
// a random element leaves when the next one comes.
type Shuffler[T any] struct {
	ring   []T
	slices []slice // one per epoch in the buffer
	state  uint64  // of splitmix64
	ended  bool
}

// slice is the range of one epoch, counted in elements since the beginning;
// element i lies at i modulo the ring's size.
type slice struct {
	start, end int64
	epoch      int
}

// NewShuffler makes a buffer of k elements, at least one.
func NewShuffler[T any](k int, seed uint64) *Shuffler[T] {
	return &Shuffler[T]{ring: make([]T, max(1, k)), state: seed, slices: make([]slice, 0, maxEpochsInBuffer+1)}
}

// Reset empties the buffer for another pass.
func (s *Shuffler[T]) Reset(seed uint64) {
	clear(s.ring)
	s.slices, s.state, s.ended = s.slices[:0], seed, false
}

// Len is the number of elements in the buffer.
func (s *Shuffler[T]) Len() int {
	if len(s.slices) == 0 {
		return 0
	}
	return int(s.slices[len(s.slices)-1].end - s.slices[0].start)
}

// Next fills the buffer through fetch, which gives an element and its epoch or
// false at the end, and takes a random element of the oldest epoch. pulls is
// the number of elements fetched: all of the buffer's at first, then one.
func (s *Shuffler[T]) Next(fetch func() (T, int, bool)) (x T, pulls int, ok bool) {
	for !s.ended && s.Len() < len(s.ring) && len(s.slices) <= maxEpochsInBuffer {
		e, epoch, more := fetch()
		if !more {
			s.ended = true
			break
		}
		pulls++
		s.put(e, epoch)
	}
	if s.Len() == 0 {
		return x, pulls, false
	}
	return s.take(), pulls, true
}

func (s *Shuffler[T]) put(e T, epoch int) {
	last := len(s.slices) - 1
	if last < 0 || s.slices[last].epoch != epoch {
		var at int64
		if last >= 0 {
			at = s.slices[last].end
		}
		s.slices = append(s.slices, slice{at, at, epoch})
		last++
	}
	s.ring[s.slices[last].end%int64(len(s.ring))] = e
	s.slices[last].end++
}

// take removes a random element of the front slice; the front's first element
// moves into its place.
func (s *Shuffler[T]) take() T {
	for s.slices[0].start == s.slices[0].end {
		copy(s.slices, s.slices[1:])
		s.slices = s.slices[:len(s.slices)-1]
	}
	front := &s.slices[0]
	n := int64(len(s.ring))
	at := (front.start + int64(s.draw(uint64(front.end-front.start)))) % n
	first := front.start % n
	x := s.ring[at]
	s.ring[at] = s.ring[first]
	var none T
	s.ring[first] = none // so that the buffer keeps nothing alive
	front.start++
	return x
}

// draw is a random number below n.
func (s *Shuffler[T]) draw(n uint64) uint64 {
	s.state += 0x9e3779b97f4a7c15
	return mix(s.state) % n
}

// Seeds are the shuffle's seeds, iteration after iteration: the given one, and
// then others drawn from it, or always the same.
type Seeds struct {
	next, state uint64
	fixed       bool
}

// NewSeeds makes the seeds of a shuffle stage.
func NewSeeds(seed uint64, fixed bool) *Seeds { return &Seeds{seed, ^seed, fixed} }

// Next is the next iteration's seed.
func (s *Seeds) Next() uint64 {
	out := s.next
	if !s.fixed {
		s.state += 0x9e3779b97f4a7c15
		s.next = mix(s.state)
	}
	return out
}

// mix is the output function of splitmix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
