package yardstick

// Stopwatch times the runs of one task, stretch by stretch, and keeps the
// shortest time of each: on a busy machine hardly a whole run is left alone,
// but every stretch is, given some runs. A task that is not cut is one stretch.
type Stopwatch struct {
	now   func() int64
	best  []int64
	next  int // the stretch that is being timed
	began int64
	total int64
	lap   func()
}

// NewStopwatch returns one that reads its time, in nanoseconds, from now.
func NewStopwatch(now func() int64) *Stopwatch {
	w := &Stopwatch{now: now}
	w.lap = w.keep
	return w
}

// Run runs the task once, which must be prepared, and returns how long that
// took, in nanoseconds.
func (w *Stopwatch) Run(t *Task) (nanos int64, err error) {
	w.next, w.total = 0, 0
	w.began = w.now()
	if t.Laps != nil {
		err = t.Laps(w.lap)
	} else {
		err = t.Run()
		w.keep()
	}
	return w.total, err
}

// keep ends a stretch.
func (w *Stopwatch) keep() {
	d := w.now() - w.began
	w.total += d
	w.shorten(w.next, d)
	w.next++
	w.began = w.now()
}

func (w *Stopwatch) shorten(k int, nanos int64) {
	if k == len(w.best) {
		w.best = append(w.best, nanos)
	}
	w.best[k] = min(w.best[k], nanos)
}

// Stretches are the shortest times, in nanoseconds, in the order of the run.
func (w *Stopwatch) Stretches() []int64 { return w.best }

// Keep takes what another stopwatch measured of the same task.
func (w *Stopwatch) Keep(stretches []int64) {
	for k, d := range stretches {
		w.shorten(k, d)
	}
}

// Quietest is what the task takes while the machine does nothing else, in
// nanoseconds: the sum of the shortest times of its stretches.
func (w *Stopwatch) Quietest() int64 {
	sum := int64(0)
	for _, d := range w.best {
		sum += d
	}
	return sum
}
