//go:build cuda

package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"tideline/native/backend/cuda"
	"tideline/native/backend/vgpu"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/launch"
)

// apart hashes what a run did to memory, times apart: allocations, frees and
// regions in the host's order, and the transfers of each stream in the stream's.
// How the two lie between each other is a matter of time alone.
type apart struct {
	table    *event.Strings
	memory   *eventhash.Hasher
	streams  map[string]*eventhash.Hasher
	backward int
	last     int64
	events   []event.Event
}

func newApart() *apart {
	t := new(event.Strings)
	return &apart{table: t, memory: eventhash.New(t), streams: map[string]*eventhash.Hasher{}}
}

func (a *apart) Emit(e *event.Event) {
	if e.Time < a.last {
		a.backward++
	}
	a.last = e.Time
	a.events = append(a.events, *e)
	if e.Kind != event.TransferBegin {
		a.memory.Emit(e)
		return
	}
	k := fmt.Sprintf("%d of %d to %d", e.Stream, e.Device, e.Peer)
	if a.streams[k] == nil {
		a.streams[k] = eventhash.New(a.table)
	}
	a.streams[k].Emit(e)
}

func (a *apart) equal(t *testing.T, name string, b *apart) {
	t.Helper()
	if a.memory.Events() == 0 || a.memory.Sum64() != b.memory.Sum64() {
		t.Errorf("%s: memory events %016x (%d) on the card, %016x (%d) on the virtual one",
			name, a.memory.Sum64(), a.memory.Events(), b.memory.Sum64(), b.memory.Events())
	}
	if len(a.streams) != len(b.streams) || len(a.streams) == 0 {
		t.Errorf("%s: %d streams with transfers on the card, %d on the virtual one", name, len(a.streams), len(b.streams))
	}
	for k, h := range a.streams {
		if b.streams[k] == nil || h.Sum64() != b.streams[k].Sum64() {
			t.Errorf("%s: transfers on stream %s differ", name, k)
		}
	}
}

// The same workload makes the same allocations, frees, regions and transfers,
// at the same addresses and in the same order, on a card as on a virtual one,
// and learns the same.
func TestCardDoesWhatTheVirtualOneDoes(t *testing.T) {
	d := open(t)
	data, _ := digits(t)
	for _, c := range launch.HashCases() {
		w := c.Workload
		if testing.Short() && !strings.HasPrefix(c.Name, "mlp-graph-growth") {
			continue
		}
		real, virtual := newApart(), newApart()
		b := d.Backend(nil)
		got, err := launch.Run(w, launch.Options{Strings: real.table, Sink: b.Timed(real), Backend: b, Data: data})
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		want, err := launch.Run(w, launch.Options{Strings: virtual.table, Sink: virtual, Backend: vgpu.New(), Data: data})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%-26s memory %016x, %d events, %.2f s on the fake card", c.Name, real.memory.Sum64(), got.Events, float64(got.Nanos)/1e9)
		real.equal(t, c.Name, virtual)
		if real.backward > 0 {
			t.Errorf("%s: %d events before the one before them", c.Name, real.backward)
		}
		if got.Events != want.Events || uint64(len(real.events)) != got.Events {
			t.Errorf("%s: %d events, %d handed on, %d on the virtual card", c.Name, got.Events, len(real.events), want.Events)
		}
		if len(got.Metrics) != len(want.Metrics) || len(want.Metrics) == 0 {
			t.Fatalf("%s: metrics %v and %v", c.Name, got.Metrics, want.Metrics)
		}
		for i, m := range got.Metrics {
			if d := math.Abs(m.Value - want.Metrics[i].Value); !(d < 2e-3) {
				t.Errorf("%s: %s %v, want %v", c.Name, m.Name, m.Value, want.Metrics[i].Value)
			}
		}
		runClean(t)
	}
	if n := fake.Get("DID_SKIP"); n != 0 {
		t.Errorf("%d kernels were skipped", n)
	}
	closeAll(t, d)
}

func TestLeNetLearnsTheDigits(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	d := open(t)
	b := d.Backend(nil)
	data, heldOut := digits(t)
	w := api.Workload{
		Model: "lenet5", Train: &api.Train{Optimizer: "adam", LearningRate: 0.002}, Batch: []int{32}, Steps: 110,
		Input:   api.Input{Source: "digits", Shuffle: 512, Prefetch: 2},
		Devices: []api.Device{{Preset: "lab-256m", Growth: true}},
	}
	r, err := launch.Start(w, launch.Options{Backend: b, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	for r.Step() {
	}
	m, err := r.Evaluate(heldOut, 359)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	for _, x := range m {
		t.Logf("held-out %s %.4f", x.Name, x.Value)
		if x.Name == "accuracy" && x.Value <= 0.95 {
			t.Errorf("held-out accuracy %.4f, want more than 0.95", x.Value)
		}
	}
	closeAll(t, d)
}

// The lanes show the card's own times: work takes time, follows on what it
// depends on, and lies on its stream one after the other.
func TestLanesShowTheCardsTimes(t *testing.T) {
	d := open(t)
	a := newApart()
	if _, err := train(t, d, small("mlp", 16, 6, true), a); err != nil {
		t.Fatal(err)
	}
	type span struct{ begin, end int64 }
	lanes := map[string][]span{}
	var took, n int64
	for _, e := range a.events {
		switch e.Kind {
		case event.OpBegin, event.TransferBegin:
			if e.Device == 0 && e.Kind == event.OpBegin {
				continue
			}
			k := fmt.Sprint(e.Kind, e.Device, e.Peer, e.Stream)
			lanes[k] = append(lanes[k], span{begin: e.Time})
		case event.OpEnd, event.TransferEnd:
			if e.Device == 0 && e.Kind == event.OpEnd {
				continue
			}
			k := fmt.Sprint(e.Kind-1, e.Device, e.Peer, e.Stream)
			s := lanes[k]
			s[len(s)-1].end = e.Time
			took += e.Time - s[len(s)-1].begin
			n++
		default:
		}
	}
	if len(lanes) < 3 || n == 0 || took/n < 1000 {
		t.Fatalf("%d lanes, %d pieces of work of %d ns on average", len(lanes), n, took/max(1, n))
	}
	for k, s := range lanes {
		for i := 1; i < len(s); i++ {
			if s[i].begin < s[i-1].end {
				t.Errorf("lane %s: work %d begins at %d, before the end %d of the one before", k, i, s[i].begin, s[i-1].end)
			}
		}
	}
	closeAll(t, d)
}

// Growth asks the driver for more until it refuses; then the run is out of
// memory, which is a result and not an error, and all of it goes back.
func TestGrowthUntilTheCardIsFull(t *testing.T) {
	settings(t, map[string]int64{"SET_HELD": 120 << 20})
	d := open(t)
	a := newApart()
	res, err := train(t, d, small("mlp", 40_000, 3, true), a)
	if err != nil || res.Reason != event.EndOutOfMemory {
		t.Fatalf("%v, %s: %s", err, res.Reason, res.Message)
	}
	var refused, taken int
	for _, e := range a.events {
		if e.Kind == event.RegionRefused && e.Device == 1 {
			refused++
		}
		if e.Kind == event.RegionAdd && e.Device == 1 {
			taken++
		}
	}
	if refused == 0 || taken == 0 {
		t.Errorf("%d regions taken, %d refused", taken, refused)
	}
	t.Log(res.Message)
	closeAll(t, d)
}

// Two logical devices on one card, and two cards, exchange tensors in order.
func TestCopiesBetweenDevices(t *testing.T) {
	settings(t, map[string]int64{"SET_DEVICES": 2})
	for name, devices := range map[string][]api.Device{
		"two cards": {{Preset: "lab-256m", Growth: true}, {Preset: "lab-256m", Growth: true}},
		"one card":  {{Preset: "lab-256m", Logical: []int64{64 << 20, 64 << 20}}},
	} {
		d := open(t)
		if len(d.Cards()) != 2 {
			t.Fatalf("%d cards", len(d.Cards()))
		}
		w := small("mlp", 16, 5, true)
		w.Devices = devices
		w.Placement = api.Placement{Rules: []api.Rule{{Match: "dense2/*", Device: "/GPU:1"}}}
		data, _ := digits(t)
		real, virtual := newApart(), newApart()
		b := d.Backend(nil)
		got, err := launch.Run(w, launch.Options{Strings: real.table, Sink: b.Timed(real), Backend: b, Data: data})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := launch.Run(w, launch.Options{Strings: virtual.table, Sink: virtual, Backend: vgpu.New(), Data: data})
		if err != nil {
			t.Fatal(err)
		}
		real.equal(t, name, virtual)
		for i, m := range got.Metrics {
			if d := math.Abs(m.Value - want.Metrics[i].Value); !(d < 2e-3) {
				t.Errorf("%s: %s %v, want %v", name, m.Name, m.Value, want.Metrics[i].Value)
			}
		}
		if fake.Get("DID_D2D") == 0 {
			t.Errorf("%s: nothing was copied between devices", name)
		}
		fake.Set("DID_D2D", 0)
		closeAll(t, d)
	}
}

// A driver that has no memory for a region is asked for less, and a run that
// can do with less goes on.
func TestRefusedOnceIsNoFailure(t *testing.T) {
	for n := range int64(3) {
		d := open(t)
		fake.Set("SET_ALLOC_FAILS", n+1)
		res, err := train(t, d, small("mlp", 16, 3, true), nil)
		if err != nil || res.Reason != event.EndDone {
			t.Errorf("allocation %d refused: %v, %s: %s", n+1, err, res.Reason, res.Message)
		}
		fake.Set("SET_ALLOC_FAILS", 0)
		closeAll(t, d)
	}
}

func TestRefusedPinnedMemoryLeavesTheSlowWay(t *testing.T) {
	d := open(t)
	fake.Set("SET_HOST_FAILS", 1)
	w := small("mlp", 16, 3, true)
	w.Mode = api.Eager
	res, err := train(t, d, w, nil)
	if err != nil || res.Reason != event.EndDone {
		t.Errorf("%v, %s: %s", err, res.Reason, res.Message)
	}
	fake.Set("SET_HOST_FAILS", 0)
	closeAll(t, d)
}

// After a kernel that touches what it must not, and after a lost context, the
// run fails with the reason, all is given back, and the next run is well.
func TestBrokenContexts(t *testing.T) {
	for name, c := range map[string]struct {
		what string
		at   []int64
		want string
	}{
		"a bad kernel":   {"SET_LAUNCH_FAILS", []int64{1, 7, 60}, "IllegalAddress"},
		"a lost context": {"SET_LOST", []int64{1, 20, 200, 801}, "ContextIsDestroyed"},
	} {
		d := open(t)
		for _, at := range c.at {
			fake.Set(c.what, at)
			res, err := train(t, d, small("mlp", 16, 6, true), nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s at %d: %v, %s: %s", name, at, err, res.Reason, res.Message)
			} else {
				t.Logf("%s at %d: %v", name, at, err)
			}
			if left := fake.Get(c.what); left != 0 {
				t.Errorf("%s at %d: it never happened, %d to go", name, at, left)
				fake.Set(c.what, 0)
			}
			res, err = train(t, d, small("mlp", 16, 2, true), nil)
			if err != nil || res.Reason != event.EndDone {
				t.Errorf("the run after %s at %d: %v %s", name, at, err, res.Message)
			}
			runClean(t)
		}
		closeAll(t, d)
	}
}

// A process that came first leaves room with growth and none without.
func TestTwoProgramsShareACard(t *testing.T) {
	for _, growth := range []bool{true, false} {
		first := open(t)
		data, _ := digits(t)
		b := first.Backend(nil)
		r, err := launch.Start(small("mlp", 16, 4, growth), launch.Options{Backend: b, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		r.Step()
		second, err := cuda.Open()
		if err != nil {
			t.Fatal(err)
		}
		res, err := train(t, second, small("mlp", 16, 4, growth), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]event.EndReason{true: event.EndDone, false: event.EndOutOfMemory}[growth]; res.Reason != want {
			t.Errorf("growth %v: the second program ended %s: %s", growth, res.Reason, res.Message)
		}
		for r.Step() {
		}
		if res, err := r.Finish(); err != nil || res.Reason != event.EndDone {
			t.Errorf("growth %v: the first program ended %v %s", growth, err, res.Message)
		}
		second.Close()
		closeAll(t, first)
	}
}

func TestWhatADriverSays(t *testing.T) {
	settings(t, map[string]int64{"SET_DEVICES": 2, "SET_MEMORY": 1 << 30, "SET_HELD": 100 << 20})
	d := open(t)
	c := d.Cards()[1]
	if got, want := c.String(), "Fake GPU 1, pci bus id: 0000:3c:00.0, compute capability: 7.5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if c.Total != 1<<30 || c.Free != c.Total-100<<20-8<<20 || c.Ordinal != 1 || c.Multiprocessors != 40 {
		t.Errorf("%+v", c)
	}
	if c.MemoryBandwidth != 2*5001000*1000*32 {
		t.Errorf("bandwidth %d", c.MemoryBandwidth)
	}
	closeAll(t, d)
}

func TestCardsThatCannotBeUsed(t *testing.T) {
	for _, c := range []struct {
		set  map[string]int64
		want string
	}{
		{map[string]int64{"SET_CAPABILITY": 37}, "compute capability 3.7 is below 5.0"},
		{map[string]int64{"SET_HELD": 300 << 20}, "make a context: OutOfMemory"},
	} {
		settings(t, c.set)
		_, err := cuda.Open()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.set, err)
		}
		for n := range c.set {
			fake.Set(n, 0)
		}
	}
	for _, n := range given {
		if v := fake.Get(n); v != 0 {
			t.Errorf("%s is %d", n, v)
		}
	}
}

func TestMoreCardsAskedForThanThereAre(t *testing.T) {
	d := open(t)
	w := small("mlp", 16, 2, true)
	w.Devices = append(w.Devices, w.Devices[0])
	if _, err := train(t, d, w, nil); err == nil || !strings.Contains(err.Error(), "asks for card 1, this machine has 1") {
		t.Errorf("%v", err)
	}
	runClean(t)
	closeAll(t, d)
}

// These run in processes of their own, with other libraries.

func TestNoDriver(t *testing.T) {
	for env, want := range map[string]string{
		"TIDELINE_CUDA_DRIVER=/nowhere.so": "/nowhere.so",
		"TIDELINE_FAKE=devices=-1":         "no CUDA-capable device is detected",
		"TIDELINE_FAKE=init=803":           "error 803",
	} {
		out := child(t, "TestChildHasNoDriver", env, "WANT="+want, "TIDELINE_FAKE_STATE=")
		t.Log(strings.TrimSpace(out[:strings.Index(out, "---")]))
	}
}

func TestChildHasNoDriver(t *testing.T) {
	if os.Getenv(childOf) == "" {
		t.Skip("for TestNoDriver")
	}
	_, err := cuda.Open()
	if !errors.Is(err, cuda.ErrNoDriver) || !strings.Contains(err.Error(), os.Getenv("WANT")) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v, want %q in one line", err, os.Getenv("WANT"))
	}
	t.Log(err)
}

func TestProductsGoThroughCuBLASWhereItIs(t *testing.T) {
	child(t, "TestChildUsesCuBLAS", "TIDELINE_CUBLAS="+os.Getenv("TIDELINE_CUDA_DRIVER"))
	if fake.Get("DID_PRODUCT") == 0 {
		t.Error("no product went through it")
	}
	for _, n := range given {
		if v := fake.Get(n); v != 0 {
			t.Errorf("%s is %d", n, v)
		}
	}
}

func TestChildUsesCuBLAS(t *testing.T) {
	if os.Getenv(childOf) == "" {
		t.Skip("for TestProductsGoThroughCuBLASWhereItIs")
	}
	if !cuda.HasBLAS() {
		t.Fatal("cuBLAS was not found")
	}
	d := open(t)
	for _, model := range []string{"mlp", "lenet5"} {
		w := small(model, 16, 5, true)
		got, err := train(t, d, w, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, _ := digits(t)
		want, err := launch.Run(w, launch.Options{Backend: vgpu.New(), Data: data})
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range got.Metrics {
			if d := math.Abs(m.Value - want.Metrics[i].Value); !(d < 2e-3) {
				t.Errorf("%s: %s %v, want %v", model, m.Name, m.Value, want.Metrics[i].Value)
			}
		}
	}
}

// A workload that asks for the real card by its own name gets limits from what
// is free on it, as TensorFlow does, and the name in its facts.
func TestWorkloadAsksForTheCardItself(t *testing.T) {
	settings(t, map[string]int64{"SET_MEMORY": 4 << 30, "SET_HELD": 500 << 20})
	d := open(t)
	m, err := d.Machine(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := small("mlp", 16, 3, true)
	w.Devices[0].Preset = "cuda:0"
	a := newApart()
	b := d.Backend(nil)
	data, _ := digits(t)
	res, err := launch.Run(w, launch.Options{Strings: a.table, Sink: b.Timed(a), Backend: b, Data: data, Machine: m})
	if err != nil || res.Reason != event.EndDone {
		t.Fatalf("%v %s", err, res.Message)
	}
	free := int64(4<<30 - 500<<20 - 8<<20)
	if got, want := res.Devices[1].Limit, free-1050<<20; got != want {
		t.Errorf("limit %d, want %d", got, want)
	}
	for _, e := range a.events {
		if e.Kind == event.DeviceFacts && e.Device == 1 && !strings.Contains(a.table.At(e.Text), "Fake GPU 0") {
			t.Errorf("facts %s", a.table.At(e.Text))
		}
	}
	w.Devices[0].Preset = "cuda:1"
	if _, err := launch.Start(w, launch.Options{Machine: m}); err == nil {
		t.Error("a card that is not there was given")
	}
	closeAll(t, d)
}
