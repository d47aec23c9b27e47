//go:build cuda

package monitor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Each case is a process of its own: the library is loaded once and for all.
func TestCardsThroughNVML(t *testing.T) {
	library := filepath.Join(t.TempDir(), "libnvml.so")
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if out, err := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-Wall", "testdata/nvml.c", "-o", library).CombinedOutput(); err != nil {
		t.Fatalf("build the fake library: %v\n%s", err, out)
	}
	for name, c := range map[string]struct{ library, cards, want string }{
		"two cards":     {library, "2", ""},
		"no driver":     {library, "-1", "does not start: Driver Not Loaded"},
		"no library":    {"/nowhere/libnvidia-ml.so.1", "1", "/nowhere/libnvidia-ml.so.1 of NVIDIA's driver is not on this machine"},
		"no such cards": {library, "0", ""},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
		cmd.Env = append(os.Environ(), "TIDELINE_NVML="+c.library, "FAKE_NVML_CARDS="+c.cards, "WANT="+c.want, "FAKE_NVML_PID="+strconv.Itoa(os.Getpid()))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestChild") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestChild(t *testing.T) {
	cards, set := os.LookupEnv("FAKE_NVML_CARDS")
	if !set {
		t.Skip("for TestCardsThroughNVML")
	}
	m, err := Open()
	if want := os.Getenv("WANT"); want != "" {
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	list, err := m.Cards()
	if err != nil || strconv.Itoa(len(list)) != cards || m.Driver() != "550.54.15" {
		t.Fatalf("%d cards, driver %q: %v", len(list), m.Driver(), err)
	}
	if len(list) < 2 {
		return
	}
	c := list[1]
	if c.Name != "Fake Card 1" || c.PCI != "0000:3c:00.0" || c.UUID != "GPU-fake-1" || c.Total != 16<<30 || c.Used != 2<<30 || c.Free != 14<<30 {
		t.Errorf("%+v", c)
	}
	if c.Utilisation != Unknown || list[0].Utilisation != 57 || list[0].MemoryBusy != 12 {
		t.Errorf("utilisation %d, %d, %d", c.Utilisation, list[0].Utilisation, list[0].MemoryBusy)
	}
	parent, _ := strconv.Atoi(os.Getenv("FAKE_NVML_PID"))
	want := []Process{{parent, filepath.Base(os.Args[0]), 300 << 20}, {4000000000, "", Unknown}}
	if len(c.Processes) != 2 || c.Processes[0] != want[0] || c.Processes[1] != want[1] {
		t.Errorf("processes %+v, want %+v", c.Processes, want)
	}
}
