package driverlog

import (
	"strings"

	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/lines"
)

// Start is a device as TensorFlow found it when it began, and what it then let
// its allocator have.
type Start struct {
	Line     int
	Device   int64 // its number among those of the process
	Name     string
	Bus      string      // PCI address
	Total    bfclog.Size // of the device
	Free     bfclog.Size // of it, before the allocator took anything
	Promised bfclog.Size // to the allocator
}

const maxStarts = 64

// device finds or adds the start of a device. One that was promised its memory
// already begins anew, as of another process in the same text.
func (p *Parser) device(num int, n int64) *Start {
	for i := len(p.rep.Starts) - 1; i >= 0; i-- {
		if d := &p.rep.Starts[i]; d.Device == n {
			if d.Promised.Known {
				break
			}
			p.open = i + 1
			return d
		}
	}
	if len(p.rep.Starts) == maxStarts {
		p.open = 0
		return nil
	}
	p.rep.Starts = append(p.rep.Starts, Start{Line: num, Device: n})
	p.open = len(p.rep.Starts)
	return &p.rep.Starts[p.open-1]
}

// Pool is what XLA's client, which is JAX's, said of a device's allocator.
type Pool struct {
	Line   int
	Device int64
	Limit  int64 // bytes
	Whole  bool  // taken at once
}

// pool reads "XLA backend allocating 3825205248 bytes on device 0 for
// BFCAllocator." and "XLA backend will use up to …".
func (p *Parser) pool(num int, s string) bool {
	_, rest, ok := strings.Cut(s, "XLA backend ")
	if !ok || !strings.Contains(rest, " for BFCAllocator") {
		return false
	}
	x := Pool{Line: num, Whole: strings.HasPrefix(rest, "allocating ")}
	if x.Limit, ok = lines.Int(lines.NumberAfter(rest, "allocating ")); !ok {
		x.Limit, ok = lines.Int(lines.NumberAfter(rest, "will use up to "))
	}
	var on bool
	if x.Device, on = lines.Int(lines.NumberAfter(rest, " on device ")); !ok || !on || x.Limit <= 0 {
		return false
	}
	if len(p.rep.Pools) < maxStarts {
		p.rep.Pools = append(p.rep.Pools, x)
	}
	return true
}

// Pool is the last pool of the device that a line before tells; nil for none.
func (r *Report) Pool(device int64, line int) *Pool {
	for i := len(r.Pools) - 1; i >= 0; i-- {
		if x := &r.Pools[i]; x.Device == device && x.Line < line {
			return x
		}
	}
	return nil
}

// properties reads "Found device 0 with properties:" and the rows that belong
// to it and do not speak of memory.
func (p *Parser) properties(num int, s string) bool {
	if n, ok := lines.Int(lines.NumberAfter(s, "Found device ")); ok && strings.Contains(s, "with properties") {
		p.device(num, n)
		return true
	}
	return false
}

// start takes what a line about memory tells of a device's start.
func (p *Parser) start(num int, s string) {
	if strings.Contains(s, " MB memory") && strings.Contains(s, "reated") {
		p.created(num, s)
		return
	}
	if p.open == 0 {
		return
	}
	d := &p.rep.Starts[p.open-1]
	for _, l := range []string{"totalMemory: ", "Total memory: ", "deviceMemorySize: "} {
		if strings.Contains(s, l) {
			d.Total = sizeAfter(s, l)
		}
	}
	for _, l := range []string{"freeMemory: ", "Free memory: "} {
		if strings.Contains(s, l) {
			d.Free = sizeAfter(s, l)
		}
	}
}

// created reads "Created device /job:…/device:GPU:0 with 52 MB memory:  ->
// device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5"
// and its older form.
func (p *Parser) created(num int, s string) {
	head, tail, _ := strings.Cut(s, " MB memory")
	i := strings.LastIndexByte(head, ' ')
	mb, rest, ok := lines.Digits(head[i+1:])
	if !ok || rest != "" || mb >= 1<<30 {
		return
	}
	n, ok := lines.Int(lines.NumberAfter(head, "device:GPU:"))
	if !ok {
		n, ok = lines.Int(lines.NumberAfter(tail, "device: "))
	}
	if !ok {
		return
	}
	promised := bfclog.ExactSize(int64(mb) << 20)
	if d := p.rep.Started(n, num); d != nil && d.Promised == promised {
		return // another session of the same process
	}
	d := p.device(num, n)
	p.open = 0
	if d == nil {
		return
	}
	d.Promised = promised
	if v, ok := lines.Between(tail, "name: ", ","); ok && len(v) < 128 {
		d.Name = v
	}
	if v, ok := lines.Between(tail, "pci bus id: ", ","); ok && len(v) < 64 {
		d.Bus = v
	}
}

// Started is the last start of the device with a number before a line; nil where
// the text tells none.
func (r *Report) Started(device int64, line int) *Start {
	for i := len(r.Starts) - 1; i >= 0; i-- {
		if d := &r.Starts[i]; d.Device == device && d.Line < line {
			return d
		}
	}
	return nil
}
