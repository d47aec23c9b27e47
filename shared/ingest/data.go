package ingest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/chrometrace"
	"tideline/shared/ingest/memorydump"
	"tideline/shared/ingest/pickle"
	"tideline/shared/ingest/pprof"
	"tideline/shared/ingest/snapshot"
	"tideline/shared/ingest/unzip"
	"tideline/shared/ingest/wire"
	"tideline/shared/ingest/xspace"
)

// Data is a file of other tools that is no text: a PyTorch snapshot, a profile
// of TensorFlow or JAX, a memory map of its allocator, a Chrome trace, a pprof
// profile.
type Data struct {
	Reading *reading.Reading
	Cut     string // why not all of it was read; "" if it was
	// Exactly one of these is set.
	Snapshot *snapshot.Snapshot
	Space    *xspace.Space
	Memory   *xspace.MemoryProfile
	Trace    *chrometrace.Trace
	Profile  *pprof.Profile
	Map      *memorydump.Map
	// Dump is the Map in the form of a dump in a log; nil without one.
	Dump *bfclog.Dump
}

// Limits bound what a file may cost. Zero fields mean the defaults of the
// readers' packages, which their errors name.
type Limits struct {
	Unzip  int64 // bytes that may come out of gzip
	Pickle pickle.Limits
}

// Emit tells the file as the events of a timeline.
func (d *Data) Emit(strs *event.Strings, sink event.Sink) {
	switch {
	case d.Snapshot != nil:
		d.Snapshot.Emit(strs, sink)
	case d.Space != nil:
		d.Space.Emit(strs, sink)
	case d.Memory != nil:
		d.Memory.Emit(strs, sink)
	case d.Trace != nil:
		d.Trace.Emit(strs, sink)
	case d.Profile != nil:
		d.Profile.Emit(strs, sink)
	case d.Map != nil:
		tellMap(d.Map, d.Dump, strs, sink)
	}
}

// jsonMarks are names that tell a trace or a memory profile from JSON that
// wraps the lines of a log.
var jsonMarks = []string{`"traceEvents"`, `"displayTimeUnit"`, `"schemaVersion"`, `"deviceProperties"`, `"ph"`, `"memoryProfilePerAllocator"`}

// IsData reports whether a file whose unpacked beginning is head is for
// ReadData rather than for ReadText.
func IsData(head []byte) bool {
	switch Recognise(head) {
	case Pickle, XSpace, MemoryMap:
		return true
	case JSON:
		for _, m := range jsonMarks {
			if bytes.Contains(head, []byte(m)) {
				return true
			}
		}
		return false
	case Log, Binary:
		return pickle.IsPickle(head) || len(head) > 0 && head[0] == 0x0a && bytes.IndexByte(head, 0) >= 0 || isMessage(head)
	default:
		return false
	}
}

// isMessage: the beginning of a protobuf message whose first field is a
// message, as profiles have it, or of a pprof profile, and no text.
func isMessage(head []byte) bool {
	if len(head) < 3 || isText(head) {
		return false
	}
	r := wire.New(head)
	return head[0] == 0x0a && r.Next() || pprof.Is(head)
}

// ReadData reads a file that is no text, packed by gzip or not. A file that is
// cut gives what came before, with Cut saying why. What is something else gives
// an *UnsupportedError.
func ReadData(name string, r io.Reader, l Limits) (*Data, error) {
	in, zipped, err := unzip.Open(r, l.Unzip)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	b := bufio.NewReaderSize(in, 64<<10)
	head, err := b.Peek(HeadBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if !IsData(head) {
		return nil, &UnsupportedError{Name: name, Kind: Recognise(head)}
	}
	d, err := readKind(Recognise(head), head, b, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d.finish(zipped)
	return d, nil
}

// finish notes in the reading what is known of the file around it.
func (d *Data) finish(zipped bool) {
	d.Reading.Facts.Set("gzip", reading.Bool(zipped))
	if d.Cut != "" {
		d.Reading.Open = append(d.Reading.Open, "The file is not whole: "+d.Cut)
	}
}

func readKind(kind Kind, head []byte, r io.Reader, l Limits) (*Data, error) {
	switch {
	case kind == Pickle || pickle.IsPickle(head):
		s, err := snapshot.Read(r, snapshot.Options{Pickle: l.Pickle, Unzip: l.Unzip})
		if s == nil {
			return nil, err
		}
		x := s.Reading()
		return cut(&Data{Reading: &x, Snapshot: s}, err), nil
	case kind == MemoryMap:
		return readMap(r, l)
	case kind == JSON && bytes.Contains(head, []byte(`"memoryProfilePerAllocator"`)):
		p, err := xspace.ReadMemoryProfile(r, l.Unzip)
		if p == nil {
			return nil, err
		}
		x := p.Reading()
		return cut(&Data{Reading: &x, Memory: p}, err), nil
	case kind == JSON:
		t, err := chrometrace.Read(r, l.Unzip)
		if t == nil {
			return nil, err
		}
		x := t.Reading()
		return cut(&Data{Reading: &x, Trace: t}, err), nil
	default:
		return readMessage(r, l)
	}
}

func cut(d *Data, err error) *Data {
	if err != nil {
		d.Cut = err.Error()
	}
	return d
}

// all is all of a file that is kept, as far as the limit allows.
func all(r io.Reader, l Limits) ([]byte, error) {
	limit := l.Unzip
	if limit <= 0 || limit > unzip.DefaultAll {
		limit = unzip.DefaultAll
	}
	raw, _, err := unzip.All(r, limit)
	return raw, err //nolint:wrapcheck // it says what it read
}

// readMessage tells a pprof profile, which has a string table that begins with
// the empty string, from an XSpace.
func readMessage(r io.Reader, l Limits) (*Data, error) {
	raw, err := all(r, l)
	if err != nil && len(raw) == 0 {
		return nil, err
	}
	if p, perr := pprof.Decode(raw); perr == nil {
		if !p.OfMemory() {
			return nil, fmt.Errorf("a pprof profile of %s: none of it is in bytes; expected a profile of memory, such as a heap profile or JAX's save_device_memory_profile", p.Measures())
		}
		x := p.Reading()
		return cut(&Data{Reading: &x, Profile: p}, err), nil
	}
	s, serr := xspace.Decode(raw)
	if s == nil {
		return nil, fmt.Errorf("a protobuf message that is neither a profile of TensorFlow or JAX nor a pprof profile nor a memory map: %w", serr)
	}
	if err == nil {
		err = serr
	}
	x := s.Reading()
	return cut(&Data{Reading: &x, Space: s}, err), nil
}
