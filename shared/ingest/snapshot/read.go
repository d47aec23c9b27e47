package snapshot

import (
	"errors"
	"fmt"
	"io"
	"strconv"

	"tideline/shared/ingest/pickle"
	"tideline/shared/ingest/unzip"
)

// Options bound a reading. Zero fields mean the defaults of packages pickle
// and unzip.
type Options struct {
	Pickle pickle.Limits
	Unzip  int64 // bytes that may come out of a gzip file
}

// Setting is one of the allocator's settings, as text.
type Setting struct{ Name, Value string }

// Annotation is a mark that the user's program set.
type Annotation struct {
	Name   string
	Start  bool // else its end
	Device int
	Time   int64 // microseconds since 1970
}

// Trace is what was recorded of one device.
type Trace struct {
	Device   int
	first, n int
}

// Len is the number of events.
func (t Trace) Len() int { return t.n }

// Snapshot is a file's content.
type Snapshot struct {
	Protocol    int      // of the pickle
	Zipped      bool     // gzip around it
	Keys        []string // of the top level, in the file's order; nil in files that are a bare list
	Settings    []Setting
	Annotations []Annotation
	Traces      []Trace // one a device, empty ones too
	Bytes       int64   // of the pickle, unpacked
	Cut         string  // why the file could not be read to its end; "" if it was

	m           *pickle.Machine
	events      column[Event]
	blocks      column[Block]
	segments    []Segment
	frames      []Frame
	lines       []line // of frames, as far as they were asked for
	stackFrames []uint32
	stackEnds   []uint32 // stack 0 is the empty one
	streams     []int64
	pools       []PoolID
	skipped     int
	list        run // of segments
}

// ErrNoSnapshot is wrapped when the pickle holds something else.
var ErrNoSnapshot = errors.New("it is no PyTorch memory snapshot")

// Read reads a snapshot, packed by gzip or not. When the file ends too early
// or turns bad after its beginning, what was read so far is returned together
// with the error.
func Read(r io.Reader, o Options) (*Snapshot, error) {
	in, zipped, err := unzip.Open(r, o.Unzip)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	s := &Snapshot{Zipped: zipped, stackEnds: []uint32{0}, streams: []int64{0}, pools: []PoolID{{}}}
	k := &sink{
		s: s, frameOf: map[Frame]uint32{}, stackOf: map[uint64]uint32{}, nextOf: []uint32{0},
		streams: map[int64]uint16{0: 0}, pools: map[PoolID]uint16{{}: 0},
	}
	s.m = pickle.New(in, k, o.Pickle)
	root, err := s.m.Run()
	s.Protocol, s.Bytes = s.m.Protocol(), s.m.Offset()
	if err != nil {
		return s.partial(fmt.Errorf("read snapshot: %w", err))
	}
	if err := s.open(root, k); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	s.complete()
	s.m.Drop()
	return s, nil
}

// partial is what came before an error: with several devices, which of them
// the events belong to was not told yet, so they all count as the first one's.
func (s *Snapshot) partial(err error) (*Snapshot, error) {
	if len(s.segments) == 0 && s.events.len() == 0 || pickle.Refused(err) {
		return nil, err
	}
	s.Cut = err.Error()
	s.list = run{0, len(s.segments)}
	if n := s.events.len(); n > 0 {
		s.Traces = []Trace{{0, 0, n}}
	}
	s.complete()
	s.m.Drop()
	return s, err
}

func (s *Snapshot) open(root pickle.Value, k *sink) error {
	if kind, n := rowOf(root); kind == segmentRun { // before the trace was added, all there was
		s.list = k.runs[n]
		return nil
	}
	if s.m.Kind(root) != pickle.Dict {
		return fmt.Errorf("%w: the pickle holds %s, expected a dict with the key segments", ErrNoSnapshot, kindWord(s.m.Kind(root)))
	}
	found := false
	var key string
	s.m.Items(root, func(i int, v pickle.Value) bool {
		if i%2 == 0 {
			key, _ = s.m.Text(v)
			s.Keys = append(s.Keys, key)
			return true
		}
		switch key {
		case "segments":
			found = true
			if kind, n := rowOf(v); kind == segmentRun {
				s.list = k.runs[n]
			}
		case "device_traces":
			s.m.Items(v, func(device int, t pickle.Value) bool {
				s.Traces = append(s.Traces, traceOf(device, t, k))
				return true
			})
		case "allocator_settings":
			s.settings(v, "")
		case "external_annotations":
			s.annotations(v)
		}
		return true
	})
	if !found {
		return fmt.Errorf("%w: its keys are %q, expected segments and device_traces", ErrNoSnapshot, s.Keys)
	}
	return nil
}

func traceOf(device int, v pickle.Value, k *sink) Trace {
	t := Trace{Device: device}
	if kind, n := rowOf(v); kind == eventRun {
		t.first, t.n = k.runs[n].first, k.runs[n].n
	}
	return t
}

func kindWord(k pickle.Kind) string {
	switch k {
	case pickle.Dict, pickle.Custom:
		return "a dict"
	case pickle.List:
		return "a list"
	case pickle.Tuple:
		return "a tuple"
	case pickle.Text:
		return "a text"
	default:
		return "a single value"
	}
}

// settings flattens the allocator's settings: nested ones get a dotted name.
func (s *Snapshot) settings(v pickle.Value, prefix string) {
	name := ""
	s.m.Items(v, func(i int, item pickle.Value) bool {
		switch {
		case i%2 == 0:
			name, _ = s.m.Text(item)
		case s.m.Kind(item) == pickle.Dict && prefix == "" && s.m.Len(item) > 0:
			s.settings(item, name+".")
		default:
			s.Settings = append(s.Settings, Setting{prefix + name, s.scalar(item)})
		}
		return true
	})
}

func (s *Snapshot) scalar(v pickle.Value) string {
	switch s.m.Kind(v) {
	case pickle.Bool:
		n, _ := s.m.Int(v)
		return strconv.FormatBool(n != 0)
	case pickle.Int:
		n, _ := s.m.Int(v)
		return strconv.FormatInt(n, 10)
	case pickle.Float:
		f, _ := s.m.Float(v)
		return strconv.FormatFloat(f, 'g', -1, 64)
	default:
		t, _ := s.m.Text(v)
		return t
	}
}

func (s *Snapshot) annotations(v pickle.Value) {
	s.m.Items(v, func(_ int, item pickle.Value) bool {
		if s.m.Kind(item) != pickle.Dict {
			s.skipped++
			return true
		}
		var a Annotation
		field := func(name string) pickle.Value { f, _ := s.m.Lookup(item, name); return f }
		a.Name, _ = s.m.Text(field("name"))
		stage, _ := s.m.Text(field("stage"))
		a.Start = stage == "START"
		device, _ := s.m.Int(field("device"))
		a.Device = int(device)
		a.Time, _ = s.m.Int(field("time_us"))
		s.Annotations = append(s.Annotations, a)
		return true
	})
}

// complete fills in what old files leave out and follows from the rest.
func (s *Snapshot) complete() {
	for i := range s.Segments() {
		g := &s.segments[s.list.first+i]
		at := g.Address
		var requested, active int64
		known := true
		for b := range g.n {
			blk := s.blocks.at(g.first + b)
			if blk.Address == 0 {
				blk.Address = at
			}
			at = blk.Address + uint64(max(blk.Size, 0))
			if blk.State == Inactive {
				continue
			}
			active += blk.Size
			if blk.Requested < 0 {
				known = false
			}
			requested += blk.Requested
		}
		if g.Requested < 0 && known {
			g.Requested = requested
		}
		if g.Active == 0 {
			g.Active = active
		}
	}
}

// Segments are those held at the end, in the file's order.
func (s *Snapshot) Segments() []Segment {
	return s.segments[s.list.first : s.list.first+s.list.n]
}

// Blocks visits a segment's blocks by address.
func (s *Snapshot) Blocks(g *Segment, visit func(b *Block)) {
	for i := range g.n {
		visit(s.blocks.at(g.first + i))
	}
}

// Event is event i of a trace.
func (s *Snapshot) Event(t Trace, i int) *Event { return s.events.at(t.first + i) }

// Frames are the frame numbers of a stack, the innermost first.
func (s *Snapshot) Frames(stack uint32) []uint32 {
	if stack == 0 || int(stack) >= len(s.stackEnds) {
		return nil
	}
	return s.stackFrames[s.stackEnds[stack-1]:s.stackEnds[stack]]
}

// Frame is a frame's file, function and line.
func (s *Snapshot) Frame(n uint32) (file, name string, line int) {
	f := s.frames[n]
	return s.m.TextAt(f.File), s.m.TextAt(f.Name), int(f.Line)
}

// Meta is the text that the user attached to an event, or "".
func (s *Snapshot) Meta(e *Event) string {
	if e.Meta == 0 {
		return ""
	}
	return s.m.TextAt(e.Meta - 1)
}

// Stream is a stream's handle by its number in this file.
func (s *Snapshot) Stream(n uint16) int64 { return s.streams[n] }

// Pool is a pool's id by its number in this file.
func (s *Snapshot) Pool(n uint16) PoolID { return s.pools[n] }

// Skipped is how many entries of lists were not what the list holds.
func (s *Snapshot) Skipped() int { return s.skipped }

// Stacks is how many different stacks there are, without the empty one.
func (s *Snapshot) Stacks() int { return len(s.stackEnds) - 1 }

// Setting is the value of an allocator setting.
func (s *Snapshot) Setting(name string) (string, bool) {
	for _, f := range s.Settings {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}
