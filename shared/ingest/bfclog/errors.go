package bfclog

import (
	"slices"
	"strings"
)

// elsewhere reads what other parts of the runtime print around a dump: the
// driver's refusals, the failing op's error, and what later failures look like.
func (p *parser) elsewhere(r record) bool {
	b := r.body
	switch {
	case strings.Contains(b, "OOM when allocating tensor with shape"):
		return p.tensorError(r)
	case strings.Contains(b, "failed to allocate ") && strings.Contains(b, "from device"):
		return p.refused(r, &p.refusals, numberAfter(b, "("), sizeAfter(b, "failed to allocate "))
	case strings.Contains(b, "failed to alloc ") && strings.Contains(b, "on host"):
		p.driverSaid = numberAfter(b, "failed to alloc ")
		return p.refused(r, &p.pinned, p.driverSaid, Size{})
	case strings.Contains(b, "could not allocate pinned host memory of size:"):
		n, said := numberAfter(b, "of size:"), p.driverSaid
		if p.driverSaid = (Size{}); n == said {
			return true // the caller's word for the driver's
		}
		return p.refused(r, &p.pinned, n, Size{})
	case strings.Contains(b, "Garbage collection: deallocate free memory regions"):
		p.collect = true
		return true
	case strings.Contains(b, "cuMemAllocAsync failed to allocate") || strings.Contains(b, "cuMemAllocFromPoolAsync failed to allocate"):
		return p.async(r)
	case strings.Contains(b, "Free memory/Total memory:"):
		return p.asyncFree(r)
	case strings.HasPrefix(b, "Current allocation summary follows"):
		return p.promised(r)
	case strings.Contains(b, "Ran out of memory trying to allocate"):
		return p.oldRequest(r)
	case strings.Contains(b, "ut of memory while trying to allocate "), strings.Contains(b, "Failed to allocate request for "):
		return p.xlaError(r)
	case strings.Contains(b, "Current usage from device:"):
		return p.usageHeader(r)
	}
	return p.usageRow(r) || p.node(r) || p.face(r)
}

func (p *parser) refused(r record, to *[]refusal, exact, text Size) bool {
	n := exact.Or(text)
	if !n.Known {
		return false
	}
	if len(*to) < maxRefusals {
		*to = append(*to, refusal{r.source, n.N})
	}
	return true
}

// promised: the sentence that ends a request line, on a line of its own.
func (p *parser) promised(r record) bool {
	if d := p.pick(r, func(d *Dump) bool { return d.phase == phaseRequest && !d.HasBar }); d != nil {
		d.Promised = true
	}
	return true
}

// oldRequest is the request line of 2016, which follows its dump.
func (p *parser) oldRequest(r record) bool {
	size := sizeAfter(r.body, "trying to allocate ")
	if !size.Known {
		return false
	}
	d := p.pickOrNew(r,
		func(d *Dump) bool {
			return d.HasBar && !d.Request.Told && (!d.Request.Size.Known || d.Request.Size.Text == size.Text)
		},
		func(d *Dump) bool { return d.HasBar && d.Request.Size.Text == size.Text })
	d.Request.Size, d.Request.Told = size, true
	d.Promised = true // "See logs for memory state."
	d.takeRefusals(p, r.source)
	return true
}

func (p *parser) async(r record) bool {
	b := r.body
	n := numberAfter(b, "failed to allocate ")
	if !n.Known {
		return false
	}
	d := p.newDump(r)
	if f := strings.Fields(b); len(f) > 1 && strings.Contains(f[1], "cuMemAlloc") {
		d.Allocator = f[0]
	}
	d.Async = true
	d.Request.Size, d.Request.Told = n, true
	p.asyncFree(r)
	return true
}

func (p *parser) asyncFree(r record) bool {
	pair, ok := between(r.body, "Free memory/Total memory:", "")
	if !ok {
		return false
	}
	free, total, ok := strings.Cut(strings.TrimSpace(pair), "/")
	f, t := leadingNumber(free), leadingNumber(total)
	d := p.pick(r, func(d *Dump) bool { return d.Async && !d.DriverFree.Known })
	if !ok || !f.Known || !t.Known || d == nil {
		return false
	}
	d.DriverFree, d.DeviceTotal = f, t
	return true
}

// tensorError reads "OOM when allocating tensor with shape[…] and type T on
// DEVICE by allocator NAME [Op:OP] name: PATH".
func (p *parser) tensorError(r record) bool {
	_, rest, _ := strings.Cut(r.body, "OOM when allocating tensor with shape")
	shape, rest, ok := parseShape(rest)
	if !ok {
		return false
	}
	t := Tensor{Shape: shape, HasShape: true}
	t.DType = word(rest, " and type ")
	t.Device, _ = between(rest, " on /", " ,`'\"")
	if t.Device != "" {
		t.Device = "/" + t.Device
	}
	t.Op, _ = between(rest, "[Op:", "]")
	if i := strings.Index(rest, "] name: "); i >= 0 {
		t.Node = strings.TrimSpace(rest[i+len("] name: "):])
	}
	nodeText(rest, &t)
	p.attach(looseError{r.num, r.source, word(rest, " by allocator "), t, Size{}})
	return true
}

// word is the name that follows a label, without what quotes or ends the
// sentence that it stands in.
func word(s, label string) string {
	w, _ := between(s, label, " ,[`'\"")
	return strings.TrimRight(w, ".;:)")
}

// xlaError reads the byte count of XLA's error, which the request line beside
// it gives as rounded text only.
func (p *parser) xlaError(r record) bool {
	b := r.body
	n := numberAfter(b, "while trying to allocate ")
	if !n.Known || !strings.Contains(b, " bytes") {
		n = numberAfter(b, "(")
		if !n.Known || !strings.Contains(b, "B)") {
			// The newest form has rounded text only.
			if n = sizeAfter(b, "while trying to allocate "); !n.Known {
				return false
			}
		}
	}
	allocator, _ := between(b, "with allocator ", " ,")
	p.attach(looseError{r.num, r.source, allocator, Tensor{}, n})
	return true
}

// attach gives an error to the dump that it belongs to: the newest with that
// allocator whose printed size it explains.
func (p *parser) attach(e looseError) {
	d := p.latest(e.source, func(d *Dump) bool { return d.explains(&e) })
	if d == nil {
		for i := range p.loose { // the runtime prints an error several times
			if sameError(&p.loose[i], &e) {
				p.loose[i].tensor.merge(&e.tensor)
				return
			}
		}
		if len(p.loose) < maxNotices {
			p.loose = append(p.loose, e)
		}
		return
	}
	d.claim(&e)
}

func sameError(a, b *looseError) bool {
	return a.source == b.source && a.bytes == b.bytes && a.tensor.HasShape == b.tensor.HasShape &&
		equalShape(a.tensor.Shape, b.tensor.Shape)
}

func equalShape(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func (d *Dump) claim(e *looseError) {
	d.Tensor.merge(&e.tensor)
	if e.bytes.Exact() {
		d.Request.Bytes = d.Request.Bytes.Or(e.bytes)
	} else {
		d.Request.Size = d.Request.Size.Or(e.bytes)
	}
	if d.Allocator == "" {
		d.Allocator = e.allocator
	}
}

// merge fills in what t lacks.
func (t *Tensor) merge(o *Tensor) {
	if !t.HasShape && o.HasShape {
		t.Shape, t.HasShape = o.Shape, true
	}
	for _, x := range []struct{ to, from *string }{
		{&t.DType, &o.DType}, {&t.Device, &o.Device}, {&t.Op, &o.Op}, {&t.Node, &o.Node},
	} {
		if *x.to == "" {
			*x.to = *x.from
		}
	}
}

// explains says whether an error can be that of this dump.
func (d *Dump) explains(e *looseError) bool {
	if e.allocator != "" && d.Allocator != "" && e.allocator != d.Allocator {
		return false
	}
	if e.bytes.Known && !e.bytes.Exact() {
		return d.Request.Size.Text == e.bytes.Text
	}
	if e.bytes.Known {
		return d.fits(e.bytes.N) && (!d.Request.Bytes.Known || d.Request.Bytes == e.bytes)
	}
	if d.Tensor.HasShape {
		return equalShape(d.Tensor.Shape, e.tensor.Shape)
	}
	_, ok := d.elementSize(&e.tensor)
	return ok
}

// fits says whether n bytes print as this dump's request and round to it.
func (d *Dump) fits(n int64) bool {
	if d.Request.Rounded.Known {
		return n <= d.Request.Rounded.N && d.Request.Rounded.N-n < granule
	}
	if d.Request.Size.Text != "" {
		return Human(n) == d.Request.Size.Text
	}
	return true
}

const granule = 256

// elementSize finds the bytes of an element under which the tensor is what the
// request line printed.
func (d *Dump) elementSize(t *Tensor) (int64, bool) {
	n, ok := t.Elements()
	if !ok {
		return 0, false
	}
	if size := DTypeSize(t.DType); size > 0 {
		return size, d.fits(n * size)
	}
	if !d.Request.Size.Known && !d.Request.Rounded.Known {
		return 4, true // float, as nearly always; nothing contradicts it
	}
	for _, size := range []int64{4, 8, 2, 1, 16} {
		if d.fits(n * size) {
			return size, true
		}
	}
	return 0, false
}

// ElementSize is the size of the tensor's elements in bytes, told by its type
// or found by comparing shape and request. False when neither says.
func (d *Dump) ElementSize() (int64, bool) {
	if !d.Tensor.HasShape {
		return 0, false
	}
	return d.elementSize(&d.Tensor)
}

// node reads the graph node that an error names on a line of its own.
func (p *parser) node(r record) bool {
	var t Tensor
	if !nodeText(r.body, &t) {
		return false
	}
	if n := len(p.loose); n > 0 {
		p.loose[n-1].tensor.merge(&t)
	}
	if d := p.latest(r.source, func(d *Dump) bool { return d.Tensor.HasShape }); d != nil {
		d.Tensor.merge(&t)
	}
	return true
}

// nodeText reads "[[Node: NAME = OP[T=DT_FLOAT, …" or "[[{{node NAME}}…".
func nodeText(s string, t *Tensor) bool {
	if name, ok := between(s, "{{node ", "}"); ok {
		t.Node = strings.TrimSpace(name)
		return true
	}
	_, after, ok0 := strings.Cut(s, "[[Node: ")
	if !ok0 {
		return false
	}
	name, rest, ok := strings.Cut(after, " = ")
	if !ok {
		return false
	}
	t.Node = name
	if op, _, ok := strings.Cut(rest, "["); ok && len(op) < 80 {
		t.Op = op
	}
	if dt, ok := between(rest, "T=DT_", ", ]"); ok && t.DType == "" {
		t.DType = strings.ToLower(dt)
	}
	return true
}

func (p *parser) usageHeader(r record) bool {
	name, _ := between(r.body, "allocator: ", " ,")
	if d := p.latest(r.source, func(d *Dump) bool { return name == "" || d.Allocator == "" || d.Allocator == name }); d != nil {
		d.usageOn = true
	}
	return true
}

// usageRow reads "  1.20MiB from NODE" and "Remaining 3 nodes with 1.0KiB".
func (p *parser) usageRow(r record) bool {
	size, rest := scanSize(r.body)
	if !size.Known || !strings.HasPrefix(rest, " from ") {
		return false
	}
	d := p.latest(r.source, func(d *Dump) bool { return d.usageOn })
	if d == nil {
		return false
	}
	if len(d.Usage) < maxSmall {
		d.Usage = append(d.Usage, Holder{size, strings.TrimPrefix(rest, " from ")})
	}
	return true
}

// faces are other errors that the same failure shows itself by.
var faces = []string{
	"Dst tensor is not initialized",
	"Failed to get convolution algorithm",
	"CUBLAS_STATUS_ALLOC_FAILED",
	"Failed to call ThenRnnForward",
}

func (p *parser) face(r record) bool {
	for _, f := range faces {
		if !strings.Contains(r.body, f) {
			continue
		}
		if op, ok := between(r.body, " in order to run ", ": "); ok {
			// The copy of an argument failed; of a dump cut above, its op is lost.
			if d := p.latest(r.source, func(d *Dump) bool { return !d.Request.Told && d.Begun() }); d != nil && d.Request.Op == "" {
				d.Request.Op = op
			}
		}
		if d := p.latest(r.source, func(*Dump) bool { return true }); d != nil && len(d.Faces) < len(faces) {
			if slices.Contains(d.Faces, f) {
				return true
			}
			d.Faces = append(d.Faces, f)
		}
		return true
	}
	return false
}
