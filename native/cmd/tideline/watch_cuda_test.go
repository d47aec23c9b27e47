//go:build cuda

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tideline/native/monitor"
)

// TestTheCardBesideARunOnARealClock runs on the CPU, whose clock is real, beside
// NVML's library with made-up cards: the file tells of them.
func TestTheCardBesideARunOnARealClock(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libnvml.so")
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if out, err := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-Wall", "../../monitor/testdata/nvml.c", "-o", library).CombinedOutput(); err != nil {
		t.Fatalf("build the fake library: %v\n%s", err, out)
	}
	w := file(t, "cpu.yaml", "model: lenet5\ntrain: {}\nbatch: 64\nsteps: 12\n")
	for _, c := range []struct {
		name string
		args []string
		want bool
	}{
		{"on the CPU", []string{"run", w}, true},
		{"modelled", []string{"run", w, "--modelled"}, false},
		{"watched", []string{"watch", "--for", "200ms", "--every", "50ms"}, true},
	} {
		out := filepath.Join(t.TempDir(), "out.tideline")
		cmd, stderr := child(t, append(c.args, "-o", out)...)
		cmd.Env = append(cmd.Env, "TIDELINE_NVML="+library, "FAKE_NVML_CARDS=2")
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", c.name, err, stderr)
		}
		tl, series := samplesOf(t, out)
		x := series["Fake Card 1 #1 "+monitor.SeriesUsed]
		if (x != nil) != c.want || tl.Skipped() != 0 {
			t.Errorf("%s: series %v, %d events skipped", c.name, series, tl.Skipped())
			continue
		}
		if x != nil {
			if _, v, _ := x.Point(0); v != 2<<30 || x.Second != 16<<30 {
				t.Errorf("%s: the card uses %d of %d bytes", c.name, v, x.Second)
			}
		}
	}
}
