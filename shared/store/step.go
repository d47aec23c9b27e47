package store

// Step is one step of the run.
type Step struct {
	Step       int32
	Begin, End int64 // End is Alive while it runs
	Batch      int64
}

// Steps is the track of steps, nil when the run told of none.
func (t *Timeline) Steps() *Track {
	if i, ok := t.trackIx.get(trackKey(StepTrack, 0, 0, 0, 0)); ok {
		return t.tracks[i]
	}
	return nil
}

// StepAt is the step that runs at time at, or the last one before it; false
// when there is none.
func (t *Timeline) StepAt(at int64) (Step, bool) {
	k := t.Steps()
	if k == nil {
		return Step{}, false
	}
	n := k.spans.after(beginCol, at, 0)
	if n == 0 {
		return Step{}, false
	}
	return k.asStep(n - 1), true
}

// FindStep is the step of that number.
func (t *Timeline) FindStep(n int32) (Step, bool) {
	k := t.Steps()
	if k == nil {
		return Step{}, false
	}
	// Steps are numbered from 0 in nearly every run; any other is looked for.
	if i := int(n); i >= 0 && i < k.Spans() && int32(k.spans.at(spanStepCol, i)) == n {
		return k.asStep(i), true
	}
	for i := range k.Spans() {
		if int32(k.spans.at(spanStepCol, i)) == n {
			return k.asStep(i), true
		}
	}
	return Step{}, false
}

func (t *Track) asStep(i int) Step {
	return Step{int32(t.spans.at(spanStepCol, i)), t.spans.at(beginCol, i), t.ended(i), t.spans.at(spanValueCol, i)}
}

// SameInstant is the time in b that corresponds to time at in a: the same
// fraction of the same step where both have it, else the same time.
func SameInstant(a, b *Timeline, at int64) int64 {
	sa, ok := a.StepAt(at)
	if !ok {
		return at
	}
	sb, ok := b.FindStep(sa.Step)
	if !ok {
		return at
	}
	if sa.End == Alive {
		sa.End = max(a.last, at)
	}
	if sb.End == Alive {
		sb.End = b.last
	}
	if at >= sa.End || sa.End <= sa.Begin {
		return sb.End + (at - sa.End)
	}
	return sb.Begin + int64(float64(at-sa.Begin)/float64(sa.End-sa.Begin)*float64(sb.End-sb.Begin))
}
