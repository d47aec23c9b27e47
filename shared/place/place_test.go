package place

import (
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/program"
	"tideline/shared/zoo"
)

func devices(gpus ...int) []*device.Logical {
	out := []*device.Logical{{Name: device.Local("CPU", 0)}}
	for _, id := range gpus {
		out = append(out, &device.Logical{Name: device.Local("GPU", id), Card: new(device.Card)})
	}
	return out
}

func model(t *testing.T) *program.Program {
	t.Helper()
	p, err := zoo.Program("mlp", zoo.Options{Batch: 4, Train: true, Optimizer: "adam"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// at gives the device and reason of a node.
func at(t *testing.T, p *program.Program, d []Decision, name string) Decision {
	t.Helper()
	for i := range p.Nodes {
		if p.Nodes[i].Name == name {
			return d[i]
		}
	}
	t.Fatalf("no node %s", name)
	return Decision{}
}

func TestPlaceByRuleRequestAndDefault(t *testing.T) {
	for _, c := range []struct {
		name  string
		gpus  []int
		rules []Rule
		node  string
		want  event.DeviceID
		why   string
	}{
		{"default", []int{0, 1}, nil, "dense1/MatMul", 1, "first GPU"},
		{"no GPU", nil, nil, "dense1/MatMul", 0, "no GPU"},
		{"rule", []int{0, 1}, []Rule{{"dense1/*", "/GPU:1"}}, "dense1/MatMul", 2, "rule dense1/*"},
		{"full name", []int{0, 1}, []Rule{{"dense1/*", "/device:GPU:1"}}, "dense1/MatMul", 2, "rule"},
		{"local name", []int{0, 1}, []Rule{{"dense1/*", "GPU:1"}}, "dense1/MatMul", 2, "rule"},
		{"first rule wins", []int{0, 1}, []Rule{{"*/MatMul", "/CPU:0"}, {"dense1/*", "/GPU:1"}}, "dense1/MatMul", 0, "rule */MatMul"},
		{"soft", []int{0, 1}, []Rule{{"dense1/*", "/GPU:2"}}, "dense1/MatMul", 1, "soft placement chose /GPU:0"},
		{"gradient follows", []int{0}, []Rule{{"dense2/*", "/CPU:0"}}, "gradients/dense2/ReluGrad", 0, "gradient of dense2/Relu"},
		{"update follows its variable", []int{0}, []Rule{{"dense1/kernel", "/CPU:0"}, {"Adam/*", "/GPU:0"}}, "Adam/dense1/kernel/ApplyAdam", 0, "with its variable"},
		{"slot follows its variable", []int{0}, []Rule{{"dense1/kernel", "/CPU:0"}}, "Adam/dense1/kernel/m", 0, "with its variable"},
		{"lexicographic", []int{10, 2}, nil, "dense1/MatMul", 1, "default"},
	} {
		p := model(t)
		got, err := Place(p, devices(c.gpus...), c.rules, true)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := at(t, p, got, c.node); d.Device != c.want || !strings.Contains(d.Reason, c.why) {
			t.Errorf("%s: %s on device %d because %q, want %d because of %q", c.name, c.node, d.Device, d.Reason, c.want, c.why)
		}
	}
}

func TestHardPlacementNamesOpDeviceAndChoices(t *testing.T) {
	p := model(t)
	_, err := Place(p, devices(0, 1), []Rule{{"dense1/MatMul", "/GPU:2"}}, false)
	if !errors.Is(err, ErrPlacement) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"dense1/MatMul", "/GPU:2", "device:CPU:0", "device:GPU:0", "device:GPU:1"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q lacks %s", err, want)
		}
	}
	if _, err := Place(p, devices(0), []Rule{{"*", "/gpu:x"}}, true); err == nil {
		t.Error("an unreadable device name was taken")
	}
}

func TestConstantFollowsItsConsumers(t *testing.T) {
	b := program.NewBuilder("t", 1)
	x := b.Input("x", program.Float32, program.Shape{4})
	c := b.Const("c", program.Float32, program.Shape{4}, 1)
	both := b.Const("both", program.Float32, program.Shape{4}, 1)
	one := b.Op(program.OpAdd, program.Attrs{}, x, c)
	two := b.Op(program.OpAdd, program.Attrs{}, one, both)
	b.Fetch("y", b.Op(program.OpMul, program.Attrs{}, two, both))
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Place(p, devices(0), []Rule{{"AddV2", "/CPU:0"}, {"AddV2_1", "/CPU:0"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	if d := at(t, p, got, "c"); d.Device != 0 {
		t.Errorf("a constant for CPU:0 alone is on device %d (%s)", d.Device, d.Reason)
	}
	if d := at(t, p, got, "both"); d.Device != 1 {
		t.Errorf("a constant for CPU:0 and GPU:0 is on device %d (%s)", d.Device, d.Reason)
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"conv2/*", "conv2/Conv2D", true},
		{"conv2/*", "gradients/conv2/Conv2D", false},
		{"*conv2/*", "gradients/conv2/Conv2D", true},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "aXcYb", false},
		{"*", "", true},
		{"", "x", false},
		{"x", "x", true},
		{"a*a", "a", false},
		{"*ab", "aab", true},
	} {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("%q on %q: %v", c.pattern, c.name, got)
		}
	}
}
