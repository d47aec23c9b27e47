package launch

import (
	"tideline/protocol/api"
	"tideline/shared/pipeline"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// The sources: the digits to train on, whose pixels native/dataset holds, as
// many texts made by a rule, and made-up elements without end of ideas.
const (
	DigitsElements    = 1438
	digitBytes        = 8*8 + 1
	syntheticElements = 60_000
	syntheticBytes    = 28*28 + 1 // of an element that is small enough to be kept in memory

	sourceDigits    = "digits"
	sourceText      = "text"
	sourceSynthetic = "synthetic"
)

// small says whether a model is made for the digits: grey images to tell ten
// classes apart.
func small(m *zoo.Model) bool {
	return m.Kind == zoo.Images && m.Task == zoo.Classify && m.Channels == 1 && m.Classes.Default == 10
}

// defaultSource is what suits a model.
func defaultSource(model string) string {
	m, err := zoo.Find(model)
	switch {
	case err != nil || small(m):
		return sourceDigits
	case m.Kind == zoo.Tokens:
		return sourceText
	}
	return sourceSynthetic
}

// checkSource finds a source that is nothing for the model.
func checkSource(w *api.Workload) api.Problems {
	m, err := zoo.Find(w.Model)
	in := w.Input.Source
	if err != nil || in != sourceDigits && in != sourceText || (in == sourceText) == (m.Kind == zoo.Tokens) {
		return nil //nolint:nilerr // an unknown model is Validate's affair
	}
	return api.Problems{{Path: "input.source", Message: in + " is nothing for " + w.Model + ": it takes " + m.Kind.String() +
		". Write source: " + defaultSource(w.Model) + ", or leave it out"}}
}

// checkExtents finds images and sequences that the model does not take.
func checkExtents(w *api.Workload) (out api.Problems) {
	m, err := zoo.Find(w.Model)
	if err != nil {
		return nil //nolint:nilerr // an unknown model is Validate's affair
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

// pipelineSettings describe the pipeline of a workload for the model's first program.
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
		DropRemainder: w.Input.DropRemainder, RAMBudget: w.Input.RAMBudget, Cache: w.Input.Cache,
		Interleave: pipeline.Interleave{Cycle: w.Input.Interleave.Cycle, Block: w.Input.Interleave.Block, Parallel: w.Input.Interleave.Parallel},
	}
	if w.Input.Source == sourceSynthetic {
		s.Elements, s.SourceBytes = syntheticElements, 0
		if m, err := zoo.Find(w.Model); err == nil && small(m) {
			s.SourceBytes = syntheticBytes
		}
	}
	if w.Input.Source == sourceText {
		s.SourceBytes = 0 // made as it is read
	}
	s.First = min(w.Input.Skip, s.Elements)
	s.Elements -= s.First
	if w.Input.Take > 0 {
		s.Elements = min(s.Elements, w.Input.Take)
	}
	return s
}

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
