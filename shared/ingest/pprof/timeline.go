package pprof

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/ingest/groups"
)

// maxBlocks bounds what samples that say they are of many blocks become.
const maxBlocks = 1 << 16

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
	bytes, count := p.column("bytes"), p.column("count")
	names, group := p.groups(bytes)
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
			f := event.Fields{{Key: "name", Value: key}, {Key: "kind", Value: "pprof"}}
			groups.Name(&f, names)
			emit(event.Event{Kind: event.AllocatorFacts, Device: event.DeviceID(k), Allocator: event.AllocatorID(k), Text: strs.ID(f.Encode())})
		}
		blocks = append(blocks, event.Event{
			Kind: event.Alloc, Device: event.DeviceID(k), Allocator: event.AllocatorID(k), Address: next, Size: n, Requested: n,
			Op: strs.ID(p.Leaf(s)), Tensor: strs.ID(p.stackText(s)), Category: group[p.Leaf(s)],
		})
		p.ours(s, &blocks[len(blocks)-1])
		next += uint64(n)
		if c := s.blocks(n, value(s, count)); c > 1 && int64(len(blocks))+c <= maxBlocks {
			e := blocks[len(blocks)-1]
			e.Size /= c
			e.Requested = e.Size
			blocks = blocks[:len(blocks)-1]
			for range c {
				blocks = append(blocks, e)
				e.Address += uint64(e.Size)
			}
		}
	}
	emit(event.Event{Kind: event.Annotation, Text: strs.ID("The profile is an instant: times and addresses are made up.")})
	for i := range blocks {
		emit(blocks[i])
	}
	emit(event.Event{Kind: event.End, Cause: uint8(event.EndDone), Text: strs.ID("end of the profile")})
}

// blocks is how many blocks a sample of n bytes is: those that it says, where it
// says that all are of one size, as the profile of a timeline does; else one.
func (s *Sample) blocks(n, count int64) int64 {
	if s.Label("allocator") == "" || count < 1 || n%count != 0 {
		return 1
	}
	for _, l := range s.Labels {
		if l.Key == "bytes" && l.Number == n/count {
			return count
		}
	}
	return 1
}

// ours takes over what only a profile of a timeline has: categories, scopes
// instead of stacks, and blocks that nobody is named for.
func (p *Profile) ours(s *Sample, e *event.Event) {
	c, ok := event.ParseCategory(s.Label("category"))
	if !ok {
		return
	}
	if c != event.Unknown {
		e.Category = c
	}
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

// groups are the functions that hold most, the largest first, and the category
// of each; none of a profile that has categories.
func (p *Profile) groups(bytes int) (names []string, group map[string]event.Category) {
	number := map[string]int{}
	var all []string
	var sum []int64
	for i := range p.Samples {
		s := &p.Samples[i]
		name, n := p.Leaf(s), value(s, bytes)
		if c, ok := event.ParseCategory(s.Label("category")); ok && c != event.Unknown {
			return nil, nil
		}
		if name == "" || name == "("+event.Unknown.String()+")" || n <= 0 || n > 1<<48 {
			continue
		}
		k, ok := number[name]
		if !ok {
			k = len(all)
			number[name] = k
			all, sum = append(all, name), append(sum, 0)
		}
		sum[k] = min(sum[k]+n, 1<<62)
	}
	group = map[string]event.Category{}
	for i, k := range groups.Largest(sum, sum) {
		names = append(names, all[k])
		group[all[k]] = groups.Category(i)
	}
	return names, group
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
