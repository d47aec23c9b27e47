package launch

import (
	"fmt"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/pipeline"
	"tideline/shared/program"
)

// Data is the content of the elements that a pipeline delivers.
type Data interface {
	// Fill writes the given elements, one after the other, into a tensor of
	// the program: input 0 are the images, input 1 the labels.
	Fill(elements []int32, input int, tensor *program.Value, dst []byte) error
}

// copyCostPerKiB is the time to copy a KiB into a batch, in nanoseconds:
// 10 GB/s, a host thread's memcpy. Reading from arrays in memory costs nothing
// beside that.
const copyCostPerKiB = 100

// feed connects a pipeline to an executor.
type feed struct {
	pipeline.Pipeline
	close   func()
	strings *event.Strings
	rt      *exec.Runtime
	data    Data
	inputs  []*program.Value // of the step under way
	held    int              // prefetched batches that host memory is held for
	piece   int64            // bytes of one of them
	// next is the function that the next batch is for, where batches are sent
	// ahead of their steps; nil: that of the step under way.
	next func() (concrete, error)
}

// newFeed opens the input, and says how many elements it will give: -1 for no
// end.
func newFeed(w *api.Workload, p *program.Program, rt *exec.Runtime, o *Options) (*feed, int64, error) {
	s := pipelineSettings(w, p)
	f := &feed{strings: o.Strings, rt: rt, data: o.Data, close: func() {}}
	if err := f.open(s, p, o); err != nil {
		return nil, 0, err
	}
	// Automatic calls come to their number within moments: memory is held for that.
	for _, b := range s.Dataset().Tuned().Buffers(0) {
		if b.Stage == pipeline.StagePrefetch {
			f.piece = b.Bytes
			continue
		}
		if b.Bytes > 0 && !f.hold(b) {
			f.close()
			return nil, 0, exec.ErrOutOfMemory
		}
	}
	left := int64(-1)
	if s.Epochs > 0 || s.Elements == 0 {
		left = int64(s.Elements) * int64(s.Epochs)
	}
	return f, left, f.prefetched(s.Limit())
}

func (f *feed) open(s pipeline.Settings, p *program.Program, o *Options) error {
	if o.Input == nil {
		m, err := pipeline.New(s, f.rt.FeedSink(), o.Strings)
		f.Pipeline = m
		return err
	}
	in, err := o.Input(s, p, f.rt.FeedSink(), o.Strings)
	if err != nil {
		return fmt.Errorf("open the input: %w", err)
	}
	f.Pipeline, f.data, f.close = in, in, in.Close
	return nil
}

// maxPieces bounds how many blocks a buffer of small elements is told as.
const maxPieces = 4096

func (f *feed) hold(b pipeline.Buffer) bool {
	name := b.Stage + " buffer"
	if b.Count > maxPieces {
		return f.rt.HoldHost(name, b.Bytes*int64(b.Count))
	}
	for range b.Count {
		if !f.rt.HoldHost(name, b.Bytes) {
			return false
		}
	}
	return true
}

// prefetched takes memory for the prefetch buffer at its present limit, and
// for the batch that is being made.
func (f *feed) prefetched(limit int) error {
	if f.piece == 0 {
		return nil
	}
	for ; f.held < limit+1; f.held++ {
		if !f.rt.HoldHost(pipeline.StagePrefetch+" buffer", f.piece) {
			return exec.ErrOutOfMemory
		}
	}
	return nil
}

// Next implements exec.Feed.
func (f *feed) Next(now int64) (exec.Batch, error) {
	b, err := f.Pipeline.Next(now)
	if err != nil {
		return exec.Batch{}, err
	}
	if err := f.prefetched(b.Limit); err != nil {
		return exec.Batch{}, err
	}
	out := exec.Batch{Ready: b.Ready, Stage: f.strings.ID(b.Stage)}
	if f.next != nil {
		c, err := f.next()
		if err != nil {
			return exec.Batch{}, err
		}
		out.Plan = c.plan
		f.serve(c.program)
	}
	if f.data != nil {
		out.Input = func(i int, dst []byte) error { return f.data.Fill(b.Indices, i, f.inputs[i], dst) }
	}
	return out, nil
}

// serve tells the feed for which program the next batch is.
func (f *feed) serve(p *program.Program) {
	f.inputs = f.inputs[:0]
	for _, v := range p.Inputs {
		f.inputs = append(f.inputs, &p.Values[v])
	}
}
