package xspace

import (
	"bytes"
	"strconv"

	"tideline/shared/ingest/wire"
)

// class is what an event's name makes of it.
type class uint8

const (
	otherEvent class = iota
	allocation
	deallocation
	copying
	hostOp // of TensorFlow's executor on the CPU
)

// stat is a statistic that is read.
type stat uint8

const (
	otherStat stat = iota
	allocatorName
	indexOnHost
	deviceOrdinal
	bytesReserved
	bytesAllocated
	bytesAvailable
	fragmentation
	peakBytes
	requestedBytes
	allocationBytes
	addr
	tfOp
	stepID
	groupID
	regionType
	dataType
	shape
	memcpyDetails
	annotation
	fromOp
	hloOp
	stepNumber
)

var statNames = map[string]stat{
	"allocator_name": allocatorName, "index_on_host": indexOnHost, "device_ordinal": deviceOrdinal,
	"bytes_reserved": bytesReserved, "bytes_allocated": bytesAllocated, "bytes_available": bytesAvailable,
	"fragmentation": fragmentation, "peak_bytes_in_use": peakBytes, "requested_bytes": requestedBytes,
	"allocation_bytes": allocationBytes, "addr": addr, "address": addr, "tf_op": tfOp, "id": stepID,
	"step_id": stepID, "group_id": groupID, "region_type": regionType, "data_type": dataType, "shape": shape,
	"tensor_shape": shape, "tensor_shapes": shape, "memcpy_details": memcpyDetails, "annotation": annotation, "from": fromOp,
	"hlo_op": hloOp, "step_num": stepNumber,
}

// metadata is what ids mean within one plane.
type metadata struct {
	class    map[int64]class
	name     map[int64]uint32
	stat     map[int64]stat
	statName map[int64]uint32
}

type planeReader struct {
	s     *Space
	m     metadata
	plane int32
	line  int32
	spans bool // the line's events are spans
	steps bool
	// marks: the plane is the host's of a program without a device, and has
	// events that say of themselves that they are ops of XLA or steps.
	marks bool
}

func (s *Space) plane(b []byte) error {
	p := planeReader{s: s, plane: int32(len(s.Planes)), m: metadata{
		map[int64]class{}, map[int64]uint32{}, map[int64]stat{}, map[int64]uint32{},
	}}
	var out Plane
	// Metadata may stand behind the lines that use it.
	lines := 0
	r := wire.New(b)
	for r.Next() {
		f := r.Field()
		switch {
		case f.Number == 1 && f.Type == wire.Varint:
			out.ID = f.Int()
		case f.Type != wire.Bytes:
		case f.Number == 2:
			out.Name = f.Text()
		case f.Number == 3:
			lines++
		case f.Number == 4:
			p.eventMeta(f.Data)
		case f.Number == 5:
			p.statMeta(f.Data)
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	out.Lines = make([]Line, 0, lines)
	s.Planes = append(s.Planes, out)
	for r = wire.New(b); r.Next(); {
		if f := r.Field(); f.Number == 3 && f.Type == wire.Bytes {
			if err := p.readLine(f.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// entry splits a map entry, and finds the name in its message.
func entry(b []byte, nameField int32) (id int64, name []byte) {
	for r := wire.New(b); r.Next(); {
		f := r.Field()
		if f.Number == 1 && f.Type == wire.Varint {
			id = f.Int()
		} else if f.Number == 2 && f.Type == wire.Bytes {
			for v := wire.New(f.Data); v.Next(); {
				g := v.Field()
				if g.Number == 1 && g.Type == wire.Varint && id == 0 {
					id = g.Int()
				} else if g.Number == nameField && g.Type == wire.Bytes {
					name = g.Data
				}
			}
		}
	}
	return id, name
}

func (p *planeReader) eventMeta(b []byte) {
	id, name := entry(b, 2)
	p.m.name[id] = p.s.put(name)
	switch {
	case p.s.hostOnly && isHostOp(name, b):
		p.m.class[id] = hostOp
	case string(name) == "MemoryAllocation":
		p.m.class[id] = allocation
	case string(name) == "MemoryDeallocation":
		p.m.class[id] = deallocation
	case bytes.HasPrefix(name, []byte("Memcpy")) || string(name) == "Memset":
		p.m.class[id] = copying
	}
}

// isHostOp: the executor calls an event "node:Type", and shows it as "Type".
func isHostOp(name, meta []byte) bool {
	at := bytes.LastIndexByte(name, ':')
	if at <= 0 || at == len(name)-1 || name[at-1] == ':' {
		return false
	}
	_, shown := entry(meta, 4)
	return bytes.Equal(name[at+1:], shown)
}

func (p *planeReader) statMeta(b []byte) {
	id, name := entry(b, 2)
	p.m.statName[id] = p.s.put(name)
	k := statNames[string(name)]
	p.m.stat[id] = k
	p.marks = p.marks || p.s.hostOnly && (k == hloOp || k == stepNumber)
}

func (p *planeReader) readLine(b []byte) error {
	var l Line
	events := 0
	r := wire.New(b)
	for r.Next() {
		f := r.Field()
		switch {
		case f.Number == 1 && f.Type == wire.Varint:
			l.ID = f.Int()
		case f.Number == 2 && f.Type == wire.Bytes:
			l.Name = f.Text()
		case f.Number == 3 && f.Type == wire.Varint:
			l.Start = f.Int()
		case f.Number == 4 && f.Type == wire.Bytes:
			events++
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	l.Events = events
	plane := &p.s.Planes[p.plane]
	p.line = int32(len(plane.Lines))
	plane.Lines = append(plane.Lines, l)
	p.steps = plane.IsDevice() && l.Name == "Steps"
	p.spans = plane.IsDevice() && (p.steps || l.Name == "TensorFlow Ops" || l.Name == "Framework Ops" || l.Name == "XLA Ops")
	for r = wire.New(b); r.Next(); {
		if f := r.Field(); f.Number == 4 && f.Type == wire.Bytes {
			if err := p.event(&l, plane.IsDevice(), f.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *planeReader) event(l *Line, device bool, b []byte) error {
	var id, offset, duration int64
	stats := false
	r := wire.New(b)
	for r.Next() {
		f := r.Field()
		switch {
		case f.Number == 4:
			stats = true
		case f.Type != wire.Varint:
		case f.Number == 1:
			id = f.Int()
		case f.Number == 2:
			offset = f.Int()
		case f.Number == 3:
			duration = f.Int()
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	at := l.Start*1000 + offset
	switch c := p.m.class[id]; {
	case (c == allocation || c == deallocation) && stats && !device:
		return p.memory(b, at, c == deallocation)
	case c == copying && device && !p.spans:
		return p.copy(b, at, duration, p.m.name[id])
	case p.spans:
		p.s.Spans = append(p.s.Spans, Span{at, duration, p.m.name[id], p.plane, p.line, p.steps})
	case c == hostOp:
		p.s.Spans = append(p.s.Spans, Span{at, duration, p.m.name[id], p.plane, p.line, false})
	case p.marks && stats:
		return p.marked(b, Span{at, duration, p.m.name[id], p.plane, p.line, false})
	}
	return nil
}

// marked takes an event that says of itself what it is.
func (p *planeReader) marked(b []byte, s Span) error {
	op := false
	err := p.stats(b, func(k stat, _ value) {
		op = op || k == hloOp
		s.Step = s.Step || k == stepNumber
	})
	if op || s.Step {
		p.s.Spans = append(p.s.Spans, s)
	}
	return err
}

// value is a statistic's value; texts come as numbers of the Space's.
type value struct {
	n    int64
	f    float64
	text uint32
}

func (p *planeReader) stats(b []byte, visit func(stat, value)) error {
	for r := wire.New(b); r.Next(); {
		if f := r.Field(); f.Number != 4 || f.Type != wire.Bytes {
			continue
		}
		var key stat
		var v value
		in := wire.New(r.Field().Data)
		for in.Next() {
			g := in.Field()
			switch {
			case g.Number == 1 && g.Type == wire.Varint:
				key = p.m.stat[g.Int()]
			case key == otherStat:
			case g.Number == 2 && g.Type == wire.Fixed64:
				v.f = g.Double()
				v.n = int64(v.f)
			case (g.Number == 3 || g.Number == 4) && g.Type == wire.Varint:
				v.n, v.f = g.Int(), float64(g.Int())
			case (g.Number == 5 || g.Number == 6) && g.Type == wire.Bytes:
				v.text = p.s.put(g.Data)
				v.fromText(g.Data)
			case g.Number == 7 && g.Type == wire.Varint:
				v.text = p.m.statName[g.Int()]
				v.fromText([]byte(p.s.texts[v.text]))
			}
		}
		if err := in.Err(); err != nil {
			return err
		}
		if key != otherStat {
			visit(key, v)
		}
	}
	return nil
}

// fromText: statistics travel as text first, so a number may have stayed one.
func (v *value) fromText(b []byte) {
	if len(b) == 0 || len(b) > 24 || b[0] != '-' && (b[0] < '0' || b[0] > '9') {
		return
	}
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		v.n, v.f = n, float64(n)
	} else if f, err := strconv.ParseFloat(string(b), 64); err == nil {
		v.n, v.f = int64(f), f
	}
}

func (p *planeReader) memory(b []byte, at int64, free bool) error {
	m := Memory{Time: at, Free: free, Group: -1, Line: p.line}
	err := p.stats(b, func(k stat, v value) {
		switch k {
		case allocatorName:
			m.Allocator = v.text
		case indexOnHost, deviceOrdinal:
			m.Allocator = p.s.put(strconv.AppendInt(nil, v.n, 10))
		case bytesReserved:
			m.Reserved = v.n
		case bytesAllocated:
			m.InUse = v.n
		case bytesAvailable:
			m.Available, m.HasAvailable = v.n, true
		case fragmentation:
			m.Fragmentation, m.HasFragmentation = v.f, true
		case peakBytes:
			m.Peak = v.n
		case requestedBytes:
			m.Requested = v.n
		case allocationBytes:
			m.Allocated = v.n
		case addr:
			m.Address = uint64(v.n)
		case tfOp:
			if p.s.texts[v.text] != "(null)" {
				m.Op = v.text
			}
		case stepID:
			m.Step = v.n
		case groupID:
			m.Group = v.n
		case regionType:
			m.Region = v.text
		case dataType:
			m.DataType = int32(v.n)
		case shape:
			m.Shape = v.text
		default:
		}
	})
	p.s.Memory = append(p.s.Memory, m)
	return err
}

func (p *planeReader) copy(b []byte, at, duration int64, name uint32) error {
	c := Copy{Start: at, Duration: duration, Name: name, Plane: p.plane}
	err := p.stats(b, func(k stat, v value) {
		switch k {
		case memcpyDetails:
			c.Details = v.text
			c.Bytes = detail(p.s.texts[v.text], "size:")
		case fromOp:
			c.Op = v.text
		case annotation:
			if c.Op == 0 {
				c.Op = v.text
			}
		default:
		}
	})
	p.s.Copies = append(p.s.Copies, c)
	return err
}

// detail is the number behind a key of a text such as "size:4 dest:0 async:1".
func detail(text, key string) int64 {
	for i := 0; i+len(key) <= len(text); i++ {
		if text[i:i+len(key)] != key || i > 0 && text[i-1] != ' ' {
			continue
		}
		var n int64
		for _, c := range text[i+len(key):] {
			if c < '0' || c > '9' || n > 1<<58 {
				break
			}
			n = n*10 + int64(c-'0')
		}
		return n
	}
	return 0
}
