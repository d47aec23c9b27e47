package explain

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
)

// ledgerJSON is a ledger as the report has it, for all its rows.
type ledgerJSON map[string]any

func (l ledgerJSON) whole(t *testing.T, where string) {
	t.Helper()
	sum := 0.0
	for name, v := range l {
		if n, ok := v.(float64); ok && name != "device_total_bytes" {
			sum += n
		}
	}
	if total, _ := l["device_total_bytes"].(float64); sum != total || total == 0 {
		t.Errorf("%s: the rows come to %.0f of %.0f: %v", where, sum, total, l)
	}
}

// TestWhereTheMemoryOfTheCardIs: of a failure, of a run that fits, and of
// another program's message, in each form of the report.
func TestWhereTheMemoryOfTheCardIs(t *testing.T) {
	timelineOf := func(w api.Workload) []byte {
		var file bytes.Buffer
		strs := new(event.Strings)
		tw := timeline.NewWriter(&file, timeline.Options{Strings: strs})
		if _, err := launch.Run(w, launch.Options{Strings: strs, Sink: tw}); err != nil {
			t.Fatal(err)
		}
		if err := tw.Close(); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	fits := api.Workload{Model: "lenet5", Train: &api.Train{}, Batch: []int{64}, Steps: 2, Devices: []api.Device{{Preset: "lab-256m", Held: 100 << 20}}}
	message := "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 MiB. GPU 0 has a total capacity of 79.19 GiB of which 679.38 MiB is free. " +
		"Process 11111 has 3.66 GiB memory in use. Including non-PyTorch memory, this process has 74.00 GiB memory in use. " +
		"Of the allocated memory 71.60 GiB is allocated by PyTorch, and 1.35 GiB is reserved by PyTorch but unallocated.\n"
	for _, c := range []struct {
		name    string
		file    []byte
		of      func(map[string]any) any
		text    []string
		certain bool
	}{
		{"a failure", timelineOf(tooMuch["batch too large, growth"]), func(v map[string]any) any {
			return v["failures"].([]any)[0].(map[string]any)["ledger"]
		}, []string{"Where the 256.00 MiB of the card were", "this process, outside its allocators", "free, outside the limit"}, true},
		{"a run that fits", timelineOf(fits), func(v map[string]any) any {
			for _, a := range v["run"].(map[string]any)["allocators"].([]any) {
				if x := a.(map[string]any); x["name"] == "GPU_0_bfc" {
					return x["ledger"]
				}
			}
			return nil
		}, []string{"Where the 256.00 MiB of the card were at the peak", "100.00 MiB  other processes"}, true},
		{"a message", []byte(message), func(v map[string]any) any {
			return v["readings"].([]any)[0].(map[string]any)["ledger"]
		}, []string{"79.19 GiB"}, false},
	} {
		out := func(o Options) string {
			o.NoReruns = true
			var b bytes.Buffer
			if err := Explain("x", bytes.NewReader(c.file), &b, o); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			return b.String()
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(out(Options{JSON: true})), &v); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		l, _ := c.of(v).(map[string]any)
		if l == nil {
			t.Errorf("%s: no ledger", c.name)
			continue
		}
		ledgerJSON(l).whole(t, c.name)
		if rest, _ := l["unaccounted_bytes"].(float64); c.certain && rest != 0 {
			t.Errorf("%s: %.0f bytes of a simulated card are not accounted for", c.name, rest)
		}
		text, page := out(Options{}), out(Options{HTML: true})
		for _, want := range c.text {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", c.name, want, text)
			}
			if _, words, ok := strings.Cut(want, "  "); ok {
				want = words
			}
			if !strings.Contains(page, want) {
				t.Errorf("%s: %q is not on the page", c.name, want)
			}
		}
		if c.name == "a message" && (l["other_processes_bytes"].(float64) < 3.6*(1<<30) || l["outside_allocators_bytes"] == nil || l["rounded"] != true) {
			t.Errorf("%s: %v", c.name, l)
		}
	}
}

// TestRegionsThatLittleKeepsAreNamed: of a failure in a pool that grew.
func TestRegionsThatLittleKeepsAreNamed(t *testing.T) {
	file := exampleFile(t, "fragmentation")
	for _, o := range []Options{{}, {HTML: true}, {Redact: true}} {
		o.NoReruns = true
		got := strings.Join(strings.Fields(explain(t, "x", file, o)), " ")
		if !strings.Contains(got, pinTitle) || !strings.Contains(got, "MiB idle of 4.00 MiB, kept by 1 block of 1.41 MiB, ") {
			t.Errorf("%+v: the pinned regions are not in\n%s", o, got)
		}
	}
	if !strings.Contains(explain(t, "x", file, Options{JSON: true, NoReruns: true}), `"pinned": [{"address":`) {
		t.Error("no pinned regions in JSON")
	}
}

// TestASnapshotTellsWhatKeepsItsSegments: of a failure in pieces, with the code
// that holds them, and not on whom in a redacted report.
func TestASnapshotTellsWhatKeepsItsSegments(t *testing.T) {
	file := oomSnapshot(t, 1000)
	for _, o := range []Options{{NoReruns: true}, {NoReruns: true, HTML: true}} {
		got := strings.Join(strings.Fields(explain(t, "x", file, o)), " ")
		for _, want := range []string{"idle within reach of the request that failed", "egments kept by few bytes", "25.00 MiB idle of 50.00 MiB, kept by 1 block of 25.00 MiB"} {
			if !strings.Contains(got, want) {
				t.Errorf("%+v: %q is not in\n%s", o, want, got)
			}
		}
	}
}
