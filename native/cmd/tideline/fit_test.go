package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

const (
	fitting  = "model: lenet5\ntrain: {optimizer: adam}\nbatch: 64\nsteps: 20\ndevices:\n  - {preset: lab-256m}\n"
	overCard = "model: lenet5\ntrain: {optimizer: adam}\nbatch: 8192\nsteps: 20\ndevices:\n  - {preset: lab-256m}\n"
	onCPU    = "model: mlp\nbatch: 8\nsteps: 2\n"
)

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name, workload string
		args           []string
		code           int
		out, stderr    string
	}{
		{"it fits", fitting, nil, 0, "Largest batch: ", ""},
		{"it does not", overCard, nil, 3, "What makes it fit, each verified by a run", ""},
		{"on a larger card it does", overCard, []string{"--device", "t4-16g"}, 0, "fits /GPU:0 (t4-16g)", ""},
		{"a search that ends early", fitting, []string{"--most", "100"}, 0, "Largest batch: 100, where the search ends", ""},
		{"no card", onCPU, nil, 2, "", "name one with --device"},
		{"a card for it", onCPU, []string{"--device", "t4-16g"}, 0, "Largest batch: ", ""},
		{"a TPU for it", onCPU, []string{"--device", "tpu-v3"}, 0, "fits /TPU:0 (tpu-v3)", ""},
		{"a TPU instead of a GPU that grows", "model: mlp\nbatch: 8\nsteps: 2\ndevices:\n  - {preset: lab-256m, growth: true}\n", []string{"--device", "tpu-v2"}, 0, "fits /TPU:0 (tpu-v2)", ""},
		{"a card that is none", fitting, []string{"--device", "abacus"}, 2, "", "abacus"},
		{"a knob that the model lacks", fitting, []string{"--knob", "sequence"}, 2, "", "lenet5 takes no sequence"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := tideline(t, append([]string{"fit", file(t, "w.yaml", c.workload)}, c.args...)...)
			if code != c.code || !strings.Contains(stdout, c.out) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit %d, want %d\n%s%s", code, c.code, stdout, stderr)
			}
		})
	}
}

// TestFitIsVerifiedByRuns: the largest batch runs, the next does not, the
// smallest limit runs and one MiB less does not.
func TestFitIsVerifiedByRuns(t *testing.T) {
	w := file(t, "w.yaml", fitting)
	code, stdout, stderr := tideline(t, "fit", w, "--json")
	var got fitted
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	var sum int64
	for _, p := range got.Parts {
		sum += p.Bytes
	}
	if sum != got.PeakInUse || got.Low != got.PeakInUse || got.High < got.Low || got.Runs < 10 || got.At == nil || got.Next == nil {
		t.Errorf("%+v", got)
	}
	run := func(want int, set ...string) {
		t.Helper()
		args := []string{"run", "-q", "--modelled", w}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		if code, out, _ := tideline(t, args...); code != want {
			t.Errorf("%v: exit %d, want %d\n%s", set, code, want, out)
		}
	}
	run(0, got.At.Set...)
	run(exitOutOfMemory, got.Next.Set...)
	limit := func(mib int64) string { return "devices.0.memory_limit=" + strconv.FormatInt(mib, 10) + "MiB" }
	run(0, limit(got.SmallestLimit>>20))
	run(exitOutOfMemory, limit(got.SmallestLimit>>20-1))
}

// TestFitTellsGrowthApart: the smallest limit is that of the workload as it is
// written; the one without growth is told as a change. Both can be typed.
func TestFitTellsGrowthApart(t *testing.T) {
	const example = "../../../examples/fragmentation.yaml"
	code, stdout, stderr := tideline(t, "fit", example, "--most", "400", "--json")
	var got fitted
	if err := json.Unmarshal([]byte(stdout), &got); code != exitOutOfMemory || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if got.SmallestLimit <= got.Limit || got.SmallestWhole <= 0 || got.SmallestWhole >= got.SmallestLimit {
		t.Errorf("limit %d: as written %d, without growth %d", got.Limit, got.SmallestLimit, got.SmallestWhole)
	}
	for _, set := range [][]string{got.SmallestSet, got.WholeSet} {
		args := []string{"run", "-q", "--modelled", example}
		for _, s := range set {
			args = append(args, "--set", s)
		}
		if code, out, stderr := tideline(t, args...); code != 0 {
			t.Errorf("%v: exit %d\n%s%s", set, code, out, stderr)
		}
	}
	_, stdout, _ = tideline(t, "fit", example, "--most", "400")
	for _, want := range []string{"as written, with growth", "without growth", got.SmallestSet[0], got.WholeSet[0]} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
}

// TestFitEstimatesOverDevices: where a part of what does not fit can be divided
// over devices, published formulas say what would be on each, as estimates, and
// beside what was run.
func TestFitEstimatesOverDevices(t *testing.T) {
	const embeddings = (50257 + 1024) * 768 // of words and positions
	const gpt2 = "model: gpt2\ntrain: {optimizer: adam}\nsteps: 2\ndevices:\n  - {preset: t4-16g}\n"
	code, stdout, stderr := tideline(t, "fit", file(t, "w.yaml", gpt2+"batch: 16\n"), "--most", "16", "--json")
	var got fitted
	if err := json.Unmarshal([]byte(stdout), &got); code != exitOutOfMemory || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	d := got.Divided
	if d == nil || d.Params != 124_439_808 || d.Largest != embeddings || d.Layers != 12 || d.Tokens != 16*1024 || !strings.Contains(d.Note, "not run") {
		t.Fatalf("%+v", d)
	}
	// Activations do not fit, and the state would: of it nothing is told.
	if len(d.State) != 0 || len(d.Activations) != 5 {
		t.Errorf("%d rows of state, %d of activations", len(d.State), len(d.Activations))
	}
	const sbh = 1024 * 16 * 768 * 12
	if plain, parallel := d.Activations[0].Each, d.Activations[2].Each; plain[2] != sbh*(34+80) || parallel[2] != sbh*(34+80)/8 {
		t.Errorf("kept as they are %v, tensor and sequence parallel %v", plain, parallel)
	}
	code, stdout, stderr = tideline(t, "fit", file(t, "w.yaml", gpt2+"batch: 1\n"), "--most", "1", "--set", "devices.0.memory_limit=1GiB", "--json")
	got = fitted{}
	if err := json.Unmarshal([]byte(stdout), &got); code != exitOutOfMemory || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if d = got.Divided; d == nil || len(d.State) != 5 || d.State[0].Each[2] != 6*124_439_808 || d.State[4].Each[0] != 4*embeddings || d.State[0].Host != 6*8*124_439_808 {
		t.Errorf("%+v", d)
	}
	for _, c := range []struct {
		name, workload string
		args           []string
		told           bool
	}{
		{"it does not fit", gpt2 + "batch: 16\n", []string{"--most", "16"}, true},
		{"it fits", gpt2 + "batch: 1\nsequence: 64\n", []string{"--most", "1"}, false},
		{"neither layers nor much state", overCard, []string{"--most", "64"}, false},
	} {
		_, stdout, stderr = tideline(t, append([]string{"fit", file(t, "w.yaml", c.workload)}, c.args...)...)
		if got := strings.Contains(stdout, "Over several devices (estimates by published formulas, not run"); got != c.told {
			t.Errorf("%s: told %v\n%s%s", c.name, got, stdout, stderr)
		}
	}
}
