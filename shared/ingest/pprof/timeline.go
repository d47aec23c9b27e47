package pprof

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// maxPlaces keeps ids small in a file that makes up names.
const maxPlaces = 256

// Emit tells the profile as the events of a timeline: one instant, in which
// every sample is a block. The file has neither times nor addresses, so both
// are made up, and the timeline says so.
func (p *Profile) Emit(strs *event.Strings, sink event.Sink) {
	emit := func(e event.Event) {
		e.Step = event.NoStep
		sink.Emit(&e)
	}
	bytes := p.column("bytes")
	places := map[string]int{}
	next := uint64(1) << 32
	var blocks []event.Event
	for i := range p.Samples {
		s := &p.Samples[i]
		n := value(s, bytes)
		if n <= 0 || n > 1<<48 {
			continue
		}
		device, kind := s.Label("device"), s.Label("kind")
		if kind == "" {
			kind = "in use"
		}
		key := kind + " on " + device
		if pool := s.Label("allocator"); pool != "" {
			key = pool // of a timeline of ours
		}
		if device == "" {
			device, key = "no device named", kind
		}
		k, ok := places[key]
		if !ok {
			if len(places) == maxPlaces {
				continue
			}
			k = len(places)
			places[key] = k
			emit(event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(k), Text: strs.ID(event.Fields{
				{Key: "name", Value: device}, {Key: "kind", Value: strings.TrimRight(device, ":0123456789")},
			}.Encode())})
			emit(event.Event{Kind: event.AllocatorFacts, Device: event.DeviceID(k), Allocator: event.AllocatorID(k), Text: strs.ID(event.Fields{
				{Key: "name", Value: key}, {Key: "kind", Value: "pprof"},
			}.Encode())})
		}
		blocks = append(blocks, event.Event{
			Kind: event.Alloc, Device: event.DeviceID(k), Allocator: event.AllocatorID(k), Address: next, Size: n, Requested: n,
			Op: strs.ID(p.Leaf(s)), Tensor: strs.ID(p.stackText(s)),
		})
		p.ours(s, &blocks[len(blocks)-1])
		next += uint64(n)
	}
	emit(event.Event{Kind: event.Annotation, Text: strs.ID("The profile is an instant: times and addresses are made up.")})
	for i := range blocks {
		emit(blocks[i])
	}
	emit(event.Event{Kind: event.End, Cause: uint8(event.EndDone), Text: strs.ID("end of the profile")})
}

// ours takes over what only a profile of a timeline has: categories, scopes
// instead of stacks, and blocks that nobody is named for.
func (p *Profile) ours(s *Sample, e *event.Event) {
	c, ok := event.ParseCategory(s.Label("category"))
	if !ok {
		return
	}
	e.Category = c
	scopes := true
	p.Stack(s, func(f Frame) { scopes = scopes && f.File == "" })
	if !scopes {
		return
	}
	e.Tensor = 0
	if p.Leaf(s) == "("+c.String()+")" {
		e.Op = 0
	}
}

// stackText is a stack, the outermost frame first, one a line.
func (p *Profile) stackText(s *Sample) string {
	var frames []string
	p.Stack(s, func(f Frame) { frames = append(frames, f.Function+" "+f.File+":"+strconv.FormatInt(f.Line, 10)) })
	for i, j := 0, len(frames)-1; i < j; i, j = i+1, j-1 {
		frames[i], frames[j] = frames[j], frames[i]
	}
	return strings.Join(frames, "\n")
}
