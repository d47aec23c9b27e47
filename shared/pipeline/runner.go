package pipeline

import "tideline/protocol/event"

// runner is the parallel map stage. It has as many slots as calls; a slot is
// busy from the fetch of its input until its result is taken, and results are
// taken in order.
type runner struct {
	s       *Settings
	cost    func(i int64) int64 // of element i's call
	finish  []int64             // by slot: when the result is there
	fetched []int64             // by slot: when its input was
	behind  []bool              // by slot: it waited for the reader and for nothing else
	workers []int64             // when each is free
	reader  int64               // when the last fetch ended
	next    int64               // element to schedule next
	taken   int64
}

func (r *runner) open(s *Settings) {
	r.s = s
	r.cost = func(int64) int64 { return s.Map.Cost }
	if !s.parallel() {
		return
	}
	n := s.Map.Parallel
	r.finish, r.fetched, r.behind = make([]int64, n), make([]int64, n), make([]bool, n)
	if s.Map.Cores > 0 {
		n = min(n, s.Map.Cores)
	}
	r.workers = make([]int64, n)
}

// start begins to fill all slots.
func (r *runner) start(m *Model) {
	for range r.finish {
		r.schedule(m, m.now)
	}
}

// schedule decides the fate of the next element, whose slot is free from
// time t on.
func (r *runner) schedule(m *Model, t int64) {
	i := r.next
	if total := r.s.total(); total >= 0 && i >= total {
		return
	}
	r.next++
	slot := i % int64(len(r.finish))
	begin, busy := max(r.reader, t), r.reader > t
	r.reader = begin + r.s.readCost(i)
	m.log.stage(begin, r.reader, atSource, 0, r.s.SourceBytes)
	w := r.worker()
	at := max(r.reader, r.workers[w])
	r.workers[w] = at + r.cost(i)
	m.log.stage(at, r.workers[w], atMap, event.StreamID(w), r.s.ElementBytes)
	r.fetched[slot], r.finish[slot], r.behind[slot] = r.reader, r.workers[w], busy && at == r.reader
}

// worker is the one that is free first.
func (r *runner) worker() int {
	best := 0
	for w, t := range r.workers {
		if t < r.workers[best] {
			best = w
		}
	}
	return best
}

// take waits at m.clock for the oldest result and frees its slot. The wait is
// the source's where the reader alone set the pace, whoever worked last.
func (r *runner) take(m *Model) {
	slot := r.taken % int64(len(r.finish))
	r.taken++
	if f := r.fetched[slot]; f > m.clock {
		m.self[atSource] += f - m.clock
		m.clock = f
	}
	if f := r.finish[slot]; f > m.clock {
		stage := atMap
		if r.behind[slot] {
			stage = atSource
		}
		m.self[stage] += f - m.clock
		m.clock = f
	}
	r.schedule(m, m.clock)
}
