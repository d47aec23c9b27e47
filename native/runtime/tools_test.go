package runtime

import (
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/check"
	"tideline/shared/device"
	"tideline/shared/program"
)

// witness hears a runtime's events, and lets the judge of allocations hear
// them as well.
type witness struct {
	rt     *Runtime
	text   *event.Strings
	events []event.Event
	judge  *check.Judge
}

func (w *witness) Emit(e *event.Event) {
	w.events = append(w.events, *e)
	w.judge.Emit(e)
}

// count is how many events of a kind there were, on a device.
func (w *witness) count(k event.Kind, dev event.DeviceID) int {
	n := 0
	for i := range w.events {
		if w.events[i].Kind == k && w.events[i].Device == dev {
			n++
		}
	}
	return n
}

// copies is how many transfers went from one device to another.
func (w *witness) copies(from, to event.DeviceID) int {
	n := 0
	for i := range w.events {
		if e := &w.events[i]; e.Kind == event.TransferBegin && e.Device == from && e.Peer == to {
			n++
		}
	}
	return n
}

// ran is the device on which an op ran last, -1 if it did not.
func (w *witness) ran(op string) int {
	at := -1
	for i := range w.events {
		if e := &w.events[i]; e.Kind == event.OpBegin && w.text.At(e.Op) == op {
			at = int(e.Device)
		}
	}
	return at
}

// settle lets the runtime tell all that has happened.
func (w *witness) settle(t *testing.T) {
	t.Helper()
	if w.rt.run != nil {
		ok(t, w.rt.run.Sync())
	}
}

func newRuntime(t *testing.T, o Options) (*Runtime, *witness) {
	t.Helper()
	o.Strings = new(event.Strings)
	w := &witness{text: o.Strings}
	w.judge = check.New(func(d event.DeviceID, a event.AllocatorID) check.Rules {
		if d == 0 && a == 0 {
			return check.Rules{Granule: 16}
		}
		return check.BFC(0)
	}, o.Strings)
	o.Sink = w
	rt, err := New(o)
	ok(t, err)
	w.rt = rt
	t.Cleanup(func() {
		rt.Close()
		if err := w.judge.Err(); err != nil {
			t.Errorf("the judge: %v", err)
		}
	})
	return rt, w
}

func gpus(n int) Options {
	o := Options{Seed: 1}
	for range n {
		o.GPUs = append(o.GPUs, "lab-256m")
	}
	return o
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err error, k device.Kind, words ...string) {
	t.Helper()
	if !errors.Is(err, k) {
		t.Errorf("error %v, want a %v", err, k)
		return
	}
	for _, w := range append(words, k.String()) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not name %q", err, w)
		}
	}
}

func floats(t *testing.T, rt *Runtime, values []float32, shape ...int64) *Tensor {
	t.Helper()
	x, err := Constant(rt, values, shape...)
	ok(t, err)
	return x
}

// mebi makes a float32 tensor of so many MiB.
func mebi(t *testing.T, rt *Runtime, n int64) *Tensor {
	t.Helper()
	x, err := rt.Fill(program.Float32, 1, n<<18)
	ok(t, err)
	return x
}

func info(t *testing.T, rt *Runtime, name string) MemoryInfo {
	t.Helper()
	m, err := rt.MemoryInfo(name)
	ok(t, err)
	return m
}

// baseline is the scratch buffer that every GPU pool begins with.
const baseline = 1280
