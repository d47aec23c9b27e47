package launch

import (
	"encoding/binary"
	"fmt"
	"math"

	"tideline/protocol/api"
	"tideline/shared/pipeline"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// The sources: the digits to train on, whose pixels native/dataset holds, and
// made-up elements without end of ideas.
const (
	DigitsElements    = 1438
	digitBytes        = 8*8 + 1
	syntheticElements = 60_000
	syntheticBytes    = 28*28 + 1 // of an element that is small enough to be kept in memory

	sourceDigits    = "digits"
	sourceSynthetic = "synthetic"
)

// readsDigits says whether the digits are something for a model: grey images
// of any side to tell ten classes apart.
func readsDigits(m *zoo.Model) bool {
	return m.Kind == zoo.Images && m.Task == zoo.Classify && m.Channels == 1 && m.Classes.Default == 10
}

// defaultSource is what fits a model.
func defaultSource(model string) string {
	if m, err := zoo.Find(model); err == nil && !readsDigits(m) {
		return sourceSynthetic
	}
	return sourceDigits
}

// checkSource finds a source that is nothing for the model.
func checkSource(w *api.Workload) (out api.Problems) {
	m, err := zoo.Find(w.Model)
	if err != nil || w.Input.Source != sourceDigits || readsDigits(m) {
		return nil
	}
	return api.Problems{{Path: "input.source", Message: "digits are small grey images of ten classes, which is nothing for " + w.Model +
		": it takes " + m.Kind.String() + " for " + m.Task.String() + ". Write source: synthetic, or leave it out"}}
}

// checkExtents finds images and sequences that the model does not take.
func checkExtents(w *api.Workload) (out api.Problems) {
	m, err := zoo.Find(w.Model)
	if err != nil {
		return nil
	}
	for _, n := range w.Image {
		if _, err := m.Image.Of(m.Name, "image", n); err != nil {
			out = append(out, api.Problem{Path: "image", Message: err.Error()})
			break
		}
	}
	for _, n := range w.Sequence {
		if _, err := m.Sequence.Of(m.Name, "sequence", n); err != nil {
			out = append(out, api.Problem{Path: "sequence", Message: err.Error()})
			break
		}
	}
	return out
}

// settings describe the pipeline of a workload for the model's first program.
// The elements of a large model are made as they are read: nothing but small
// ones is held in memory as arrays.
func pipelineSettings(w *api.Workload, p *program.Program) pipeline.Settings {
	var element int64
	for _, v := range p.Inputs {
		element += p.Values[v].Bytes() / int64(p.Batch)
	}
	element = grown(element, w.Image, 2)
	element = grown(element, w.Sequence, 1)
	s := pipeline.Settings{
		Elements: DigitsElements, SourceBytes: digitBytes, ElementBytes: element,
		CopyCost: element * copyCostPerKiB / 1024,
		Map:      pipeline.Map{Parallel: w.Input.Map.Parallel, Cost: w.Input.Map.Cost},
		Shuffle:  w.Input.Shuffle, Seed: w.Seed, Batch: w.Batch, Prefetch: w.Input.Prefetch,
		Epochs: w.Input.Repeat, OpenCost: w.Input.OpenCost, FetchCost: w.Input.FetchCost,
		DropRemainder: w.Input.DropRemainder, RAMBudget: w.Input.RAMBudget,
	}
	if w.Input.Map.Parallel == api.Auto {
		s.Map.Parallel = hostCores
	}
	if w.Input.Source == sourceSynthetic {
		s.Elements, s.SourceBytes = syntheticElements, 0
		if m, err := zoo.Find(w.Model); err == nil && readsDigits(m) {
			s.SourceBytes = syntheticBytes
		}
	}
	s.First = min(w.Input.Skip, s.Elements)
	s.Elements -= s.First
	if w.Input.Take > 0 {
		s.Elements = min(s.Elements, w.Input.Take)
	}
	return s
}

// hostCores is what an automatic number of calls comes to: that of the
// modelled host, so that a rerun elsewhere holds as many results.
const hostCores = 8

// grown scales the bytes of an element with sides or lengths in turn to the
// largest of them.
func grown(bytes int64, list []int, power int) int64 {
	if len(list) < 2 {
		return bytes
	}
	most := list[0]
	for _, n := range list {
		most = max(most, n)
	}
	for range power {
		bytes = bytes * int64(most) / int64(list[0])
	}
	return bytes
}

// Synthetic makes up the content of a model's elements: what Below of its
// inputs allows, the same on every host. There is something to learn in it: a
// label is the element's number modulo the classes, and images and features are
// noise around a pattern of the label; tokens count up in steps of the label,
// from anywhere.
type Synthetic struct {
	inputs []zoo.Input
	seed   uint64
}

// NewSynthetic is for a model of the zoo.
func NewSynthetic(model string, seed uint64) (*Synthetic, error) {
	b, err := zoo.Build(model, zoo.Options{Batch: 1})
	if err != nil {
		return nil, fmt.Errorf("synthetic input: %w", err)
	}
	return &Synthetic{b.Inputs, seed}, nil
}

// Fill implements Data.
func (s *Synthetic) Fill(elements []int32, input int, tensor *program.Value, dst []byte) error {
	if input < 0 || input >= len(s.inputs) || len(tensor.Shape) == 0 || int64(len(elements)) > tensor.Shape[0] || int64(len(dst)) < tensor.Bytes() {
		return fmt.Errorf("fill %s: input %d of %d, %s with %d elements into %d bytes", tensor.Name, input, len(s.inputs), tensor.Shape, len(elements), len(dst))
	}
	each := int(tensor.Shape.Elements() / tensor.Shape[0])
	size := each * int(tensor.DType.Size())
	for i, e := range elements {
		if err := s.element(e, input, tensor, dst[i*size:][:size]); err != nil {
			return err
		}
	}
	return nil
}

// words are the tokens that sequences are made of, and the strides they go by:
// few, so that little data teaches them.
const (
	words   = 61
	strides = 4
)

func (s *Synthetic) element(e int32, input int, tensor *program.Value, dst []byte) error {
	state := s.seed ^ uint64(e)*0x9e3779b97f4a7c15
	draw := func() uint64 { // splitmix64
		state += 0x9e3779b97f4a7c15
		z := (state ^ state>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	below := uint64(s.inputs[input].Below)
	tokens := s.inputs[0].Below > 0
	label := uint64(e)
	if c := uint64(s.inputs[len(s.inputs)-1].Below); c > 0 {
		label %= c
	}
	start, stride := draw()%words, 1+uint64(e)%strides
	at := func(i uint64) uint64 { return (start + i*stride) % words }
	put := func(i int, v uint64) error {
		switch tensor.DType {
		case program.Int32:
			binary.LittleEndian.PutUint32(dst[4*i:], uint32(v))
		case program.Int64:
			binary.LittleEndian.PutUint64(dst[8*i:], v)
		case program.Float32:
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(float32(v)/(1<<24)))
		case program.Float64:
			binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(float64(v)/(1<<24)))
		default:
			return fmt.Errorf("fill %s: no numbers of type %s are made", tensor.Name, tensor.DType)
		}
		return nil
	}
	n := len(dst) / int(tensor.DType.Size())
	for i := range n {
		var v uint64
		switch {
		case below == 0: // a real number from 0 to 1 in units of 2^-24
			v = draw() >> 41
			if (uint64(i)/4+label)%3 == 0 {
				v += 1 << 23
			}
		case input == 0:
			v = at(uint64(i)) % below
		case n > 1 && tokens: // the next token, for each
			v = at(uint64(i)+1) % below
		case n > 1: // a class for each pixel: a border that the label moves
			v = (uint64(i)/16 + label) % below
		default:
			v = label
		}
		if err := put(i, v); err != nil {
			return err
		}
	}
	return nil
}
