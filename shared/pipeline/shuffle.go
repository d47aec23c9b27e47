package pipeline

// shuffler is the shuffle stage: Shuffler over items, in the asking thread.
type shuffler struct {
	m     *Model
	s     *Stage
	i     int
	in    iterator
	buf   *Shuffler[item]
	seeds *Seeds

	th    *thread // whose turn it is
	saved []int64
	fetch func() (item, int, bool)
	turn  int // of a fused repeat
	some  bool
}

func (m *Model) buildShuffle(i int, in iterator) *shuffler {
	s := &m.d.Stages[i]
	x := &shuffler{m: m, s: s, i: i, in: in, seeds: NewSeeds(s.Seed, s.Fixed), saved: make([]int64, len(m.d.Stages))}
	x.buf = NewShuffler[item](s.N, x.seeds.Next())
	x.fetch = x.pull
	return x
}

func (x *shuffler) reset() {
	x.buf.Reset(x.seeds.Next())
	x.turn, x.some = 0, false
	x.in.reset()
}

// next takes a random element. The time of filling the buffer is this
// stage's; later ones fetch one for one.
func (x *shuffler) next(th *thread) (item, bool) {
	x.th = th
	before, size := th.clock, x.buf.Len()
	copy(x.saved, th.self)
	e, pulls, ok := x.buf.Next(x.fetch)
	if pulls > 1 {
		copy(th.self, x.saved)
		th.self[x.i] += th.clock - before
		th.filling = true
	}
	if pulls != 1 && x.buf.Len() != size {
		x.m.log.set(th.clock, x.i, x.buf.Len(), x.s.N)
	}
	return e, ok
}

func (x *shuffler) pull() (item, int, bool) {
	e, ok := x.in.next(x.th)
	if x.s.Fused {
		for !ok && x.some && (x.s.Times < 0 || x.turn+1 < x.s.Times) {
			x.turn++
			x.some = false
			x.in.reset()
			e, ok = x.in.next(x.th)
		}
		ok = ok && x.s.Times != 0
		x.some = x.some || ok
		e.epoch = int32(x.turn)
		return e, x.turn, ok
	}
	if x.s.ByEpoch {
		return e, int(e.epoch), ok
	}
	return e, 0, ok
}
