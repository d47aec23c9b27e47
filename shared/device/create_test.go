package device

import (
	"errors"
	"strings"
	"testing"
)

func vars(kv ...string) Env {
	return func(name string) (string, bool) {
		for i := 0; i < len(kv); i += 2 {
			if kv[i] == name {
				return kv[i+1], true
			}
		}
		return "", false
	}
}

func create(t *testing.T, o Options, n int, env Env) (*Assembly, error) {
	t.Helper()
	o.CPUs = 1
	return o.Create(Hardware{GPUs: cards(t, n)}, env, nil)
}

// The rules of section 2 of the budget: what TensorFlow makes of a card's
// memory. Figures in MiB unless a case says bytes.
func TestBudget(t *testing.T) {
	const free15000 = 15000 * mib
	for _, c := range []struct {
		name    string
		o       Options
		m       Memory
		env     Env
		want    int64
		warning string
		kind    Kind
	}{
		{"nothing set", Options{}, Memory{16384 * mib, free15000, 7}, nil, 13950 * mib, "", 0},
		{"old rule", Options{ReserveRule: ReserveTF21}, Memory{16384 * mib, free15000, 7}, nil, 14250 * mib, "", 0},
		{"old rule, little", Options{ReserveRule: ReserveTF21}, Memory{16384 * mib, 4000 * mib, 7}, nil, 3700 * mib, "", 0},
		{"exactly 2 GiB free", Options{}, Memory{16384 * mib, 2147483648, 8}, nil, (2048 - 1536) * mib, "", 0},
		{"fraction is not bounded by free", Options{Fraction: 0.5}, Memory{16384 * mib, 100 * mib, 7}, nil, 8192 * mib, "", 0},
		{"fraction in double arithmetic", Options{Fraction: 0.3333}, Memory{1000000007, 1000000007, 7}, nil, 333300002, "", 0},
		{"unified on old", Options{Fraction: 1.5}, Memory{16384 * mib, free15000, 5}, nil, 0, "", Internal},
		{"unified asked for on old", Options{UseUnifiedMemory: true}, Memory{16384 * mib, free15000, 5}, nil, 0, "", Internal},
		{"unified", Options{Fraction: 1.5}, Memory{16384 * mib, free15000, 7}, nil, 24576 * mib, "", 0},
		{"system memory", Options{SystemMemoryMiB: 1000}, Memory{16384 * mib, free15000, 7}, nil, 14000 * mib, "", 0},
		{"system memory of more than free", Options{SystemMemoryMiB: 20000}, Memory{16384 * mib, free15000, 7}, nil, 13950 * mib, "20000", 0},
		{"system memory overrides a fraction", Options{Fraction: 0.5, SystemMemoryMiB: 1000}, Memory{16384 * mib, free15000, 7}, nil, 14000 * mib, "", 0},
		{"system memory of more than free leaves the fraction", Options{Fraction: 0.5, SystemMemoryMiB: 15001}, Memory{16384 * mib, free15000, 7}, nil, 8192 * mib, "15001", 0},
		{"min sys memory overrides system memory", Options{SystemMemoryMiB: 1000}, Memory{16384 * mib, free15000, 7}, vars("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "3000"), 12000 * mib, "", 0},
		{"min sys memory below 0", Options{}, Memory{16384 * mib, free15000, 7}, vars("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "-1"), 13950 * mib, "-1", 0},
		{"unified memory without a fraction", Options{UseUnifiedMemory: true}, Memory{16384 * mib, free15000, 6}, nil, 14500 * mib, "", 0},
		{"exactly the reserve free", Options{}, Memory{16384 * mib, 225 * mib, 7}, nil, 225 * mib, "", 0},
		{"min sys memory", Options{Fraction: 0.1}, Memory{16384 * mib, free15000, 7}, vars("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "2000"), 13000 * mib, "", 0},
		{"min sys memory unreadable", Options{Fraction: 0.5}, Memory{16384 * mib, free15000, 7}, vars("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "abc"), 8192 * mib, "abc", 0},
		{"min sys memory 0", Options{}, Memory{16384 * mib, free15000, 7}, vars("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "0"), free15000, "", 0},
		{"min sys memory of more than free", Options{}, Memory{16384 * mib, free15000, 7}, vars("TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "99999999999"), 0, "", InvalidArgument},
		{"negative fraction", Options{Fraction: -1}, Memory{16384 * mib, free15000, 7}, nil, 0, "", InvalidArgument},
	} {
		b, err := c.o.Limit(c.m, c.env, "card 0")
		if c.kind != 0 {
			want(t, err, c.kind, "card 0")
			continue
		}
		if err != nil || b.Limit != c.want {
			t.Errorf("%s: limit %d, want %d (%v)", c.name, b.Limit, c.want, err)
		}
		if all := strings.Join(b.Warning, "\n"); (c.warning == "") != (all == "") || !strings.Contains(all, c.warning) {
			t.Errorf("%s: warnings %q", c.name, all)
		}
	}
}

func TestLogicalDevicesOfTheFirstOfTwoCards(t *testing.T) {
	a, err := create(t, Options{Virtual: []VirtualDevices{{Limits: []int64{MiB(1024), MiB(1024)}}, {}}}, 2, nil)
	must(t, err)
	g := a.Of("GPU")
	if len(g) != 3 || g[0].Physical != 0 || g[1].Physical != 0 || g[2].Physical != 1 || g[1].Limit != 1<<30 || g[2].Limit != 13950*mib {
		t.Fatalf("%+v", g)
	}
	if kind, n := a.Link(1, 2); kind != "SAME_DEVICE" || n != 1000 {
		t.Error("logical devices of one card:", kind, n)
	}
	if kind, n := a.Link(1, 3); kind != "" || n != 0 {
		t.Error("cards without peer access:", kind, n)
	}
}

func TestLimitsThatExceedTheCardAreNoErrorUntilTheDriverRefuses(t *testing.T) {
	a, err := create(t, Options{Virtual: []VirtualDevices{{Limits: []int64{8192 * mib, 8192 * mib}}}}, 1, nil)
	must(t, err)
	g := a.Of("GPU")
	s0, err := g[0].Space(1 << 40)
	must(t, err)
	s1, err := g[1].Space(2 << 40)
	must(t, err)
	if _, _, ok := s0.Take(256, g[0].Limit); !ok {
		t.Error("the first was refused")
	}
	if _, _, ok := s1.Take(256, g[1].Limit); ok {
		t.Error("the card of 15000 MiB gave 16384")
	}
}

func TestDeviceLayerErrors(t *testing.T) {
	two := []VirtualDevices{{Limits: []int64{mib}}, {Limits: []int64{mib}}}
	for _, c := range []struct {
		name  string
		o     Options
		cards int
		kind  Kind
		words []string
	}{
		{"fraction and virtual devices", Options{Fraction: 0.5, Virtual: two}, 2, InvalidArgument, []string{"virtual_devices", "per_process_gpu_memory_fraction"}},
		{"two entries, one GPU", Options{Virtual: two}, 1, Unknown, []string{"2 entries", "1 usable"}},
		{"one entry, list of two", Options{Virtual: two[:1], VisibleDeviceList: "0,1"}, 2, InvalidArgument, []string{"1 entries", "0,1"}},
		{"one entry, two GPUs", Options{Virtual: two[:1]}, 2, Unknown, []string{"1 entries", "2 valid"}},
		{"ordinals for some", Options{Virtual: []VirtualDevices{{Limits: []int64{1}, Ordinals: []int{0}}, {Limits: []int64{1}}}}, 2, InvalidArgument, []string{"ordinals"}},
		{"ordinals of another count", Options{Virtual: []VirtualDevices{{Limits: []int64{1}, Ordinals: []int{0, 1}}}}, 1, InvalidArgument, []string{"2 ordinals"}},
		{"priorities for some", Options{Virtual: []VirtualDevices{{Limits: []int64{1}, Priorities: []int{0}}, {Limits: []int64{1}}}}, 2, InvalidArgument, []string{"priorities"}},
		{"priority out of range", Options{Virtual: []VirtualDevices{{Limits: []int64{1}, Priorities: []int{1}}}}, 1, InvalidArgument, []string{"priority 1", "[-5, 0]"}},
		{"limit 0", Options{Virtual: []VirtualDevices{{Limits: []int64{0}}}}, 1, InvalidArgument, []string{"0 bytes"}},
		{"limit below 0", Options{Virtual: []VirtualDevices{{Limits: []int64{-5}}}}, 1, InvalidArgument, []string{"-5 bytes"}},
		{"duplicate", Options{VisibleDeviceList: "0,0"}, 2, InvalidArgument, []string{"0,0", "duplicate"}},
		{"unreadable", Options{VisibleDeviceList: "0,x"}, 2, InvalidArgument, []string{`"x"`}},
		{"out of range", Options{VisibleDeviceList: "2"}, 2, InvalidArgument, []string{"count 2"}},
	} {
		_, err := create(t, c.o, c.cards, nil)
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want(t, err, c.kind, c.words...)
	}
}

func TestVisibleListKeepsItsOrder(t *testing.T) {
	for _, list := range []string{"1,0", " 1 , 0"} {
		a, err := create(t, Options{VisibleDeviceList: list}, 2, nil)
		must(t, err)
		if g := a.Of("GPU"); g[0].Physical != 1 || g[1].Physical != 0 {
			t.Errorf("%q: GPU:0 is card %d", list, g[0].Physical)
		}
	}
}

func TestNoGPUsToUse(t *testing.T) {
	a, err := create(t, Options{GPUs: Some(0), VisibleDeviceList: "x"}, 2, nil)
	must(t, err)
	if len(a.Devices) != 1 {
		t.Error("a GPU was made")
	}
	if a, err = create(t, Options{GPUs: Some(1)}, 2, nil); err != nil || len(a.Of("GPU")) != 1 {
		t.Error("device_count 1:", err)
	}
}

func TestCUDAVisibleDevicesRenumbers(t *testing.T) {
	all := cards(t, 3)
	for list, want := range map[string][]*Card{
		"2,0": {all[2], all[0]}, "": nil, "-1": nil, "1,7,0": {all[1]}, "0,0,1": {all[0]}, "x": nil,
	} {
		got := CUDAVisible(all, vars("CUDA_VISIBLE_DEVICES", list))
		if len(got) != len(want) {
			t.Errorf("%q: %d cards", list, len(got))
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%q: card %d", list, i)
			}
		}
	}
	c := NewConfig(Hardware{GPUs: all}, vars("CUDA_VISIBLE_DEVICES", "2"))
	if p := c.PhysicalDevices("GPU"); len(p) != 1 || p[0].Name != "/physical_device:GPU:0" || c.card(p[0]) != all[2] {
		t.Error("physical devices are not what the driver shows")
	}
}

func TestOrdinalsNumberDevicesAcrossCards(t *testing.T) {
	a, err := create(t, Options{Virtual: []VirtualDevices{
		{Limits: []int64{1 * mib, 2 * mib}, Ordinals: []int{0, 1}},
		{Limits: []int64{3 * mib, 4 * mib}, Ordinals: []int{0, 1}},
	}}, 2, nil)
	must(t, err)
	var order []int64
	for _, l := range a.Of("GPU") {
		order = append(order, l.Limit/mib)
	}
	if len(order) != 4 || order[0] != 1 || order[1] != 3 || order[2] != 2 || order[3] != 4 {
		t.Error(order)
	}
}

func TestNumVirtualDevicesPerGPUDividesTheLimit(t *testing.T) {
	m := NewMachine(nil)
	card, _ := m.Card("c", &Preset{Name: "c", Major: 7, Total: Figure{1000, Invented}})
	o := Options{CPUs: 1, NumVirtualPerGPU: 3, Fraction: 1}
	a, err := o.Create(Hardware{GPUs: []*Card{card}}, nil, nil)
	must(t, err)
	if g := a.Of("GPU"); len(g) != 3 || g[0].Limit != 333 || g[2].Limit != 333 {
		t.Errorf("%+v", g)
	}
}

// num_virtual_devices_per_gpu is for GPUs that nothing cuts: an empty entry
// among virtual devices is one device.
func TestNumVirtualDevicesPerGPUYieldsToVirtualDevices(t *testing.T) {
	a, err := create(t, Options{NumVirtualPerGPU: 3, Virtual: []VirtualDevices{{Limits: []int64{mib, mib}}, {}}}, 2, nil)
	must(t, err)
	if g := a.Of("GPU"); len(g) != 3 || g[0].Limit != mib || g[2].Physical != 1 || g[2].Limit != 13950*mib {
		t.Errorf("%v", g)
	}
}

func TestASecondCreationInAProcessKeepsTheOldLimit(t *testing.T) {
	hw, proc := Hardware{GPUs: cards(t, 2)}, new(Process)
	first := Options{CPUs: 1, Fraction: 0.5}
	a, err := first.Create(hw, nil, proc)
	must(t, err)
	second := Options{CPUs: 1, Fraction: 0.25}
	b, err := second.Create(hw, nil, proc)
	must(t, err)
	if b.Devices[1].Limit != a.Devices[1].Limit {
		t.Errorf("limit %d became %d", a.Devices[1].Limit, b.Devices[1].Limit)
	}
	other := Options{CPUs: 1, VisibleDeviceList: "1,0"}
	_, err = other.Create(hw, nil, proc)
	want(t, err, AlreadyExists, "/GPU:0")
}

func TestCreatedLineCountsWholeMiB(t *testing.T) {
	a, err := create(t, Options{Virtual: []VirtualDevices{{Limits: []int64{14618*mib + 200}}}}, 1, nil)
	must(t, err)
	if line := a.Log[len(a.Log)-1]; !strings.Contains(line, "with 14618 MB memory:  -> device: 0, name: Test card") || !strings.Contains(line, "compute capability: 7.5") {
		t.Error(line)
	}
}

func TestFilterOfOldAndSmallCards(t *testing.T) {
	m := NewMachine(nil)
	make3 := func() []*Card {
		var out []*Card
		for i, p := range []Preset{
			{Major: 3, Minor: 0, Multiprocessors: Figure{8, Invented}},
			{Major: 7, Multiprocessors: Figure{4, Invented}},
			{Major: 7, Multiprocessors: Figure{40, Invented}},
		} {
			p.Name, p.Total = string(rune('a'+i)), Figure{4096 * mib, Invented}
			c, err := m.Card(p.Name, &p)
			must(t, err)
			out = append(out, c)
		}
		return out
	}
	o := Options{CPUs: 1}
	a, err := o.Create(Hardware{GPUs: make3()}, nil, nil)
	must(t, err)
	if g := a.Of("GPU"); len(g) != 1 || g[0].Physical != 2 || len(a.Log) != 3 {
		t.Errorf("%v %q", g, a.Log)
	}
	a, err = o.Create(Hardware{GPUs: make3()}, vars("TF_MIN_GPU_MULTIPROCESSOR_COUNT", "4"), nil)
	must(t, err)
	if len(a.Of("GPU")) != 2 {
		t.Error("TF_MIN_GPU_MULTIPROCESSOR_COUNT was not heeded")
	}
}

func TestStreamsThreadsAndHostPool(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 4: 4, 5: 1, -1: 1} {
		a, err := create(t, Options{D2DStreams: n}, 1, nil)
		must(t, err)
		if a.D2DStreams != want || (len(a.Warnings) > 0) != (n < 0 || n > 4) {
			t.Errorf("%d streams: %d, %q", n, a.D2DStreams, a.Warnings)
		}
	}
	a, err := create(t, Options{}, 1, vars("TF_GPU_THREAD_MODE", "gpu_private"))
	must(t, err)
	if a.Threads != (ThreadMode{"gpu_private", 2}) {
		t.Error(a.Threads)
	}
	_, err = create(t, Options{}, 1, vars("TF_GPU_THREAD_MODE", "mine"))
	want(t, err, InvalidArgument, "TF_GPU_THREAD_MODE", "mine")
	_, err = create(t, Options{}, 1, vars("TF_GPU_THREAD_MODE", "gpu_shared", "TF_GPU_THREAD_COUNT", "x"))
	want(t, err, InvalidArgument, "TF_GPU_THREAD_COUNT")
	if a, _ := create(t, Options{}, 0, vars("TF_GPU_HOST_MEM_LIMIT_IN_MB", "10")); a.HostLimit != 10*mib {
		t.Error(a.HostLimit)
	}
	if a, _ := create(t, Options{HostLimitMiB: 7}, 0, vars("TF_GPU_HOST_MEM_LIMIT_IN_MB", "10")); a.HostLimit != 7*mib {
		t.Error(a.HostLimit)
	}
}

func TestForcedGrowth(t *testing.T) {
	for _, c := range []struct {
		env        string
		configured bool
		want, warn bool
	}{
		{"true", false, true, true},
		{"false", true, false, true},
		{"true", true, true, false},
		{"1", true, true, true},
		{"1", false, false, true},
	} {
		g, w := vars("TF_FORCE_GPU_ALLOW_GROWTH", c.env).Growth(c.configured)
		if g != c.want || (w != "") != c.warn {
			t.Errorf("%q with %v: %v, %q", c.env, c.configured, g, w)
		}
	}
}

// Two processes on one card: the second gets what the first left to the
// system, less its own context.
func TestTheSecondProcessOnACardGetsTheRest(t *testing.T) {
	p, _ := Find("t4-16g")
	card, err := NewMachine(nil).Card("t4", p)
	must(t, err)
	hw := Hardware{GPUs: []*Card{card}}
	o := Options{CPUs: 1}
	a, err := o.Create(hw, nil, nil)
	must(t, err)
	s, _ := a.Devices[1].Space(1 << 40)
	if _, _, ok := s.Take(256, a.Devices[1].Limit); !ok {
		t.Fatal("refused")
	}
	b, err := o.Create(hw, nil, nil)
	must(t, err)
	free := int64(1050 - 250)
	if got := b.Devices[1].Limit / mib; got != free-225 {
		t.Errorf("limit %d MiB, want %d", got, free-225)
	}
	b.Release()
	a.Release()
	if card.Free() != card.Total()-a.Devices[1].Limit {
		t.Error("contexts were not given back")
	}
}

func TestUnifiedMemoryExceedsTheCard(t *testing.T) {
	a, err := create(t, Options{Fraction: 1.5}, 1, nil)
	must(t, err)
	l := a.Devices[1]
	s, err := l.Space(1 << 40)
	must(t, err)
	if _, _, ok := s.Take(256, l.Limit); !l.Unified || l.Limit <= l.Card.Total() || !ok {
		t.Errorf("limit %d of %d", l.Limit, l.Card.Total())
	}
}

func TestInterconnects(t *testing.T) {
	p, _ := Find("a100-40g")
	m := NewMachine(nil)
	x, _ := m.Card("x", p)
	y, _ := m.Card("y", p)
	for _, c := range []struct {
		how      Interconnect
		strength int
		peer     int64
	}{{Auto, 1, p.Peer.Value}, {NVLink, 1, p.Peer.Value}, {PCIe, 1, p.D2H.Value}, {Staged, 0, 0}} {
		o := Options{CPUs: 1, Interconnect: c.how}
		a, err := o.Create(Hardware{GPUs: []*Card{x, y}}, nil, nil)
		must(t, err)
		if kind, n := a.Link(1, 2); n != c.strength || (n > 0) != (kind == "StreamExecutor") || a.Devices[1].Model.Peer != c.peer {
			t.Errorf("%v: %s %d, peer %d", c.how, kind, n, a.Devices[1].Model.Peer)
		}
		if _, staged := a.Devices[1].Model.ToPeer(mib); staged != (c.how == Staged) {
			t.Errorf("%v: staged %v", c.how, staged)
		}
		a.Release()
	}
}

func TestAContextThatDoesNotFitFailsCleanly(t *testing.T) {
	p, _ := Find("lab-256m")
	card, _ := NewMachine(nil).Card("c", p)
	card.Hold(250 * mib)
	o := Options{CPUs: 1}
	_, err := o.Create(Hardware{GPUs: []*Card{card}}, nil, nil)
	want(t, err, Internal, "driver context")
	if card.Free() != 6*mib {
		t.Error("something stuck:", card.Free())
	}
}

func TestReportedMemoryLimits(t *testing.T) {
	a, err := create(t, Options{}, 1, nil)
	must(t, err)
	if cpu, gpu := a.Devices[0].MemoryLimit(), a.Devices[1].MemoryLimit(); cpu != 256*mib || gpu != 13950*mib || a.Devices[0].Limit != 0 {
		t.Error(cpu, gpu)
	}
}
