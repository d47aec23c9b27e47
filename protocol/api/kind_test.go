package api

import (
	"strings"
	"testing"
)

// TestAKindFollowsItsPreset: who names a TPU need not say that it is one.
func TestAKindFollowsItsPreset(t *testing.T) {
	for _, c := range []struct {
		name   string
		device Device
		sets   []string
		kind   string
		says   string // of a problem with the kind
	}{
		{"none given", Device{Preset: "tpu-v3"}, nil, "tpu", ""},
		{"none given, a GPU", Device{Preset: "t4-16g"}, nil, "gpu", ""},
		{"changed", Device{Preset: "t4-16g"}, []string{"preset=tpu-v3"}, "tpu", ""},
		{"changed after the defaults", Device{Preset: "t4-16g", Kind: "gpu", Allocator: "bfc"}, []string{"preset=tpu-v3"}, "tpu", ""},
		{"changed back", Device{Preset: "tpu-v3", Kind: "tpu"}, []string{"preset=t4-16g"}, "gpu", ""},
		{"given, wrongly", Device{Preset: "tpu-v3", Kind: "gpu"}, nil, "gpu", "tpu-v3 is a TPU: set kind to tpu"},
		{"given, wrongly for a GPU", Device{Preset: "t4-16g", Kind: "tpu"}, nil, "tpu", "t4-16g is a GPU: set kind to gpu"},
	} {
		w := &Workload{Model: "mlp", Devices: []Device{c.device}}
		for _, s := range c.sets {
			field, value, _ := strings.Cut(s, "=")
			if err := w.Set("devices.0."+field, value); err != nil {
				t.Fatal(err)
			}
		}
		w.Defaults()
		if w.Devices[0].Kind != c.kind {
			t.Errorf("%s: kind %q, want %q", c.name, w.Devices[0].Kind, c.kind)
		}
		var said string
		for _, p := range w.Validate(Known{Presets: []string{"t4-16g", "tpu-v3"}}) {
			said += p.String() + "\n"
		}
		if c.says == "" && said != "" || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", c.name, said, c.says)
		}
	}
}
