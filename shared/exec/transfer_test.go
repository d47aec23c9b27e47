package exec_test

import (
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/place"
	"tideline/shared/program"
)

// take is memory of a device, outside of any plan.
func (b *bench) take(dev event.DeviceID, bytes int64, name string) exec.Handle {
	b.t.Helper()
	id := b.strings.ID(name)
	h, err := b.rt.Take(exec.Ask{Device: dev, Bytes: bytes, Op: id, Tensor: id, Category: event.Activation})
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *bench) move(h exec.Handle, dev event.DeviceID, bytes int64, name string) exec.Handle {
	b.t.Helper()
	id := b.strings.ID(name)
	to, err := b.rt.Move(h, exec.Ask{Device: dev, Bytes: bytes, Op: id, Tensor: id, Category: event.Activation}, event.CauseExplicit)
	if err != nil {
		b.t.Fatal(err)
	}
	return to
}

// copied is a transfer as it was told.
type copied struct {
	begin, end event.Event
	name       string
}

func (b *bench) transfers() (out []copied) {
	b.rt.End(event.EndDone, "")
	for _, e := range b.events {
		switch e.Kind {
		case event.TransferBegin:
			out = append(out, copied{begin: e, name: b.strings.At(e.Tensor)})
		case event.TransferEnd:
			i := slices.IndexFunc(out, func(c copied) bool { return c.begin.ID == e.ID })
			out[i].end = e
		default:
		}
	}
	return out
}

func TestCopyTimesOfTheModel(t *testing.T) {
	for _, c := range []struct {
		preset string
		pinned bool
		millis float64
	}{{"p100-16g", true, 8.60}, {"p100-16g", false, 20.6}, {"a100-40g", true, 4.07}} {
		p, ok := device.Find(c.preset)
		if !ok {
			t.Fatalf("no preset %s", c.preset)
		}
		m := p.Model()
		if got := float64(m.Upload(100*mib, c.pinned)) / 1e6; got < c.millis*0.99 || got > c.millis*1.01 {
			t.Errorf("100 MiB to %s, pinned %v: %.2f ms, want %.2f", c.preset, c.pinned, got, c.millis)
		}
	}
}

func TestACopyOfNothingIsNoEvent(t *testing.T) {
	b := newBench(t, false, 64*mib)
	h := b.take(0, 0, "empty")
	from := b.rt.Now()
	b.move(h, gpu, 0, "empty")
	if len(b.transfers()) != 0 || b.rt.Now() != from {
		t.Errorf("a copy of 0 bytes: %d transfers, %d ns", len(b.transfers()), b.rt.Now()-from)
	}
}

// busy orders a long kernel on the GPU and gives the host memory of a batch.
func busy(b *program.Builder) {
	x := b.Const("x", program.Float32, program.Shape{1024, 1024}, 1)
	for range 10 {
		x = b.Op(program.OpMatMul, program.Attrs{}, x, x)
	}
	late := b.Op(program.OpTanh, program.Attrs{}, b.Const("host", program.Float32, oneMiB, 1))
	b.Fetch("a", b.Op(program.OpSum, program.Attrs{}, x))
	b.Fetch("b", b.Op(program.OpSum, program.Attrs{}, b.Op(program.OpAbs, program.Attrs{}, late)))
}

func TestAnUploadWaitsForTheKernelsBeforeItUnlessItsMemoryIsSafe(t *testing.T) {
	begun := func(stamps *exec.Timestamps) int64 {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Timestamps = stamps })
		p := b.compile(busy, place.Rule{Match: "Tanh", Device: "/CPU:0"}, place.Rule{Match: "host", Device: "/CPU:0"})
		b.step(p)
		b.events = b.events[:0]
		b.step(p)
		b.rt.End(event.EndDone, "")
		for _, e := range b.events {
			switch {
			case e.Kind == event.TransferBegin && e.Peer == gpu:
				return e.Time
			default:
			}
		}
		return 0
	}
	waited := begun(nil)
	safe := begun(&exec.Timestamps{})
	if safe == 0 || safe >= waited {
		t.Errorf("the copy began at %d with timestamps, at %d without", safe, waited)
	}
}

func TestDuringACopyBothTensorsCountAndAfterItTheSourceIsFreed(t *testing.T) {
	b := newBench(t, false, 64*mib)
	h := b.take(gpu, 4*mib, "x")
	to := b.move(h, gpu1, 4*mib, "y")
	b.rt.Drop(h)
	if got := b.rt.Stats(gpu).InUse; got < 4*mib {
		t.Errorf("the source of a copy under way has %d bytes in use", got)
	}
	if got := b.rt.Stats(gpu1).InUse; got < 4*mib {
		t.Errorf("its destination has %d bytes in use", got)
	}
	if err := b.rt.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := b.rt.Stats(gpu).InUse; got >= 4*mib {
		t.Errorf("%d bytes in use after the copy, whose source nobody holds", got)
	}
	b.rt.Drop(to)
	c := b.transfers()
	var freed int64
	for _, e := range b.events {
		if e.Kind == event.Free && e.Device == gpu && e.Size == 4*mib {
			freed = e.Time
		}
	}
	if len(c) != 1 || freed < c[0].end.Time || freed > c[0].end.Time+10_000 {
		t.Errorf("the copy ended at %d, which the host saw at %d: want it 0 to 10 us later, never before", c[0].end.Time, freed)
	}
}

const gpu1 event.DeviceID = 2

func TestBetweenCardsWithoutALinkTheDriverStages(t *testing.T) {
	b := newBench(t, false, 64*mib) // lab cards have no link
	b.move(b.take(gpu, 4*mib, "x"), gpu1, 4*mib, "x")
	c := b.transfers()
	if len(c) != 1 {
		t.Fatalf("%d transfers, want one from device to device", len(c))
	}
	e := c[0].begin
	m := b.devices[1].Model
	if e.Stream != event.StreamD2D || e.Flags&event.DriverStaged == 0 || e.Device != gpu || e.Peer != gpu1 {
		t.Errorf("told %+v, want a staged copy on the source's stream", e)
	}
	if got, direct := c[0].end.Time-e.Time, m.Download(4*mib, true); got < 2*direct-m.CopyLatency {
		t.Errorf("it took %d ns, one way over the link takes %d", got, direct)
	}
	for _, e := range b.events {
		if e.Kind == event.Alloc && b.allocators[e.Allocator] == "gpu_host_bfc" {
			t.Error("the runtime took pinned memory for it")
		}
	}
}

func TestACopyWithinADeviceIsOnTheComputeStream(t *testing.T) {
	b := newBench(t, false, 64*mib)
	b.move(b.take(gpu, 4*mib, "x"), gpu, 4*mib, "y")
	c := b.transfers()
	m := b.devices[1].Model
	if len(c) != 1 || c[0].begin.Stream != event.StreamCompute || c[0].end.Time-c[0].begin.Time != m.Local(4*mib) {
		t.Errorf("told %+v", c)
	}
}

func TestPageableMemoryIsStagedInThePinnedPool(t *testing.T) {
	b := newBench(t, false, 64*mib)
	x := b.take(0, 1000, "x")
	b.rt.Drop(b.move(x, gpu, 1000, "first")) // the pool grows
	b.rt.Land()
	b.events = b.events[:0]
	from := b.rt.Now()
	h := b.move(x, gpu, 1000, "x")
	if got, want := b.rt.Now()-from, b.devices[0].Model.HostMove(1000); got != want || want == 0 {
		t.Errorf("the host spent %d ns, want the %d of copying into the staging buffer, and none on the wait", got, want)
	}
	c := b.transfers()
	var staged, freed event.Event
	for _, e := range b.events {
		if b.allocators[e.Allocator] == "gpu_host_bfc" {
			switch e.Kind {
			case event.Alloc:
				staged = e
			case event.Free:
				freed = e
			default:
			}
		}
	}
	if staged.Size != 1024 || staged.Requested != 1000 || len(c) != 1 || c[0].begin.Flags&event.Pinned == 0 {
		t.Errorf("staged in %d bytes for %d, transfers %+v", staged.Size, staged.Requested, c)
	}
	if freed.Address != staged.Address || freed.Time < c[0].end.Time {
		t.Errorf("the staging buffer was freed at %d, the copy ended at %d", freed.Time, c[0].end.Time)
	}
	b.rt.Drop(h)
}

func TestWithThePinnedPoolFullTheDriverStages(t *testing.T) {
	b := newBenchWith(t, 64*mib, func(*exec.Config) {})
	b.pinned.refuse = true
	from := b.rt.Now()
	b.move(b.take(0, 32*mib, "x"), gpu, 32*mib, "x") // long beside the pool's own times
	blocked := b.rt.Now() - from
	c := b.transfers()
	if len(c) != 1 || c[0].begin.Flags&event.Pinned != 0 {
		t.Fatalf("transfers %+v, want one of pageable memory", c)
	}
	m := b.devices[1].Model
	if got := c[0].end.Time - c[0].begin.Time; got != m.Upload(32*mib, false) || blocked < got {
		t.Errorf("it took %d ns and the host %d, want %d for both: it blocks", got, blocked, m.Upload(32*mib, false))
	}
	for _, e := range b.events {
		if e.Kind == event.OutOfMemory {
			t.Error("the refusal was told as a failure")
		}
	}
}

// deferring copies 20 tensors of 1 MiB from one card to the other and has each
// copy seen before the next.
func deferring(t *testing.T, bytes int64) (peak int64, batches []int) {
	t.Helper()
	b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.DeferredDeletion = bytes })
	run := 0
	for range 20 {
		h := b.take(gpu, mib, "x")
		to := b.move(h, gpu1, mib, "y")
		b.rt.Drop(h)
		b.events = b.events[:0]
		b.rt.Land()
		n := 0
		for _, e := range b.events {
			if e.Kind == event.Free && e.Device == gpu {
				n++
			}
		}
		if n > 0 {
			batches = append(batches, n)
		}
		b.rt.Drop(to)
		run++
	}
	return b.rt.Stats(gpu).PeakInUse, batches
}

func TestDeferredDeletionReleasesInBatchesAndCostsItsSize(t *testing.T) {
	now, each := deferring(t, 0)
	later, batches := deferring(t, 8*mib)
	if len(each) != 20 {
		t.Errorf("without: frees in %v, want one by one", each)
	}
	if len(batches) != 2 || batches[0] != 9 {
		t.Errorf("with 8 MiB: frees in batches of %v, want 9 tensors of 1 MiB each time", batches)
	}
	if grew := later - now; grew != 8*mib {
		t.Errorf("the peak is %d bytes higher, want 8 MiB", grew)
	}
}

// late feeds batches that are ready some time after they are asked for.
type late struct{ now }

const lateness = 5_000_000

func (late) Next(t int64) (exec.Batch, error) { return exec.Batch{Ready: t + lateness}, nil }

func TestABatchIsSentWhenItIsReady(t *testing.T) {
	for _, ahead := range []int{0, 2} {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.PrefetchToDevice = ahead })
		p := b.compile(summed)
		from := b.rt.Now()
		if _, err := b.rt.Step(p, 0, late{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range b.transfers() {
			if c.begin.Peer == gpu && c.begin.Time < from+lateness {
				t.Errorf("%d ahead: the copy of %s begins after %d ns, before its batch is ready", ahead, c.name, c.begin.Time-from)
			}
		}
	}
}

func TestBetweenCPUsOfOneProcessTheBufferIsShared(t *testing.T) {
	for _, m := range allModes {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) {
			c.Mode = m
			c.Devices = append(c.Devices, &device.Logical{Name: device.Local("CPU", 1), Model: device.HostModel()})
		})
		b.rt.ShareHost()
		b.step(b.compile(func(b *program.Builder) {
			x := b.Op(program.OpTanh, program.Attrs{}, b.Input("x", program.Float32, oneMiB))
			b.Fetch("s", b.Op(program.OpSum, program.Attrs{}, x))
		}, place.Rule{Match: "Tanh", Device: "/CPU:1"}, place.Rule{Match: "Sum", Device: "/CPU:0"}))
		if c := b.transfers(); len(c) > 0 {
			t.Errorf("%s: %d transfers, the first of %s", m, len(c), c[0].name)
		}
	}
}
