package exec_test

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

// The cost model of section 4 of the specification of transfers.
func TestTimesOfTheCostModel(t *testing.T) {
	m := device.Model{
		FLOPS: 10e12, MemBandwidth: 1e12, H2D: 10e9, D2H: 20e9, CopyLatency: 8_000, LaunchGap: 2_000, HostCopy: 10e9,
	}
	for _, c := range []struct {
		what      string
		got, want int64 // nanoseconds
	}{
		{"a kernel of 1 GFLOP, at half of the peak", m.Kernel(1_000_000_000, 0), 2_000 + 200_000},
		{"one below, at three tenths", m.Kernel(999_999_999, 0), 2_000 + 333_333},
		{"one that moves 750 MB, at three quarters of the bandwidth", m.Kernel(0, 750_000_000), 2_000 + 1_000_000},
		{"one that does both", m.Kernel(1_000_000_000, 750_000_000), 2_000 + 1_000_000},
		{"a copy within the device, which reads and writes, at 80 %", m.Local(400_000_000), 2_000 + 1_000_000},
		{"up, pinned", m.Upload(10_000_000, true), 8_000 + 1_000_000},
		{"up, pageable: 2.4 times", m.Upload(10_000_000, false), 8_000 + 2_400_000},
		{"down, pinned", m.Download(20_000_000, true), 8_000 + 1_000_000},
		{"down, pageable", m.Download(20_000_000, false), 8_000 + 2_400_000},
		{"by one thread of the host", m.HostMove(10_000_000), 1_000_000},
		{"a region of a byte", device.DriverAlloc(1), 100_000},
		{"of 100 MiB: a microsecond for each", device.DriverAlloc(100 << 20), 200_000},
		{"of 10 GiB: a millisecond at most", device.DriverAlloc(10 << 30), 1_000_000},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d ns, want %d", c.what, c.got, c.want)
		}
	}
}

// The presets are those of section 5: what the maker says of memory and
// arithmetic, and the link's measured rate.
func TestPresetsHaveTheFiguresOfTheirCards(t *testing.T) {
	const gb, tenth = 1_000_000_000, 100_000_000_000
	for _, c := range []struct {
		name              string
		memory, low, high int64 // GB/s; tenths of TFLOPS in float32
		matrix, most      int64 // tenths of TFLOPS in 16 bits, 0 without a matrix unit
		link              string
		nvlink            int64 // GB/s in both directions
	}{
		{"p100-16g", 732, 93, 106, 0, 0, "PCIe 3", 160},
		{"v100-16g", 900, 140, 157, 1120, 1250, "PCIe 3", 300},
		{"v100-32g", 900, 140, 157, 1120, 1250, "PCIe 3", 300},
		{"t4-16g", 320, 81, 81, 650, 650, "PCIe 3", 0},
		{"rtx3090", 936, 356, 356, 710, 710, "PCIe 4", 112},
		{"rtx4090", 1008, 826, 826, 1650, 1650, "PCIe 4", 0},
		{"a10-24g", 600, 312, 312, 1250, 1250, "PCIe 4", 0},
		{"a10g", 600, 350, 350, 700, 700, "PCIe 4", 0},
		{"l4-24g", 300, 303, 303, 1210, 1210, "PCIe 4", 0},
		{"a100-40g", 1555, 195, 195, 3120, 3120, "PCIe 4", 600},
		{"a100-80g", 2039, 195, 195, 3120, 3120, "PCIe 4", 600},
		{"a100-80g-pcie", 1935, 195, 195, 3120, 3120, "PCIe 4", 600},
		{"h100-80g", 3350, 670, 670, 9890, 9890, "PCIe 5", 900},
		{"h200-141g", 4800, 670, 670, 9890, 9890, "PCIe 5", 900},
		{"b200-180g", 8000, 800, 800, 22500, 22500, "PCIe 5", 1800},
		{"tpu-v2", 300, 225, 225, 225, 225, "PCIe 3", 0},
		{"tpu-v3", 450, 610, 610, 610, 610, "PCIe 3", 0},
		{"tpu-v4", 1200, 2750, 2750, 2750, 2750, "PCIe 3", 0},
	} {
		p, found := device.Find(c.name)
		if !found {
			p, found = device.FindTPU(c.name)
		}
		if !found {
			t.Errorf("no preset %s", c.name)
			continue
		}
		if p.MemBandwidth.Value != c.memory*gb || p.FLOPS.Value < c.low*tenth || p.FLOPS.Value > c.high*tenth ||
			p.MatrixFLOPS.Value < c.matrix*tenth || p.MatrixFLOPS.Value > c.most*tenth || p.Host != c.link {
			t.Errorf("%s: %+v", c.name, p)
		}
		// Half a direction, of which 80 to 90 % are reached.
		if half := c.nvlink * gb / 2; p.Peer.Value < half/10*8 || p.Peer.Value > half/10*9 {
			t.Errorf("%s: %d bytes a second to a second card, of %d", c.name, p.Peer.Value, half)
		}
		up, down := map[string][2]int64{"PCIe 3": {12_100, 12_400}, "PCIe 4": {25_800, 26_100}, "PCIe 5": {50_000, 55_000}}[p.Host],
			map[string][2]int64{"PCIe 3": {12_800, 13_100}, "PCIe 4": {25_600, 25_600}, "PCIe 5": {50_000, 55_000}}[p.Host]
		if mb := p.H2D.Value / 1_000_000; mb < up[0] || mb > up[1] {
			t.Errorf("%s: %d MB/s up, measured were %v", c.name, mb, up)
		}
		if mb := p.D2H.Value / 1_000_000; mb < down[0] || mb > down[1] {
			t.Errorf("%s: %d MB/s down, measured were %v", c.name, mb, down)
		}
	}
}

// A region costs the host the driver's time, which is how growth is seen in
// the times of the first steps.
func TestARegionCostsTheDriversTime(t *testing.T) {
	b := newBench(t, false, 64*mib)
	from := b.rt.Now()
	first := b.take(gpu, mib, "first")
	if got, want := b.rt.Now()-from, device.DriverAlloc(64*mib); got != want {
		t.Errorf("the first tensor, for which the pool is asked for, cost %d ns, want %d", got, want)
	}
	from = b.rt.Now()
	b.rt.Drop(b.take(gpu, mib, "second"))
	if got := b.rt.Now() - from; got != 0 {
		t.Errorf("one out of the pool cost %d ns, want none", got)
	}
	b.rt.Drop(first)
}

// A norm over all gradients is there only when they all are: none is freed
// before the last has been made, in a graph as well.
func TestClippingHoldsAllGradientsInAGraph(t *testing.T) {
	most := func(clip float64) int {
		b := newBench(t, false, 64*mib)
		p, err := zoo.Program("mlp", zoo.Options{Batch: 8, Train: true, Optimizer: "sgd", Clip: clip})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := b.rt.Compile(p, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		b.step(plan)
		live, most := 0, 0
		at := map[uint64]bool{}
		for _, e := range b.events {
			switch {
			case e.Device != gpu:
			case (e.Kind == event.Alloc || e.Kind == event.Forward) && e.Category == event.Gradient:
				if !at[e.Address] {
					live++
				}
				at[e.Address] = true
			case e.Kind == event.Free && at[e.Address]:
				live--
				delete(at, e.Address)
			}
			most = max(most, live)
		}
		return most
	}
	if got := most(1); got < 6 {
		t.Errorf("with clipping at most %d gradients are alive, want all 6", got)
	}
	if got := most(0); got >= 6 {
		t.Errorf("without clipping %d gradients are alive, want fewer than all 6", got)
	}
}

// What the host spends to order an op: 12 to 20 µs eagerly, 4 to 6 µs in a
// graph. Ops that take the device no time show it.
func TestTheHostsTimeForAnOp(t *testing.T) {
	spent := func(m exec.Mode, ops int) int64 {
		b := newBenchWith(t, 64*mib, func(c *exec.Config) { c.Mode = m })
		p := b.compile(func(b *program.Builder) {
			x := b.Input("x", program.Float32, program.Shape{1})
			for range ops {
				x = b.Op(program.OpTanh, program.Attrs{}, x)
			}
			b.Fetch("y", x)
		})
		b.step(p)
		from := b.rt.Now()
		b.step(p)
		return b.rt.Now() - from
	}
	for _, c := range []struct {
		mode      exec.Mode
		low, high int64
	}{{exec.Eager, 12_000, 20_000}, {exec.Graph, 4_000, 6_000}} {
		if got := (spent(c.mode, 60) - spent(c.mode, 10)) / 50; got < c.low || got > c.high {
			t.Errorf("%s: %d ns an op, want %d to %d", c.mode, got, c.low, c.high)
		}
	}
}
