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
	// Map writes element as a size x size image with as many channels as fill
	// it, and gives its label. It is called from several goroutines at a time.
	Map(element int32, image []float32, size int) (label int64, err error)
}

// Input is for launch.Options.Input: the pipeline runs with real goroutines on
// this backend's clock. Images with a label each are mapped by the pipeline;
// other inputs, such as tokens, are looked up when a batch is copied, for which
// the source must be launch.Data too.
func (b *Backend) Input(from Elements) func(pipeline.Settings, *program.Program, event.Sink, *event.Strings) (launch.Input, error) {
	return func(s pipeline.Settings, p *program.Program, sink event.Sink, strings *event.Strings) (launch.Input, error) {
		o := feed.Options{Settings: s, Clock: b.clock.Now, Sink: sink, Strings: strings}
		data, looked := from.(launch.Data)
		switch {
		case len(p.Inputs) == 2 && imagesAndLabels(&p.Values[p.Inputs[0]], &p.Values[p.Inputs[1]]):
			shape := p.Values[p.Inputs[0]].Shape
			o.Pixels, looked = int(shape[1:].Elements()), false
			o.Map = func(e int32, image []float32) (int64, error) { return from.Map(e, image, int(shape[1])) }
		case looked:
			o.Pixels, o.Map = 1, func(int32, []float32) (int64, error) { return 0, nil }
		default:
			return nil, fmt.Errorf("program %s: the input delivers images and labels, which is not what it takes", p.Name)
		}
		f, err := feed.New(o)
		if err != nil {
			return nil, err
		}
		if !looked {
			data = nil
		}
		return &input{f.Pipeline(), f, data}, nil
	}
}

func imagesAndLabels(x, y *program.Value) bool {
	return x.DType == program.Float32 && len(x.Shape) == 4 && x.Shape[1] == x.Shape[2] &&
		y.DType == program.Int64 && len(y.Shape) == 1
}

// input gives the content of a feed's batches to an executor.
type input struct {
	pipeline.Pipeline
	feed *feed.Feed
	data launch.Data // what is looked up; nil when the feed has the content
}

// Close implements launch.Input.
func (in *input) Close() { in.feed.Close() }

// Fill implements launch.Data for the batch that Next gave last.
func (in *input) Fill(_ []int32, i int, tensor *program.Value, dst []byte) error {
	b := in.feed.Current()
	if b == nil {
		return fmt.Errorf("fill %s: no batch was asked for", tensor.Name)
	}
	if in.data != nil {
		return in.data.Fill(b.Indices, i, tensor, dst)
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
