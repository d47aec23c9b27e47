package dataset

import (
	"fmt"
	"unsafe"

	"tideline/shared/program"
)

// Data gives the content of batches to an executor: images scaled to whatever
// size the model takes, and labels. It is a source of elements numbered from
// 0; the zero value has none.
type Data struct {
	digits *Digits // nil: synthetic
	count  int
}

// Training is the digits to train on, in the order of their file.
func Training() (Data, error) {
	train, _, err := Load()
	return Of(train), err
}

// Of is the content of one set of digits.
func Of(d *Digits) Data {
	if d == nil {
		return Data{}
	}
	return Data{d, d.Len()}
}

// Synthetic is a source of n made-up elements: noise from 0 to 1 with labels
// that have nothing to do with it. It is the same on every host.
func Synthetic(n int) Data { return Data{nil, n} }

// Len is the number of elements.
func (d Data) Len() int { return d.count }

// Map is the map stage for one element: it writes a size x size image
// and gives the label.
func (d Data) Map(element int32, image []float32, size int) (label int64, err error) {
	if element < 0 || int(element) >= d.count || len(image) < size*size {
		return 0, fmt.Errorf("element %d of %d into %d of %d pixels: out of range", element, d.count, len(image), size*size)
	}
	if d.digits == nil {
		return noise(image[:size*size], element), nil
	}
	Scale(image, d.digits.Image(int(element)), size)
	return int64(d.digits.Labels[element]), nil
}

// noise fills an image from splitmix64 started with the element's number; the
// first draw is the label's.
func noise(image []float32, element int32) (label int64) {
	state := uint64(element)
	draw := func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	label = int64(draw() % Classes)
	for i := range image {
		image[i] = float32(draw()>>40) / (1 << 24)
	}
	return label
}

// Fill writes the content of the given elements into a tensor of a batch:
// input 0 are the images, float32 [n,h,w,1] with h equal to w, input 1 the
// labels, int64 [n]. Fewer elements than n leave the rest as it was.
func (d Data) Fill(elements []int32, input int, tensor *program.Value, dst []byte) error {
	if int64(len(dst)) < tensor.Bytes() {
		return fmt.Errorf("fill %s: %d bytes given, %s%s needs %d", tensor.Name, len(dst), tensor.DType, tensor.Shape, tensor.Bytes())
	}
	s := tensor.Shape
	switch {
	case input == 0 && tensor.DType == program.Float32 && len(s) == 4 && s[1] == s[2] && s[3] == 1 && len(elements) <= int(s[0]):
		return d.images(elements, int(s[1]), floats(dst))
	case input == 1 && tensor.DType == program.Int64 && len(s) == 1 && len(elements) <= int(s[0]):
		return d.labels(elements, ints(dst))
	}
	return fmt.Errorf("fill %s: input %d, %s%s, with %d elements: want images float32 [n,h,h,1] or labels int64 [n]",
		tensor.Name, input, tensor.DType, s, len(elements))
}

func (d Data) images(elements []int32, size int, dst []float32) error {
	for i, e := range elements {
		if _, err := d.Map(e, dst[i*size*size:][:size*size], size); err != nil {
			return err
		}
	}
	return nil
}

func (d Data) labels(elements []int32, dst []int64) error {
	for i, e := range elements {
		l, err := d.label(e)
		if err != nil {
			return err
		}
		dst[i] = l
	}
	return nil
}

func (d Data) label(element int32) (int64, error) {
	if element < 0 || int(element) >= d.count {
		return 0, fmt.Errorf("element %d of %d: out of range", element, d.count)
	}
	if d.digits == nil {
		return noise(nil, element), nil
	}
	return int64(d.digits.Labels[element]), nil
}

// floats and ints give a tensor's memory, which executors align.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func ints(b []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}
