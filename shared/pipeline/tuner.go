package pipeline

// Tuner is the prefetch buffer's limit and the rule by which Auto raises it:
// a buffer that was full and later ran empty was too small. It never shrinks.
type Tuner struct {
	limit   int
	auto    bool
	down    bool // the buffer was full since the last raise
	budget  int64
	element int64 // bytes of one buffered batch; 0 while unknown
	claimed int64 // bytes of the budget in use
}

// doubleBelow is the limit from which on growth is by steps of this size.
const doubleBelow = 2048

// NewTuner makes the tuner for a prefetch setting: a fixed limit, or Auto with
// a budget in bytes (0: no limit).
func NewTuner(prefetch int, budget int64) *Tuner {
	if prefetch == Auto {
		return &Tuner{limit: 1, auto: true, budget: budget}
	}
	return &Tuner{limit: prefetch}
}

// Limit is the number of batches to buffer.
func (t *Tuner) Limit() int { return t.limit }

// Element tells the bytes of one batch; the first time, the present limit's
// worth is claimed from the budget. It is granted even when it is more than
// there is; false then.
func (t *Tuner) Element(bytes int64) (within bool) {
	if t.element != 0 {
		return true
	}
	t.element = bytes
	t.claimed = int64(t.limit) * bytes
	return t.budget == 0 || t.claimed <= t.budget
}

// Consumed records that size batches lay in the buffer when one was asked
// for, before it was taken; 0 when the consumer had to wait. It says whether
// the limit was raised.
func (t *Tuner) Consumed(size int) (raised bool) {
	switch {
	case !t.auto:
	case !t.down:
		t.down = size == t.limit
	case size == 0:
		t.down = false
		return t.raise()
	}
	return false
}

func (t *Tuner) raise() bool {
	to := t.limit * 2
	if t.limit >= doubleBelow {
		to = t.limit + doubleBelow
	}
	if t.budget > 0 {
		more := int64(to-t.limit) * t.element
		if t.element == 0 || t.claimed+more > t.budget {
			return false
		}
		t.claimed += more
	}
	t.limit = to
	return true
}
