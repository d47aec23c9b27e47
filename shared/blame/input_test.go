package blame

import (
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

// tensorflow is a profiled program of TensorFlow's.
type tensorflow struct {
	strs event.Strings
	rec  *Recorder
	at   int64
	id   uint64
}

func newTensorFlow(pool string) *tensorflow {
	p := &tensorflow{}
	p.rec = NewRecorder(&p.strs)
	p.rec.Emit(&event.Event{Kind: event.AllocatorFacts, Text: p.strs.ID("name=" + pool + "\nkind=bfc\n")})
	p.alloc("first", 256)
	return p
}

func (p *tensorflow) alloc(op string, bytes int64) {
	p.at, p.id = p.at+1000, p.id+1
	p.rec.Emit(&event.Event{Kind: event.Alloc, Time: p.at, Address: p.id << 40, Size: bytes, Requested: bytes, Op: p.strs.ID(op)})
}

func (p *tensorflow) upload(op string, bytes int64) {
	p.at, p.id = p.at+1000, p.id+1
	p.rec.Emit(&event.Event{Kind: event.TransferBegin, Time: p.at, ID: p.id, Stream: event.StreamH2D, Size: bytes, Op: p.strs.ID(op)})
	p.rec.Emit(&event.Event{Kind: event.TransferEnd, Time: p.at + 500, ID: p.id, Stream: event.StreamH2D})
}

func (p *tensorflow) reading() *reading.Reading {
	x := &reading.Reading{Kind: "tf-xspace"}
	p.rec.fill(x, "")
	p.rec.fill(x, "") // whoever asks twice is not told twice
	return x
}

// TestInputOnTheDeviceIsTold: an array of the host that lies on the device as a
// whole, or is copied there again and again, is told with its figures.
func TestInputOnTheDeviceIsTold(t *testing.T) {
	const set = 586 * mib
	for _, c := range []struct {
		name  string
		run   func(p *tensorflow)
		facts string
		row   string
	}{
		{"held", func(p *tensorflow) {
			p.alloc("_EagerConst", set)
			p.alloc("conv/Conv2D", 100*mib)
		}, `{"op":"_EagerConst","held_bytes":614465536,"held_blocks":1,"held_of_bytes":719323392,"copied_bytes":null,"copies":null}`, "586.00 MiB in 1 block, by _EagerConst"},
		{"a constant of a graph, twice", func(p *tensorflow) {
			p.alloc("model/Const_3", set)
			p.alloc("model/Const_3", set)
		}, `{"op":"model/Const_3","held_bytes":1228931072,"held_blocks":2,"held_of_bytes":1228931328,"copied_bytes":null,"copies":null}`, "1.14 GiB in 2 blocks, by model/Const_3"},
		{"copied in every step", func(p *tensorflow) {
			for range 5 {
				p.upload("_EagerConst", set)
			}
		}, `{"op":"_EagerConst","held_bytes":null,"held_blocks":null,"held_of_bytes":null,"copied_bytes":614465536,"copies":5}`, "586.00 MiB copied there 5 times, by _EagerConst"},
		{"both", func(p *tensorflow) {
			p.alloc("_EagerConst", set)
			p.upload("_EagerConst", set)
			p.upload("_EagerConst", set)
		}, `{"op":"_EagerConst","held_bytes":614465536,"held_blocks":1,"held_of_bytes":614465792,"copied_bytes":614465536,"copies":2}`, "586.00 MiB in 1 block, 586.00 MiB copied there 2 times, by _EagerConst"},
		{"batches", func(p *tensorflow) {
			for range 5 {
				p.upload("IteratorGetNext", 96*mib)
			}
			p.alloc("IteratorGetNext", 96*mib)
		}, `null`, ""},
		{"once", func(p *tensorflow) { p.upload("_EagerConst", set) }, `null`, ""},
		{"small constants", func(p *tensorflow) {
			for range 5 {
				p.alloc("model/Const", mib)
				p.upload("_EagerConst", mib)
			}
		}, `null`, ""},
		{"an op whose name ends like it", func(p *tensorflow) { p.alloc("model/ReadConstant", set) }, `null`, ""},
	} {
		p := newTensorFlow("GPU_0_bfc")
		c.run(p)
		x := p.reading()
		v, ok := x.Facts.Get("input_on_device")
		if got := string(v.AppendJSON(nil)); !ok || got != c.facts {
			t.Errorf("%s: %s, want %s", c.name, got, c.facts)
		}
		if c.row == "" {
			if len(x.Rows)+len(x.Flags)+len(x.Next) > 0 {
				t.Errorf("%s: something is said: %v %v %v", c.name, x.Rows, x.Flags, x.Next)
			}
			continue
		}
		if len(x.Rows) != 1 || x.Rows[0].Value != c.row || len(x.Flags) != 1 || len(x.Next) != 1 || !strings.Contains(x.Next[0], "slice it before the copy") {
			t.Errorf("%s: %v %v %v", c.name, x.Rows, x.Flags, x.Next)
		}
	}
	p := newTensorFlow("cpu")
	p.alloc("_EagerConst", set)
	if x := p.reading(); len(x.Flags) > 0 {
		t.Errorf("host memory is no device's: %v", x.Rows)
	}
}
