package xspace

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tideline/shared/ingest/unzip"
	"tideline/shared/ingest/wire"
)

// Line is one row of a plane.
type Line struct {
	ID     int64
	Name   string
	Start  int64 // nanoseconds
	Events int
}

// Plane is a device or a side of the host.
type Plane struct {
	ID    int64
	Name  string
	Lines []Line
}

// Events is how many events the plane has.
func (p *Plane) Events() int {
	n := 0
	for i := range p.Lines {
		n += p.Lines[i].Events
	}
	return n
}

// IsDevice reports whether the plane is an accelerator's.
func (p *Plane) IsDevice() bool { return strings.HasPrefix(p.Name, "/device:") }

// Memory is one allocation or free, as the allocator stood after it. Bytes.
type Memory struct {
	Time          int64 // picoseconds
	Step          int64 // the id of the event; see Group
	Group         int64 // step grouping; -1 for none
	Reserved      int64 // stack
	InUse         int64
	Available     int64 // limit less both
	Peak          int64 // since the allocator was made
	Requested     int64
	Allocated     int64
	Address       uint64
	Fragmentation float64
	Allocator     uint32 // numbers of texts
	Op            uint32
	Region        uint32
	Shape         uint32
	DataType      int32
	Free          bool
	// HasAvailable and HasFragmentation say that the file tells the figure.
	HasAvailable, HasFragmentation bool
	Line                           int32 // of its plane
}

// Copy is a transfer of a device plane.
type Copy struct {
	Start, Duration int64 // picoseconds
	Bytes           int64
	Name            uint32 // MemcpyH2D and so on
	Details         uint32
	Op              uint32
	Plane           int32
}

// Span is a step or an op of a device plane; of the host's where the program
// has no device.
type Span struct {
	Start, Duration int64 // picoseconds
	Name            uint32
	Plane, Line     int32
	Step            bool
}

// Space is a profile.
type Space struct {
	Zipped   bool
	Bytes    int64 // unpacked
	Hosts    []string
	Errors   []string
	Warnings []string
	Planes   []Plane
	Memory   []Memory // in the file's order, line by line
	Copies   []Copy
	Spans    []Span

	texts    []string
	number   map[string]uint32
	hostOnly bool // no plane is a device's
}

// Text is a text by its number; 0 is the empty one.
func (s *Space) Text(n uint32) string { return s.texts[n] }

func (s *Space) put(b []byte) uint32 {
	if n, ok := s.number[string(b)]; ok {
		return n
	}
	n := uint32(len(s.texts))
	s.texts = append(s.texts, string(b))
	s.number[s.texts[n]] = n
	return n
}

// ErrNoSpace is wrapped when a file is no profile.
var ErrNoSpace = errors.New("it is no XSpace profile")

// Read reads a profile, packed by gzip or not, of at most limit bytes unpacked;
// 0 means the default of package unzip. After an error in the middle of a file
// the planes before it are returned with the error.
func Read(r io.Reader, limit int64) (*Space, error) {
	data, zipped, err := unzip.All(r, limit)
	if err != nil && len(data) == 0 {
		return nil, fmt.Errorf("read profile: %w", err)
	}
	s, derr := Decode(data)
	if s != nil {
		s.Zipped = zipped
	}
	if err == nil {
		err = derr
	}
	if err != nil {
		return s, fmt.Errorf("read profile: %w", err)
	}
	return s, nil
}

// Decode is Read for an unpacked file in memory.
func Decode(data []byte) (*Space, error) {
	s := &Space{Bytes: int64(len(data)), texts: []string{""}, number: map[string]uint32{"": 0}, hostOnly: hostOnly(data)}
	r := wire.New(data)
	for r.Next() {
		f := r.Field()
		if f.Type != wire.Bytes {
			continue
		}
		switch f.Number {
		case 1:
			if err := s.plane(f.Data); err != nil {
				return s.orNil(), err
			}
		case 2:
			s.Errors = append(s.Errors, f.Text())
		case 3:
			s.Warnings = append(s.Warnings, f.Text())
		case 4:
			s.Hosts = append(s.Hosts, f.Text())
		}
	}
	if err := r.Err(); err != nil {
		return s.orNil(), err
	}
	if len(s.Planes) == 0 {
		return nil, fmt.Errorf("%w: it has no planes", ErrNoSpace)
	}
	return s, nil
}

// hostOnly says whether no plane is a device's. Planes begin with their names,
// so that little is looked at.
func hostOnly(data []byte) bool {
	for r := wire.New(data); r.Next(); {
		if f := r.Field(); f.Number != 1 || f.Type != wire.Bytes {
			continue
		}
		for in := wire.New(r.Field().Data); in.Next(); {
			if f := in.Field(); f.Number == 2 && f.Type == wire.Bytes {
				if p := (Plane{Name: f.Text()}); p.IsDevice() {
					return false
				}
				break
			}
		}
	}
	return true
}

func (s *Space) orNil() *Space {
	if len(s.Planes) == 0 {
		return nil
	}
	return s
}
