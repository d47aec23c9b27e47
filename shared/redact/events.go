package redact

import (
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/export"
)

// Events is a sink that passes a timeline's events on to next without what
// says whose they are. Their strings are in from; the redacted ones are put
// into to.
func (r *Redactor) Events(from, to *event.Strings, next event.Sink) event.Sink {
	return &filter{r: r, from: from, to: to, next: next, ids: map[idOf]event.StringID{}}
}

// use is what a string is used as; one and the same may be an op's name here
// and a series' there.
type use uint8

const (
	asOp use = iota
	asTensor
	asStage
	asSeries
	asFacts
	asPoolFacts
	asSettings
)

type idOf struct {
	id  event.StringID
	use use
}

type filter struct {
	r        *Redactor
	from, to *event.Strings
	next     event.Sink
	ids      map[idOf]event.StringID
	e        event.Event
}

// Emit implements event.Sink.
func (f *filter) Emit(e *event.Event) {
	f.e = *e
	x := &f.e
	op, tensor, text := e.Op, e.Tensor, e.Text
	x.Op, x.Tensor, x.Text = 0, 0, 0
	switch e.Kind {
	case event.Log:
		return // free text
	case event.Annotation:
		word, ok := strings.CutPrefix(f.from.At(text), analysis.VerdictNote)
		if !ok || !f.r.safe(word) {
			return
		}
		x.Text = f.to.ID(analysis.VerdictNote + word)
	case event.StallBegin, event.StallEnd, event.StageBegin, event.StageEnd, event.QueueDepth:
		x.Op = f.id(op, asStage)
	case event.Sample, event.Metric:
		x.Op = f.id(op, asSeries)
	case event.DeviceFacts:
		x.Text = f.id(text, asFacts)
	case event.AllocatorFacts:
		x.Text = f.id(text, asPoolFacts)
	case event.Settings:
		x.Text = f.id(text, asSettings)
	case event.OutOfMemory:
		x.Op, x.Tensor = f.id(op, asOp), f.id(tensor, asTensor)
		if m, err := event.ParseChunkMap(f.from.At(text)); err == nil { // else it is no map, and may be anything
			x.Text = f.to.ID(m.Encode())
		}
	default: // placements, losses and the end lose their words, not their place
		x.Op, x.Tensor = f.id(op, asOp), f.id(tensor, asTensor)
	}
	f.next.Emit(x)
}

func (f *filter) id(id event.StringID, u use) event.StringID {
	if id == 0 {
		return 0
	}
	k := idOf{id, u}
	out, ok := f.ids[k]
	if !ok {
		out = f.to.ID(f.text(f.from.At(id), u))
		f.ids[k] = out
	}
	return out
}

func (f *filter) text(s string, u use) string {
	switch u {
	case asOp:
		return f.r.Name(Op, s)
	case asTensor:
		if export.IsStack(s) {
			return "" // a stack is dropped whole
		}
		return f.r.Name(Tensor, s)
	case asStage:
		return f.r.Name(Stage, s)
	case asSeries:
		return f.r.Name(Series, s)
	case asFacts:
		return f.r.facts(s, Name)
	case asPoolFacts:
		return f.r.facts(s, Allocator)
	default:
		return f.r.facts(s, Run)
	}
}

// facts goes through the fields of facts or settings. Names become
// pseudonyms; another value that is not all ours is left out.
func (r *Redactor) facts(s string, kind Kind) string {
	fields, _ := event.ParseFields(s) // what cannot be read is left out
	return r.fields(fields, kind).Encode()
}

// Fields goes through a run's settings.
func (r *Redactor) Fields(in event.Fields) event.Fields { return r.fields(in, Run) }

func (r *Redactor) fields(fields event.Fields, kind Kind) event.Fields {
	var out event.Fields
	for _, f := range fields {
		if !r.setting(f.Key) {
			continue
		}
		switch {
		case f.Key == "name" || f.Key == "within":
			f.Value = r.Name(kind, f.Value)
		case kind == Allocator && event.IsGroupKey(f.Key): // an op, or a frame of a stack
			f.Value = r.Name(Op, f.Value)
		case f.Key == "full_name":
			if !isDevice(f.Value) {
				continue
			}
		default:
			if !r.ours(f.Value) {
				continue
			}
		}
		out = append(out, f)
	}
	return out
}
