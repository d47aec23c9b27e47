package device

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// cards makes n cards of 15 GiB and 7.5 whose drivers take nothing.
func cards(t *testing.T, n int) []*Card {
	t.Helper()
	m := NewMachine(nil)
	p := &Preset{Name: "test", Title: "Test card", Major: 7, Minor: 5, Total: Figure{15000 * mib, Invented}}
	var out []*Card
	for i := range n {
		c, err := m.Card("test#"+string(rune('0'+i)), p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func fresh(t *testing.T, gpus int) (*Config, []Physical) {
	t.Helper()
	c := NewConfig(Hardware{GPUs: cards(t, gpus)}, nil)
	return c, c.PhysicalDevices("GPU")
}

// want asserts the kind of an error, and that its text names these words.
func want(t *testing.T, err error, k Kind, words ...string) {
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func initialized(t *testing.T, c *Config) *Assembly {
	t.Helper()
	a, err := c.Initialize(nil)
	must(t, err)
	return a
}

func TestGrowthIsFrozenByInitialisationButNotItsPresentValue(t *testing.T) {
	c, gpu := fresh(t, 1)
	if !slices.Equal(c.PhysicalDevices("GPU"), c.PhysicalDevices("GPU")) || c.Initialized() {
		t.Error("listing physical devices changed something")
	}
	must(t, c.SetMemoryGrowth(gpu[0], true))
	if a := initialized(t, c); !a.Devices[1].Growth {
		t.Error("no growth")
	}
	err := c.SetMemoryGrowth(gpu[0], false)
	want(t, err, RuntimeError, "/physical_device:GPU:0", "memory growth", "physical devices cannot be modified")
	if !errors.Is(err, ErrInitialized) {
		t.Error("not ErrInitialized")
	}
	must(t, c.SetMemoryGrowth(gpu[0], true))
}

func TestGrowthMustNotDifferBetweenVisibleGPUs(t *testing.T) {
	for _, on := range []bool{true, false} { // {true, unset} and {false, unset}
		c, gpu := fresh(t, 2)
		must(t, c.SetMemoryGrowth(gpu[0], on))
		_, err := c.Initialize(nil)
		want(t, err, ValueError, "memory growth", "cannot differ", "GPU:0", "GPU:1")
		if !errors.Is(err, ErrGrowthDiffers) || c.Initialized() {
			t.Errorf("%v, initialised %v", err, c.Initialized())
		}
		// The context may be tried again.
		must(t, c.SetVisible("GPU", gpu[0]))
		if a := initialized(t, c); len(a.Devices) != 2 || a.Devices[1].Growth != on {
			t.Errorf("with the second hidden: %d devices", len(a.Devices))
		}
	}
}

func TestLogicalDevicesExcludeGrowth(t *testing.T) {
	gib := []LogicalConfig{{Limit: MiB(1024)}, {Limit: MiB(1024)}}
	c, gpu := fresh(t, 1)
	must(t, c.SetLogical(gpu[0], gib...))
	err := c.SetMemoryGrowth(gpu[0], true)
	want(t, err, ValueError, "/physical_device:GPU:0", "memory growth", "logical devices")
	if !errors.Is(err, ErrConflict) {
		t.Error("not ErrConflict")
	}

	c, gpu = fresh(t, 1)
	must(t, c.SetMemoryGrowth(gpu[0], true)) // is silently dropped
	must(t, c.SetLogical(gpu[0], gib...))
	for _, l := range initialized(t, c).Of("GPU") {
		if l.Growth || l.Limit != 1073741824 {
			t.Errorf("%s: growth %v, limit %d", l.Name, l.Growth, l.Limit)
		}
	}

	c, gpu = fresh(t, 2)
	must(t, c.SetLogical(gpu[0], gib...))
	must(t, c.SetMemoryGrowth(gpu[1], true)) // is ignored
	for _, l := range initialized(t, c).Of("GPU") {
		if l.Growth {
			t.Errorf("%s grows", l.Name)
		}
	}

	env := Env(func(k string) (string, bool) { return "true", k == "TF_FORCE_GPU_ALLOW_GROWTH" })
	c = NewConfig(Hardware{GPUs: cards(t, 1)}, env)
	must(t, c.SetLogical(c.PhysicalDevices("GPU")[0], gib...))
	if l := initialized(t, c).Devices[1]; !l.Growth {
		t.Error("TF_FORCE_GPU_ALLOW_GROWTH does not make logical devices grow")
	}
}

// Also where only the CPU is cut, growth is not set.
func TestLogicalCPUsDropGrowth(t *testing.T) {
	c, gpu := fresh(t, 1)
	must(t, c.SetMemoryGrowth(gpu[0], true))
	must(t, c.SetLogicalCPUs(2))
	if a := initialized(t, c); a.Of("GPU")[0].Growth || len(a.Of("CPU")) != 2 {
		t.Error("growth survived")
	}
}

func TestVisibleOrderIsTheDrivers(t *testing.T) {
	c, gpu := fresh(t, 2)
	must(t, c.SetVisible("GPU", gpu[1], gpu[0]))
	if v := c.Visible("GPU"); v[0] != gpu[1] {
		t.Error("the order that was set is not told back")
	}
	if a := initialized(t, c); a.Devices[1].Physical != 0 || a.Devices[2].Physical != 1 {
		t.Error("GPU:0 is not physical 0")
	}
}

func TestSetVisible(t *testing.T) {
	c, gpu := fresh(t, 2)
	cpu := c.PhysicalDevices("CPU")
	want(t, c.SetVisible("CPU", gpu[0]), ValueError, "/physical_device:GPU:0", "visible devices", "unrecognised device")
	want(t, c.SetVisible("", Physical{"/physical_device:GPU:7", "GPU"}), ValueError, "GPU:7", "unrecognised device")
	must(t, c.SetVisible("GPU"))
	a := initialized(t, c)
	if len(a.Of("GPU")) != 0 {
		t.Error("hidden GPUs were made")
	}
	must(t, c.SetVisible("GPU")) // the same list
	must(t, c.SetVisible("CPU", cpu...))
	want(t, c.SetVisible("GPU", gpu[0]), RuntimeError, "/physical_device:GPU:0", "visible devices cannot change")
}

func TestSetVisibleWithoutATypeReplacesEverything(t *testing.T) {
	c, gpu := fresh(t, 1)
	cpu := c.PhysicalDevices("CPU")[0]
	must(t, c.SetVisible("", cpu))
	if a := initialized(t, c); len(a.Devices) != 1 {
		t.Error("a GPU was made")
	}
	must(t, c.SetVisible("", cpu))
	want(t, c.SetVisible("", gpu...), RuntimeError, "visible devices")

	c, gpu = fresh(t, 1)
	must(t, c.SetVisible("", gpu[0])) // hides the CPU
	_, err := c.Initialize(nil)
	want(t, err, NotFound, "CPU")
	must(t, c.SetVisible("", gpu[0], cpu))
	initialized(t, c)
}

func TestSetLogical(t *testing.T) {
	c, gpu := fresh(t, 1)
	cpu := c.PhysicalDevices("CPU")[0]
	want(t, c.SetLogical(cpu, LogicalConfig{Limit: MiB(100)}), ValueError, "CPU:0", "memory limit")
	want(t, c.SetLogical(cpu, LogicalConfig{Priority: Some(1)}), ValueError, "CPU:0", "priority")
	want(t, c.SetLogical(gpu[0], LogicalConfig{}), ValueError, "GPU:0", "needs a memory limit")
	want(t, c.SetLogical(gpu[0], LogicalConfig{Limit: -1}), ValueError, "GPU:0", "-1")
	want(t, c.SetLogical(Physical{"/physical_device:GPU:9", "GPU"}), ValueError, "GPU:9")
	must(t, c.SetLogical(cpu, make([]LogicalConfig, 4)...))
	must(t, c.SetLogical(gpu[0])) // the default single device
	a := initialized(t, c)
	if len(a.Of("CPU")) != 4 || a.Of("CPU")[3].Name.Short() != "/CPU:3" || len(a.Of("GPU")) != 1 || a.Of("GPU")[0].Limit != 13950*mib {
		t.Errorf("%d CPUs, GPUs %v", len(a.Of("CPU")), a.Of("GPU"))
	}
	must(t, c.SetLogical(cpu, make([]LogicalConfig, 4)...))
	want(t, c.SetLogical(gpu[0], LogicalConfig{Limit: 1 << 30}), RuntimeError, "GPU:0", "virtual devices cannot be modified")
}

func TestTwoLogicalDevicesOfOneGiB(t *testing.T) {
	c, gpu := fresh(t, 1)
	must(t, c.SetLogical(gpu[0], LogicalConfig{Limit: MiB(1024)}, LogicalConfig{Limit: MiB(1024.9)}))
	got := initialized(t, c).Of("GPU")
	if len(gpu) != 1 || len(got) != 2 || got[0].Limit != 1073741824 || got[1].Limit != 1073741824 || got[0].Card != got[1].Card {
		t.Errorf("%v", got)
	}
}

func TestLogicalCPUs(t *testing.T) {
	c, _ := fresh(t, 0)
	must(t, c.SetLogicalCPUs(2))
	must(t, c.SetLogicalCPUs(2))
	want(t, c.SetLogicalCPUs(3), RuntimeError, "CPU:0", "logical CPUs")
	want(t, c.SetLogicalCPUs(0), ValueError, "logical CPUs")
}

func TestPrioritiesForSomeLogicalDevicesOnly(t *testing.T) {
	for _, x := range []LogicalConfig{{Limit: 1 << 20, Priority: Some(-1)}, {Limit: 1 << 20, Ordinal: Some(1)}} {
		c, gpu := fresh(t, 1)
		must(t, c.SetLogical(gpu[0], x, LogicalConfig{Limit: 1 << 20})) // checked at initialisation only
		_, err := c.Initialize(nil)
		want(t, err, ValueError, "GPU:0", "some entries only")
	}
	c, gpu := fresh(t, 1)
	must(t, c.SetLogical(gpu[0], LogicalConfig{Limit: 1 << 20, Priority: Some(1)}))
	_, err := c.Initialize(nil)
	want(t, err, InvalidArgument, "priority 1", "[-5, 0]")
}

func TestThreadsAreFrozenByInitialisation(t *testing.T) {
	c, _ := fresh(t, 0)
	must(t, c.SetIntraOp(4))
	initialized(t, c)
	want(t, c.SetIntraOp(2), RuntimeError, "intra-op")
	must(t, c.SetIntraOp(4))
	want(t, c.SetInterOp(1), RuntimeError, "inter-op")
	if n, _ := c.Threads(); n != 4 {
		t.Error(n)
	}
}

func TestSettingsThatMayChangeAtAnyTime(t *testing.T) {
	c, _ := fresh(t, 0)
	if !c.SoftPlacement(false) || c.SoftPlacement(true) {
		t.Error("unset soft placement: on in eager mode and functions, off for v1 graphs")
	}
	initialized(t, c)
	c.SetSoftPlacement(false)
	if c.SoftPlacement(false) {
		t.Error("soft placement did not change")
	}
	c.SetOptimizer(map[string]bool{"remapping": false, "nonsense": true})
	c.SetOptimizer(map[string]bool{"layout_optimizer": true})
	if o := c.Optimizer(); len(o) != 2 || !o["layout_optimizer"] {
		t.Errorf("options are merged and unknown keys ignored: %v", o)
	}
	must(t, c.SetOptimizerJIT("autoclustering"))
	want(t, c.SetOptimizerJIT("fast"), ValueError, "fast")
}

func TestGrowthOfWhatIsNoGPU(t *testing.T) {
	c, gpu := fresh(t, 1)
	cpu := c.PhysicalDevices("CPU")[0]
	_, err := c.MemoryGrowth(cpu)
	want(t, err, KeyError, "CPU:0", "memory growth")
	want(t, c.SetMemoryGrowth(cpu, true), ValueError, "CPU:0", "memory growth")
	unknown := Physical{"/physical_device:GPU:0", "CPU"} // compared by both fields
	_, err = c.MemoryGrowth(unknown)
	want(t, err, ValueError, "unrecognised")
	if g, err := c.MemoryGrowth(gpu[0]); g != GrowthUnset || err != nil {
		t.Error(g, err)
	}
	must(t, c.SetMemoryGrowth(gpu[0], false))
	if g, _ := c.MemoryGrowth(gpu[0]); g != GrowthOff || g.String() != "False" {
		t.Error(g)
	}
}

func TestUnknownTypesListNothing(t *testing.T) {
	c, _ := fresh(t, 1)
	if len(c.PhysicalDevices("TPU")) != 0 || len(c.PhysicalDevices("abacus")) != 0 || len(c.PhysicalDevices("")) != 2 {
		t.Error("listing by type")
	}
	if c.PhysicalDevices("")[0].Type != "CPU" {
		t.Error("the CPU is not first")
	}
}

func TestDetails(t *testing.T) {
	c, gpu := fresh(t, 1)
	if d, err := c.Details(gpu[0]); err != nil || d != (Details{"Test card", 7, 5}) {
		t.Error(d, err)
	}
	if d, err := c.Details(c.PhysicalDevices("CPU")[0]); err != nil || d != (Details{}) {
		t.Error(d, err)
	}
	_, err := c.Details(Physical{Name: "GPU:0", Type: "GPU"})
	want(t, err, ValueError, "GPU:0")
}

func TestImport(t *testing.T) {
	c, gpu := fresh(t, 3)
	want(t, c.Import(Options{VisibleDeviceList: "3"}), ValueError, "3")
	must(t, c.Import(Options{CPUs: 2, VisibleDeviceList: "2,0,1", GPUs: Some(2)}))
	if v := c.Visible("GPU"); !slices.Equal(v, []Physical{gpu[2], gpu[0]}) {
		t.Errorf("%v", v)
	}
	if a := initialized(t, c); len(a.Of("CPU")) != 2 || a.Of("GPU")[0].Physical != 0 {
		t.Error("devices")
	}
	none, _ := fresh(t, 0)
	must(t, none.Import(Options{VisibleDeviceList: "7"})) // ignored without GPUs
}

func TestTPU(t *testing.T) {
	p, ok := FindTPU("tpu-v3")
	if !ok {
		t.Fatal("no tpu-v3")
	}
	card, err := NewMachine(nil).Card("tpu", p)
	must(t, err)
	c := NewConfig(Hardware{TPUs: []*Card{card}}, nil)
	tpu := c.PhysicalDevices("TPU")
	want(t, c.SetMemoryGrowth(tpu[0], true), ValueError, "TPU:0")
	want(t, c.SetLogical(tpu[0], LogicalConfig{Limit: 1}), ValueError, "TPU:0")
	l := initialized(t, c).Of("TPU")
	if len(l) != 1 || l[0].Name.Short() != "/TPU:0" || l[0].Limit != (16384-528)*mib || l[0].IsHost() {
		t.Errorf("%+v", l)
	}
}

func TestFindOne(t *testing.T) {
	c, _ := fresh(t, 1)
	devices := initialized(t, c).Devices
	for _, s := range []string{"GPU:0", "/GPU:0", "/device:GPU:0", "/job:localhost/replica:0/task:0/device:GPU:0", "/gpu:0"} {
		if i, err := FindOne(devices, s); err != nil || i != 1 {
			t.Errorf("%q: %d, %v", s, i, err)
		}
	}
	for s, words := range map[string]string{
		"GPU": "parsed", "CPU:GPU": "parsed", "CPU:": "parsed", "unknown text": "parsed", "GPU:7": "no matching device", "/task:0": "type", "": "type",
	} {
		_, err := FindOne(devices, s)
		want(t, err, ValueError, words)
	}
	two, gpu := fresh(t, 1)
	must(t, two.SetLogical(gpu[0], LogicalConfig{Limit: mib}, LogicalConfig{Limit: mib}))
	_, err := FindOne(initialized(t, two).Devices, "/device:GPU:*")
	want(t, err, ValueError, "more than one")
}
