package chrome

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/export"
)

// pool is an allocator's figures, with what was changed since they were
// written.
type pool struct {
	device         event.DeviceID
	inUse, highest int64 // bytes now, and the most since they were written
	reserved       int64
	by             [event.NumCategories]int64
	changed        [event.NumCategories]bool
	usedChanged    bool
	heldChanged    bool
	dirty          bool
}

// deviceBytes are the figures that the instants of a device carry.
type deviceBytes struct{ allocated, reserved int64 }

const maxPlaces = 1 << 12

func (w *Writer) pool(id event.AllocatorID, dev event.DeviceID) *pool {
	for int(id) >= len(w.pools) && len(w.pools) < maxPlaces {
		w.pools = append(w.pools, pool{})
	}
	if int(id) >= len(w.pools) {
		return nil
	}
	p := &w.pools[id]
	p.device = dev
	if !p.dirty {
		p.dirty, p.highest = true, p.inUse
		w.dirty = append(w.dirty, id)
	}
	return p
}

func (w *Writer) bytesOf(dev event.DeviceID) *deviceBytes {
	for int(dev) >= len(w.devices) && len(w.devices) < maxPlaces {
		w.devices = append(w.devices, deviceBytes{})
	}
	if int(dev) >= len(w.devices) {
		return &deviceBytes{}
	}
	return &w.devices[dev]
}

// memory follows what changes memory. Counters are written once for all
// changes of one nanosecond: with their last value, and their highest where
// that differs, so that no peak is lost.
func (w *Writer) memory(e *event.Event) {
	if e.Time != w.now {
		w.flushMemory()
		w.now = e.Time
	}
	p := w.pool(e.Allocator, e.Device)
	if p == nil {
		return
	}
	own := w.places.Pool(e.Allocator).Within == "" // not a part of another's
	d := w.bytesOf(e.Device)
	switch e.Kind {
	case event.RegionAdd, event.RegionRemove:
		n := e.Size
		if e.Kind == event.RegionRemove {
			n = -n
		}
		p.reserved, p.heldChanged = p.reserved+n, true
		if own {
			d.reserved += n
		}
		return
	default:
	}
	taken := e.Kind == event.Forward
	w.live.Take(e, func(k export.Key, b *export.Block) {
		p.change(b, -1)
		if own && !taken {
			d.allocated -= b.Size
			w.block(k, b, -b.Size, e.Time, d)
		}
	}, func(k export.Key, b *export.Block) {
		p.change(b, 1)
		if own && !taken {
			d.allocated += b.Size
			w.block(k, b, b.Size, e.Time, d)
		}
	})
}

func (p *pool) change(b *export.Block, sign int64) {
	p.inUse += sign * b.Size
	p.highest = max(p.highest, p.inUse)
	p.usedChanged = true
	if c := b.Category; int(c) < event.NumCategories {
		p.by[c] += sign * b.Size
		p.changed[c] = true
	}
}

// block is one allocation (bytes above zero) or free.
func (w *Writer) block(k export.Key, b *export.Block, bytes, at int64, d *deviceBytes) {
	pid := w.device(b.Device)
	tr := w.track(trackKey{pid, allocations, 0}, "allocations")
	w.item('i', pid, tr.lane(0), "[memory]")
	w.micros("ts", at)
	w.buf = append(w.buf, ",\"cat\":\"cpu_instant_event\",\"s\":\"t\""...)
	w.args()
	w.number("Total Allocated", d.allocated)
	w.number("Total Reserved", d.reserved)
	w.number("Bytes", bytes)
	w.key("Addr")
	w.buf = strconv.AppendUint(w.buf, k.Address, 10)
	dev := w.places.Device(b.Device)
	if dev.Host {
		w.number("Device Type", 0)
		w.number("Device Id", -1)
	} else {
		w.number("Device Type", 1)
		w.number("Device Id", deviceNumber(dev))
	}
	w.text("allocator", w.places.Pool(k.Pool).Name)
	if bytes > 0 {
		w.number("requested", b.Requested)
		w.text("op", w.strs.At(b.Op))
		w.text("tensor", w.strs.At(b.Tensor))
		w.text("category", b.Category.String())
		if b.Step != event.NoStep {
			w.number("step", int64(b.Step)+1)
		}
	}
	w.endArgs()
	w.put()
}

// deviceNumber is the number in a device's name, else its own, out of the way
// of the others.
func deviceNumber(d *export.Device) int64 {
	if i := strings.LastIndexByte(d.Name, ':'); i >= 0 {
		if n, err := strconv.ParseInt(d.Name[i+1:], 10, 16); err == nil && n >= 0 {
			return n
		}
	}
	return 1000 + int64(d.ID)
}

// flushMemory writes the counters that changed.
func (w *Writer) flushMemory() {
	for _, id := range w.dirty {
		p := &w.pools[id]
		pid, name := w.device(p.device), w.places.Pool(id).Name
		if p.usedChanged {
			if p.highest > p.inUse {
				w.counter(pid, w.now, name+" in use", "bytes", p.highest)
			}
			w.counter(pid, w.now, name+" in use", "bytes", p.inUse)
		}
		if p.heldChanged {
			w.counter(pid, w.now, name+" reserved", "bytes", p.reserved)
		}
		for c := range p.changed {
			if p.changed[c] {
				w.counter(pid, w.now, name+" by category", event.Category(c).String(), p.by[c])
			}
		}
		p.usedChanged, p.heldChanged, p.dirty = false, false, false
		p.changed = [event.NumCategories]bool{}
	}
	w.dirty = w.dirty[:0]
}
