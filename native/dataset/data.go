package dataset

import (
	"fmt"
	"unsafe"

	"tideline/shared/program"
	"tideline/shared/zoo"
)

// Data gives the content of batches to an executor, in the form that a model
// takes: images of any size and number of channels, with a class each or one
// for each pixel; vectors of features; sequences of tokens, with a class each
// or the tokens that come next. It is a source of elements numbered from 0;
// the zero value has none.
type Data struct {
	digits *Digits // nil: synthetic
	count  int
	// Of the model: whether it reads tokens, how many there are, and how many
	// classes labels tell apart. 0 is not known: the digits' ten.
	tokens     bool
	vocabulary int64
	classes    int64
}

// Training is the digits to train on, in the order of their file; For makes
// other things of their numbers.
func Training() (Data, error) {
	train, _, err := Load()
	return Of(train), err
}

// Of is the content of one set of digits.
func Of(d *Digits) Data {
	if d == nil {
		return Data{}
	}
	return Data{digits: d, count: d.Len()}
}

// Synthetic is a source of n made-up elements: noise with labels that have
// nothing to do with it. It is the same on every host.
func Synthetic(n int) Data { return Data{count: n} }

// For fits data to the inputs of a model, as zoo.Built describes them. A model
// that reads tokens gets text (see Entropy) in place of digits.
func (d Data) For(inputs []zoo.Input) Data {
	for _, in := range inputs {
		switch in.Name {
		case "tokens":
			d.tokens, d.vocabulary = true, in.Below
		case "labels":
			d.classes = in.Below
		}
	}
	return d
}

// Len is the number of elements.
func (d Data) Len() int { return d.count }

// Map is the map stage for one element: it writes a size x size image with as
// many channels as fill it, all alike, and gives the label.
func (d Data) Map(element int32, image []float32, size int) (label int64, err error) {
	pixels := size * size
	if element < 0 || int(element) >= d.count || len(image) < pixels {
		return 0, fmt.Errorf("element %d of %d into %d of %d pixels: out of range", element, d.count, len(image), pixels)
	}
	if d.digits == nil {
		d.noise(image, element)
	} else {
		Scale(image, d.digits.Image(int(element)), size)
		repeat(image, pixels)
	}
	return d.label(element), nil
}

// repeat makes an image of one channel, at the beginning of its room, one of
// as many as there is room for, from the end on.
func repeat(image []float32, pixels int) {
	channels := len(image) / max(1, pixels)
	if channels == 1 {
		return
	}
	for i := pixels - 1; i >= 0; i-- {
		v := image[i]
		for c := range channels {
			image[i*channels+c] = v
		}
	}
}

// noise fills x with numbers from 0 to 1 from splitmix64 started with the
// element's number; the first draw is the label's.
func (d Data) noise(x []float32, element int32) {
	state := uint64(element) + golden
	for i := range x {
		state += golden
		x[i] = float32(mix(state)>>40) / (1 << 24)
	}
}

// label is the class of an element.
func (d Data) label(element int32) int64 {
	classes := d.classes
	if classes == 0 {
		classes = Classes
	}
	switch {
	case d.digits == nil:
		return int64(mix(uint64(element)+golden) % uint64(classes))
	case d.tokens:
		return textOf(element, d.vocabulary, d.classes).class
	}
	return int64(d.digits.Labels[element]) % classes
}

// Fill writes the content of the given elements into a tensor of a batch:
// input 0 is what the model reads, input 1 the labels, int64. What is asked
// for is told by the tensor. Fewer elements than it has room for leave the
// rest as it was.
func (d Data) Fill(elements []int32, input int, tensor *program.Value, dst []byte) error {
	if int64(len(dst)) < tensor.Bytes() {
		return fmt.Errorf("fill %s: %d bytes given, %s%s needs %d", tensor.Name, len(dst), tensor.DType, tensor.Shape, tensor.Bytes())
	}
	for _, e := range elements {
		if e < 0 || int(e) >= d.count {
			return fmt.Errorf("fill %s: element %d of %d: out of range", tensor.Name, e, d.count)
		}
	}
	s, t := tensor.Shape, tensor.DType
	if len(s) == 0 || len(elements) > int(s[0]) {
		return d.unfit(elements, input, tensor)
	}
	each := int(s[1:].Elements())
	switch {
	case input == 0 && t == program.Float32 && len(s) == 4 && s[1] == s[2]:
		for i, e := range elements {
			if _, err := d.Map(e, floats(dst)[i*each:][:each], int(s[1])); err != nil {
				return err
			}
		}
	case input == 0 && t == program.Float32 && len(s) == 2:
		for i, e := range elements {
			d.features(e, floats(dst)[i*each:][:each])
		}
	case input == 0 && t == program.Int32 && len(s) == 2:
		for i, e := range elements {
			fillTokens(d, e, ints32(dst)[i*each:][:each], 0, d.classes)
		}
	case input == 1 && t == program.Int64 && len(s) == 1:
		for i, e := range elements {
			ints(dst)[i] = d.label(e)
		}
	case input == 1 && t == program.Int64 && len(s) == 2:
		for i, e := range elements {
			fillTokens(d, e, ints(dst)[i*each:][:each], 1, d.classes)
		}
	case input == 1 && t == program.Int64 && len(s) == 3 && s[1] == s[2]:
		for i, e := range elements {
			d.pixels(e, ints(dst)[i*each:][:each], int(s[1]))
		}
	default:
		return d.unfit(elements, input, tensor)
	}
	return nil
}

func (d Data) unfit(elements []int32, input int, tensor *program.Value) error {
	return fmt.Errorf("fill %s: input %d, %s%s, with %d elements: want images float32 [n,h,h,c], features float32 [n,f] or tokens int32 [n,s], and labels int64 [n], [n,s] or [n,h,h]",
		tensor.Name, input, tensor.DType, tensor.Shape, len(elements))
}

// features gives a digit as the mean brightness of as many stripes, centred
// as pixels are.
func (d Data) features(element int32, x []float32) {
	if d.digits == nil {
		d.noise(x, element)
		return
	}
	image, n := d.digits.Image(int(element)), len(x)
	for j := range x {
		lo := j * len(image) / n
		hi := max(lo+1, (j+1)*len(image)/n)
		sum := 0
		for _, v := range image[lo:hi] {
			sum += int(v)
		}
		x[j] = float32(float32(sum)/float32(hi-lo)-Mean) * (1 / Deviation)
	}
}

// pixels gives class 0 to the ground and, to the ink, another: the digit's,
// as far as there are so many.
func (d Data) pixels(element int32, y []int64, size int) {
	classes := max(2, d.classes)
	if d.digits == nil {
		for i := range y {
			y[i] = int64(mix(uint64(element)+golden*uint64(i+2)) % uint64(classes))
		}
		return
	}
	ink := 1 + int64(d.digits.Labels[element])%(classes-1)
	var rows, cols sampler
	image := d.digits.Image(int(element))
	for i := range size {
		rows.set(i, size)
		for j := range size {
			cols.set(j, size)
			upper := cols.mix(float32(image[rows.low*Side+cols.low]), float32(image[rows.low*Side+cols.high]))
			lower := cols.mix(float32(image[rows.high*Side+cols.low]), float32(image[rows.high*Side+cols.high]))
			y[i*size+j] = 0
			if rows.mix(upper, lower) > Levels/2 {
				y[i*size+j] = ink
			}
		}
	}
}

// fillTokens writes an element's text, or that from token number skip on. A
// label of as many classes as there are tokens is a next token, for which all
// texts follow one table.
func fillTokens[T int32 | int64](d Data, element int32, x []T, skip int, classes int64) {
	vocabulary := d.vocabulary
	if vocabulary == 0 {
		vocabulary = Alphabet
	}
	if d.digits == nil {
		for i := range x {
			x[i] = T(mix(uint64(element)+golden*uint64(i+skip+2)) % uint64(vocabulary))
		}
		return
	}
	if classes >= vocabulary || skip > 0 {
		classes = 1
	}
	t := textOf(element, vocabulary, classes)
	for range skip {
		t.next()
	}
	for i := range x {
		x[i] = T(t.next())
	}
}

// floats, ints and ints32 give a tensor's memory, which executors align.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func ints(b []byte) []int64 {
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/8)
}

func ints32(b []byte) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
