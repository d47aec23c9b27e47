package export

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
)

// maxPlaces bounds the tables against files that lie about their ids.
const maxPlaces = 1 << 12

// Device is a device as its facts tell it.
type Device struct {
	ID   event.DeviceID
	Name string // never empty
	Host bool   // host memory, no accelerator
}

// Pool is an allocator as its facts tell it.
type Pool struct {
	Name   string // never empty
	Device event.DeviceID
	Limit  int64 // bytes; 0 without one
	// Within is the allocator whose memory this one's is a part of; its bytes
	// must not be added to that one's. "" for most.
	Within string
}

// Places are the devices and allocators that events have told of so far. The
// zero value knows none.
type Places struct {
	devices []Device
	pools   []Pool
}

// Note takes what an event tells of a device or an allocator.
func (p *Places) Note(e *event.Event, strs *event.Strings) {
	switch e.Kind {
	case event.DeviceFacts:
		f, _ := event.ParseFields(strs.At(e.Text)) // what cannot be read is not known
		d := p.Device(e.Device)
		if name := f.Text("name"); name != "" {
			d.Name = name
		}
		kind := f.Text("kind")
		d.Host = kind == "cpu" || kind == "host" || kind == "" && strings.Contains(strings.ToLower(d.Name), "cpu")
	case event.AllocatorFacts:
		f, _ := event.ParseFields(strs.At(e.Text))
		a := p.Pool(e.Allocator)
		if name := f.Text("name"); name != "" {
			a.Name = name
		}
		a.Device, a.Within, a.Limit = e.Device, f.Text("within"), e.Size
	default:
	}
}

// Device is a device by its number; one that no facts named has a name made of
// its number.
func (p *Places) Device(id event.DeviceID) *Device {
	for int(id) >= len(p.devices) && len(p.devices) < maxPlaces {
		n := len(p.devices)
		p.devices = append(p.devices, Device{ID: event.DeviceID(n), Name: "device " + strconv.Itoa(n)})
	}
	if int(id) >= len(p.devices) {
		return &Device{ID: id, Name: "device " + strconv.Itoa(int(id))}
	}
	return &p.devices[id]
}

// Pool is an allocator by its number, likewise.
func (p *Places) Pool(id event.AllocatorID) *Pool {
	for int(id) >= len(p.pools) && len(p.pools) < maxPlaces {
		p.pools = append(p.pools, Pool{Name: "allocator " + strconv.Itoa(len(p.pools))})
	}
	if int(id) >= len(p.pools) {
		return &Pool{Name: "allocator " + strconv.Itoa(int(id))}
	}
	return &p.pools[id]
}

// Pools are all allocators so far, by number.
func (p *Places) Pools() []Pool { return p.pools }

// Accelerators says whether a device that is no host was told of.
func (p *Places) Accelerators() bool {
	for i := range p.devices {
		if !p.devices[i].Host {
			return true
		}
	}
	return false
}

// Key is a live block: addresses are unique within an allocator.
type Key struct {
	Pool    event.AllocatorID
	Address uint64
}

// Devices are all devices so far, by number.
func (p *Places) Devices() []Device { return p.devices }
