package chrometrace

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/shared/ingest/jsontext"
	"tideline/shared/ingest/unzip"
)

// Flavour is who wrote the trace.
type Flavour uint8

// The flavours.
const (
	Other Flavour = iota
	TensorFlow
	PyTorch
)

// String is the flavour's name.
func (f Flavour) String() string {
	return [...]string{"unknown", "tensorflow", "pytorch"}[f]
}

// Process is a group of rows.
type Process struct{ ID, Name uint32 } // numbers of texts

// Thread is one row.
type Thread struct{ Process, ID, Name uint32 }

// Copy is one transfer, or its launch on the host.
type Copy struct {
	Start, Duration int64 // nanoseconds
	Bytes           int64
	Name            uint32
	Process, Thread uint32
	Device          bool // the device's own row
}

// Memory is one [memory] instant of PyTorch's profiler. Bytes.
type Memory struct {
	Time       int64 // nanoseconds
	Bytes      int64 // negative for a free
	Address    uint64
	Allocated  int64 // after the event; -1 where the file does not say
	Reserved   int64 // likewise
	DeviceType int32 // 0 is the CPU, 1 CUDA
	DeviceID   int32

	// Told by traces of timelines of ours; else 0.
	Requested            int64
	Op, Tensor, Category uint32 // numbers of texts
	Allocator            uint32 // likewise
}

// Counter is one value of a counter's series.
type Counter struct {
	Time         int64 // nanoseconds
	Value        float64
	Name, Series uint32
	Process      uint32
}

// Trace is what was read.
type Trace struct {
	Zipped    bool
	Flavour   Flavour
	Unit      string // displayTimeUnit, as written
	Keys      []string
	Processes []Process
	Threads   []Thread
	Copies    []Copy
	Memory    []Memory
	Counters  []Counter
	Events    int  // all, the empty ones left out
	Empty     int  // {} among the events
	LastEmpty bool // the last one is

	texts  []string
	number map[string]uint32
}

// Text is a text by its number; 0 is the empty one.
func (t *Trace) Text(n uint32) string { return t.texts[n] }

func (t *Trace) put(b []byte) uint32 {
	if n, ok := t.number[string(b)]; ok {
		return n
	}
	n := uint32(len(t.texts))
	t.texts = append(t.texts, string(b))
	t.number[t.texts[n]] = n
	return n
}

// MaxKept bounds each of the lists of a Trace.
const MaxKept = 8_000_000

// ErrNoTrace is wrapped when the JSON is something else.
var ErrNoTrace = errors.New("it is no Chrome trace")

// Read reads a trace, packed by gzip or not; limit bounds what comes out of a
// packed one, 0 being the default of package unzip. Where a file turns bad, as
// old PyTorch traces with unescaped quotes do, what came before is returned
// with the error.
func Read(r io.Reader, limit int64) (*Trace, error) {
	in, zipped, err := unzip.Open(r, limit)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	p := parser{d: jsontext.New(in), t: &Trace{Zipped: zipped, texts: []string{""}, number: map[string]uint32{"": 0}}}
	if err := p.file(); err != nil {
		err = fmt.Errorf("read trace: %w", err)
		if p.t.Events == 0 || errors.Is(err, ErrNoTrace) {
			return nil, err
		}
		p.finish()
		return p.t, err
	}
	p.finish()
	return p.t, nil
}

// finish decides what only the names of processes tell.
func (p *parser) finish() {
	t := p.t
	device := map[uint32]bool{}
	for _, x := range t.Processes {
		if strings.HasPrefix(t.Text(x.Name), "/device:") {
			device[x.ID] = true
			if t.Flavour == Other {
				t.Flavour = TensorFlow
			}
		}
		if t.Flavour == Other && strings.HasPrefix(t.Text(x.Name), "/host:") {
			t.Flavour = TensorFlow
		}
	}
	for i := range t.Copies {
		if c := &t.Copies[i]; device[c.Process] {
			c.Device = true
		}
	}
}
