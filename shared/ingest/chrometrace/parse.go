package chrometrace

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tideline/shared/ingest/jsontext"
)

type parser struct {
	d *jsontext.Reader
	t *Trace
	e item
}

// item is the event being read. Its texts are numbers, so that keeping none of
// them costs nothing.
type item struct {
	phase           byte
	empty           bool
	name, cat       []byte
	pid, tid        uint32
	ts, dur         int64
	argName         uint32
	details         []byte
	bytes           int64
	hasBytes        bool
	address         uint64
	allocated       int64
	reserved        int64
	device, devType int32
	numbers         []series
	requested       int64
	op, tensor      uint32
	category        uint32
	allocator       uint32
}

type series struct {
	name  uint32
	value float64
}

func (p *parser) file() error {
	k, err := p.d.Next()
	if err != nil {
		return err
	}
	switch k {
	case jsontext.ArrayBegin: // the bare form
		return p.events()
	case jsontext.ObjectBegin:
	default:
		return fmt.Errorf("%w: the JSON is a single value, expected an object with the member traceEvents", ErrNoTrace)
	}
	found := false
	for {
		k, err := p.d.Next()
		if err != nil {
			return err
		}
		if k == jsontext.ObjectEnd {
			break
		}
		key := string(p.d.Bytes())
		if len(p.t.Keys) < 64 {
			p.t.Keys = append(p.t.Keys, key)
		}
		if k, err = p.d.Next(); err != nil {
			return err
		}
		switch {
		case key == "traceEvents" && k == jsontext.ArrayBegin:
			found = true
			err = p.events()
		case key == "displayTimeUnit" && k == jsontext.Text:
			p.t.Unit = string(p.d.Bytes())
		default:
			if key == "schemaVersion" || key == "deviceProperties" {
				p.t.Flavour = PyTorch
			}
			err = p.d.Skip(k)
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("%w: its members are %q, expected traceEvents", ErrNoTrace, p.t.Keys)
	}
	_, err = p.d.Next()
	return err
}

func (p *parser) events() error {
	for {
		k, err := p.d.Next()
		if err != nil {
			return err
		}
		switch k {
		case jsontext.ArrayEnd:
			return nil
		case jsontext.ObjectBegin:
			if err := p.event(); err != nil {
				return err
			}
		default:
			if p.t.Events == 0 {
				return fmt.Errorf("%w: the array holds no objects", ErrNoTrace)
			}
			if err := p.d.Skip(k); err != nil {
				return err
			}
		}
	}
}

func (p *parser) event() error {
	p.e = item{empty: true, name: p.e.name[:0], cat: p.e.cat[:0], details: p.e.details[:0], numbers: p.e.numbers[:0], allocated: -1, reserved: -1}
	for {
		k, err := p.d.Next()
		if err != nil {
			return err
		}
		if k == jsontext.ObjectEnd {
			p.t.LastEmpty = p.e.empty
			if p.e.empty {
				p.t.Empty++
				return nil
			}
			p.t.Events++
			p.keep()
			return nil
		}
		p.e.empty = false
		if err := p.member(); err != nil {
			return err
		}
	}
}

func (p *parser) member() error {
	d, e := p.d, &p.e
	var key [8]byte
	n := copy(key[:], d.Bytes())
	if n != len(d.Bytes()) {
		n = 0 // longer than any that matters
	}
	k, err := d.Next()
	if err != nil {
		return err
	}
	switch string(key[:n]) {
	case "ph":
		if len(d.Bytes()) == 1 {
			e.phase = d.Bytes()[0]
		}
	case "name":
		e.name = append(e.name, d.Bytes()...)
	case "cat":
		e.cat = append(e.cat, d.Bytes()...)
	case "pid":
		e.pid = p.id(k)
	case "tid":
		e.tid = p.id(k)
	case "ts":
		e.ts = nanos(d.Bytes())
	case "dur":
		e.dur = nanos(d.Bytes())
	case "args":
		if k == jsontext.ObjectBegin {
			return p.args()
		}
	}
	return d.Skip(k)
}

func (p *parser) id(k jsontext.Kind) uint32 {
	if k != jsontext.Number && k != jsontext.Text || len(p.t.texts) > MaxKept {
		return 0
	}
	return p.t.put(p.d.Bytes())
}

const maxSeries = 64

func (p *parser) args() error {
	d, e := p.d, &p.e
	for {
		k, err := d.Next()
		if err != nil || k == jsontext.ObjectEnd {
			return err
		}
		var buf [24]byte
		key := append(buf[:0], d.Bytes()[:min(len(d.Bytes()), len(buf))]...)
		if k, err = d.Next(); err != nil {
			return err
		}
		switch string(key) {
		case "name":
			if e.phase == 'M' || e.phase == 0 {
				e.argName = p.id(k)
			}
		case "memcpy_details":
			e.details = append(e.details, d.Bytes()...)
		case "bytes", "Bytes":
			e.bytes, e.hasBytes = d.Int()
		case "Addr":
			n, _ := d.Int()
			e.address = uint64(n)
		case "Total Allocated":
			e.allocated, _ = d.Int()
		case "Total Reserved":
			e.reserved, _ = d.Int()
		case "Device Id":
			n, _ := d.Int()
			e.device = int32(n)
		case "Device Type":
			n, _ := d.Int()
			e.devType = int32(n)
		case "requested":
			e.requested, _ = d.Int()
		}
		if e.phase == 'i' { // only of instants are their names kept
			switch string(key) {
			case "op":
				e.op = p.id(k)
			case "tensor":
				e.tensor = p.id(k)
			case "category":
				e.category = p.id(k)
			case "allocator":
				e.allocator = p.id(k)
			}
		}
		if e.phase == 'C' && len(e.numbers) < maxSeries && len(p.t.texts) < MaxKept {
			if f, ok := d.Float(); ok {
				e.numbers = append(e.numbers, series{p.t.put(key), f})
			}
		}
		if err := d.Skip(k); err != nil {
			return err
		}
	}
}

// nanos reads microseconds with their decimals as whole nanoseconds: a clock
// since 1970 has more digits than a float keeps.
func nanos(b []byte) int64 {
	whole, frac, _ := bytes.Cut(b, []byte("."))
	n, err := strconv.ParseInt(string(whole), 10, 64)
	if err != nil || n > 1<<52 || n < -1<<52 || bytes.ContainsAny(frac, "eE") {
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil || f > 1<<52 || f < -1<<52 {
			return 0
		}
		return int64(f * 1000)
	}
	sub := int64(0)
	for i := range 3 {
		sub *= 10
		if i < len(frac) && frac[i] >= '0' && frac[i] <= '9' {
			sub += int64(frac[i] - '0')
		}
	}
	if len(frac) > 3 && frac[3] >= '5' {
		sub++
	}
	if len(whole) > 0 && whole[0] == '-' {
		sub = -sub
	}
	return n*1000 + sub
}

var (
	tfCopies    = [][]byte{[]byte("MemcpyH2D"), []byte("MemcpyD2H"), []byte("MemcpyD2D"), []byte("MemcpyP2P"), []byte("Memset")}
	torchCopies = []string{"gpu_memcpy", "gpu_memset", "Memcpy", "Memset"}
)

func (p *parser) keep() {
	t, e := p.t, &p.e
	switch e.phase {
	case 'M':
		switch string(e.name) {
		case "process_name":
			t.Processes = append(t.Processes, Process{e.pid, e.argName})
		case "thread_name":
			if len(t.Threads) < MaxKept {
				t.Threads = append(t.Threads, Thread{e.pid, e.tid, e.argName})
			}
		}
	case 'X':
		p.copy()
	case 'i', 'I':
		if string(e.name) == "[memory]" && e.hasBytes && len(t.Memory) < MaxKept {
			t.Flavour = PyTorch
			t.Memory = append(t.Memory, Memory{
				e.ts, e.bytes, e.address, e.allocated, e.reserved, e.devType, e.device,
				e.requested, e.op, e.tensor, e.category, e.allocator,
			})
		}
	case 'C':
		for _, s := range e.numbers {
			if len(t.Counters) < MaxKept {
				t.Counters = append(t.Counters, Counter{e.ts, s.value, t.put(e.name), s.name, e.pid})
			}
		}
	}
}

func (p *parser) copy() {
	t, e := p.t, &p.e
	c := Copy{Start: e.ts, Duration: e.dur, Bytes: e.bytes, Process: e.pid, Thread: e.tid}
	switch {
	case slices.Contains(torchCopies, string(e.cat)):
		t.Flavour = PyTorch
		c.Device = true
	case startsWith(e.name, tfCopies) && len(e.cat) == 0:
		if !e.hasBytes {
			c.Bytes = detail(string(e.details), "size:")
		}
	default:
		return
	}
	if len(t.Copies) < MaxKept {
		c.Name = t.put(e.name)
		t.Copies = append(t.Copies, c)
	}
}

func startsWith(s []byte, list [][]byte) bool {
	for _, x := range list {
		if bytes.HasPrefix(s, x) {
			return true
		}
	}
	return false
}

// detail is the number behind a key of a text such as "size:4 dest:0 async:1".
func detail(text, key string) int64 {
	for part := range strings.FieldsSeq(text) {
		if rest, ok := strings.CutPrefix(part, key); ok {
			n, _ := strconv.ParseInt(rest, 10, 64)
			return n
		}
	}
	return 0
}
