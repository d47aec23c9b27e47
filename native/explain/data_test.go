package explain

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/golden"
)

// TestDataFiles: a snapshot, a profile, a trace and a device profile, as people
// read them and as programs do.
func TestDataFiles(t *testing.T) {
	for _, c := range []struct{ path, words string }{
		{"24-torch-snapshot-2025-small-model/snapshot.pickle", "46.00 MiB in 5 of 10 segments can be returned"},
		{"34-tf-xspace-2020-alexnet-step/plugins_profile_run_host.xplane.pb", "holds at most 1.47 GiB of 13.64 GiB"},
		{"35-tf-xspace-2020-resnet-near-limit/plugins_profile_run_host.xplane.pb.gz", "holds at most 13.00 GiB of 14.41 GiB"},
		{"36-chrome-trace-tf-2020-copies/trace.json.gz", "one MemcpyH2D of 100663296 bytes taking 25.009 ms"},
		{"37-jax-device-memory-pprof/memory.prof", "Live arrays hold 19.20 MiB on gpu:0"},
	} {
		path := filepath.Join(golden.Cases(t), c.path)
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		description, err := os.ReadFile(filepath.Join(filepath.Dir(path), "case.json"))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Explain("input", bytes.NewReader(file), &out, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, c.words) {
			t.Errorf("%s:\n%s\nwant %q", c.path, out.String(), c.words)
		}
		out.Reset()
		if err := Explain("input", bytes.NewReader(file), &out, Options{JSON: true}); err != nil {
			t.Fatal(err)
		}
		var report struct{ Readings []json.RawMessage }
		if err := json.Unmarshal(out.Bytes(), &report); err != nil || len(report.Readings) != 1 {
			t.Fatalf("%v\n%s", err, out.String())
		}
		golden.CheckCase(t, description, report.Readings[0])
	}
}

func TestTheProfilersViewOfAProfile(t *testing.T) {
	path := filepath.Join(golden.Cases(t), "34-tf-xspace-2020-alexnet-step", "plugins_profile_run_host.xplane.pb")
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Explain("input", bytes.NewReader(file), &out, Options{Profiler: true}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "GPU_0_bfc") || !strings.Contains(got, "peak heap usage 2.795 GiB") {
		t.Error(got)
	}
}

func TestBadData(t *testing.T) {
	for file, want := range map[string]string{
		"\x80\x04\x95":                       "the file ends before the pickle does",
		"\x80\x02cos\nsystem\nU\x02ls\x85R.": "REDUCE on os.system refused",
		"\x80\x02}U\x05epochK\x01s.":         `no PyTorch memory snapshot: its keys are ["epoch"]`,
	} {
		var out bytes.Buffer
		err := Explain("x", strings.NewReader(file), &out, Options{})
		if err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
			t.Errorf("%q: %v, wrote %q, want %q", file, err, out.String(), want)
		}
	}
}
