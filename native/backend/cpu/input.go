package cpu

import (
	"fmt"
	"unsafe"

	"tideline/native/feed"
	"tideline/protocol/event"
	"tideline/shared/launch"
	"tideline/shared/pipeline"
	"tideline/shared/program"
)

// Elements is a source of images that can be mapped one by one.
type Elements interface {
	// Map writes element as a size x size image and gives its label. It is
	// called from several goroutines at a time.
	Map(element int32, image []float32, size int) (label int64, err error)
}

// Input is for launch.Options.Input: the pipeline runs with real goroutines on
// this backend's clock.
func (b *Backend) Input(from Elements) func(pipeline.Settings, *program.Program, event.Sink, *event.Strings) (launch.Input, error) {
	return func(s pipeline.Settings, p *program.Program, sink event.Sink, strings *event.Strings) (launch.Input, error) {
		if len(p.Inputs) != 2 || len(p.Values[p.Inputs[0]].Shape) != 4 {
			return nil, fmt.Errorf("program %s: the input delivers images and labels, which is not what it takes", p.Name)
		}
		size := int(p.Values[p.Inputs[0]].Shape[1])
		f, err := feed.New(feed.Options{
			Settings: s, Pixels: size * size, Clock: b.clock.Now, Sink: sink, Strings: strings,
			Map: func(e int32, image []float32) (int64, error) { return from.Map(e, image, size) },
		})
		if err != nil {
			return nil, err
		}
		return &input{f.Pipeline(), f}, nil
	}
}

// input gives the content of a feed's batches to an executor.
type input struct {
	pipeline.Pipeline
	feed *feed.Feed
}

// Close implements launch.Input.
func (in *input) Close() { in.feed.Close() }

// Fill implements launch.Data for the batch that Next gave last.
func (in *input) Fill(_ []int32, i int, tensor *program.Value, dst []byte) error {
	b := in.feed.Current()
	if b == nil {
		return fmt.Errorf("fill %s: no batch was asked for", tensor.Name)
	}
	var src []byte
	if i == 0 {
		src = bytesOf(b.Images)
	} else {
		src = bytesOf(b.Labels)
	}
	if len(src) != len(dst) {
		return fmt.Errorf("fill %s: the batch has %d bytes, the tensor %d", tensor.Name, len(src), len(dst))
	}
	copy(dst, src)
	return nil
}

func bytesOf[T float32 | int64 | uint64](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}
