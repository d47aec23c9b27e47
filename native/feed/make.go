package feed

import (
	"fmt"

	"tideline/shared/pipeline"
)

// stage numbers for the account of who took the time. Reading an element and
// mapping it are one call here.
const (
	atMap = iota
	atShuffle
	atBatch
	numStages
)

var stageNames = [numStages]string{pipeline.StageMap, pipeline.StageShuffle, pipeline.StageBatch}

// element is one mapped element on its way.
type element struct {
	index int32
	epoch int
	label int64
	image []float32
	err   error
	ready chan struct{} // gets one value when a worker is done with it
}

// make makes one batch.
func (f *Feed) make() (*Batch, error) {
	b := f.blank()
	want := f.sizes.Next()
	f.self = [numStages]int64{}
	for len(b.Indices) < want {
		e, ok := f.element(b)
		if !ok {
			break
		}
		if e.err != nil {
			return nil, fmt.Errorf("map element %d: %w", e.index, e.err)
		}
		f.add(b, e)
	}
	select {
	case <-f.stop:
		return nil, ErrClosed
	default:
	}
	if n := len(b.Indices); n == 0 || n < want && f.o.Settings.DropRemainder {
		return nil, pipeline.ErrEnd
	}
	b.Stage = f.blame()
	return b, nil
}

// blank is an empty batch with room for the largest.
func (f *Feed) blank() *Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.spare); n > 0 {
		b := f.spare[n-1]
		f.spare = f.spare[:n-1]
		*b = Batch{Batch: pipeline.Batch{Indices: b.Indices[:0]}, Images: b.Images[:0], Labels: b.Labels[:0]}
		return b
	}
	n := 0
	for _, s := range f.o.Settings.Batch {
		n = max(n, s)
	}
	return &Batch{
		Batch:  pipeline.Batch{Indices: make([]int32, 0, n)},
		Images: make([]float32, 0, n*f.o.Pixels), Labels: make([]int64, 0, n),
	}
}

// add copies an element into the batch and drops it.
func (f *Feed) add(b *Batch, e *element) {
	begin := f.o.Clock()
	b.Indices = append(b.Indices, e.index)
	b.Images = append(b.Images, e.image...)
	b.Labels = append(b.Labels, e.label)
	f.runner.recycle(e)
	f.self[atBatch] += f.o.Clock() - begin
}

// element takes the next element through the shuffle stage.
func (f *Feed) element(b *Batch) (*element, bool) {
	if f.shuffle == nil {
		e, _, ok := f.pull()
		return e, ok
	}
	before, self, size := f.o.Clock(), f.self, f.shuffle.Len()
	e, pulls, ok := f.shuffle.Next(f.fetch)
	if pulls > 1 {
		b.Filling = true
		f.self = self
		f.self[atShuffle] += f.o.Clock() - before
	}
	if pulls != 1 && f.shuffle.Len() != size {
		f.log.depth(pipeline.StageShuffle, f.shuffle.Len(), f.o.Settings.Shuffle)
	}
	return e, ok
}

// pull takes the next element out of the map stage.
func (f *Feed) pull() (*element, int, bool) {
	begin := f.o.Clock()
	e := f.runner.next()
	f.self[atMap] += f.o.Clock() - begin
	if e == nil {
		return nil, 0, false
	}
	return e, e.epoch, true
}

// blame is the stage that took most of the time.
func (f *Feed) blame() string {
	best := 0
	for i, n := range f.self {
		if n > f.self[best] {
			best = i
		}
	}
	return stageNames[best]
}
