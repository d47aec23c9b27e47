package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"tideline/protocol/api"
	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// TestMain lets the test binary be the command, for tests that kill it.
func TestMain(m *testing.M) {
	if os.Getenv("TIDELINE_TEST_COMMAND") != "" {
		main()
	}
	signal.Reset()
	os.Exit(m.Run())
}

// child starts the command in a process of its own.
func child(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), "TIDELINE_TEST_COMMAND=1")
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	})
	return cmd, stderr
}

// tideline runs the command in this process.
func tideline(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = execute(t.Context(), args, &console{strings.NewReader(""), &out, &err})
	return code, out.String(), err.String()
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func gzipped(b []byte) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.String()
}

// small is a workload that takes milliseconds.
const small = "model: mlp\ntrain: {optimizer: sgd}\nbatch: 16\nsteps: 5\ndevices: [{preset: lab-256m, growth: true}]\n"

// tooLarge does not fit its card.
const tooLarge = "model: lenet5\ntrain: {}\nbatch: 60000\nsteps: 5\ndevices: [{preset: lab-256m, growth: true}]\n"

func recorded(t *testing.T, workload string, args ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "x.tideline")
	code, _, stderr := tideline(t, append([]string{"run", file(t, "w.yaml", workload), "-o", out, "--modelled"}, args...)...)
	if code != exitDone && code != exitOutOfMemory {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	return out
}

// readAll reads a timeline, which may be damaged.
func readAll(t *testing.T, path string) ([]event.Event, *timeline.Stream) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := timeline.NewStream(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []event.Event
	for {
		all, err = s.Next(all)
		if errors.Is(err, io.EOF) {
			return all, s
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestExitCodesAndWords(t *testing.T) {
	good := file(t, "good.yaml", small)
	bad := file(t, "bad.yaml", "model: mlp\nbatchsize: 3\ndevices:\n  - {preset: t4-16g, growth: true, memory_limit: 1GiB}\n")
	line := recorded(t, small)
	whole, err := os.ReadFile(line)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 4
	newer := bytes.Clone(whole)
	newer[8]++ // the major version, guarded by the checksum behind it
	binary.LittleEndian.PutUint32(newer[12:], block.Checksum(newer[:12]))
	dir, twin := t.TempDir(), filepath.Join(t.TempDir(), "x.txt")
	if code, _, stderr := tideline(t, "convert", line, twin); code != exitDone {
		t.Fatal(stderr)
	}
	packed := file(t, "x.tideline.gz", gzipped(whole))
	tests := []struct {
		name string
		args []string
		code int
		out  string // in the standard output
		err  string // in the standard error
	}{
		{"help", []string{"--help"}, 0, "accelerator memory", ""},
		{"help of a verb", []string{"run", "--help"}, 0, "FIELD=VALUE", ""},
		{"unknown flag", []string{"--nonsense"}, 2, "", "--nonsense"},
		{"unknown flag of a verb", []string{"run", good, "--nonsense"}, 2, "", "tideline run --help"},
		{"missing argument", []string{"run"}, 2, "", "<workload>"},
		{"version", []string{"version"}, 0, "tideline ", ""},
		{"run", []string{"run", good, "--modelled"}, 0, "5 of 5 steps", ""},
		{"run with a bad file", []string{"run", bad}, 1, "", bad + ":2: batchsize: no field"},
		{"every problem", []string{"run", bad}, 1, "", bad + ":4: devices.0.growth: growth and memory_limit exclude each other"},
		{"no file", []string{"run", "missing.yaml"}, 1, "", "missing.yaml"},
		{"set without a value", []string{"run", good, "--set", "steps"}, 2, "", "no '='"},
		{"set of nothing", []string{"run", good, "--set", "stepps=3"}, 2, "", `did you mean "steps"`},
		{"set to nonsense", []string{"run", good, "--set", "devices.0.growth=perhaps"}, 2, "", "neither true nor false"},
		{"set to a conflict", []string{"run", good, "--set", "devices.0.memory_limit=1GiB"}, 2, "", "exclude each other"},
		{"set a list", []string{"run", good, "--modelled", "--set", "batch=8,16", "--set", "steps=3"}, 0, "3 of 3 steps", ""},
		{"out of memory", []string{"run", file(t, "large.yaml", tooLarge), "--modelled"}, 3, "Out of memory on /GPU:0", ""},
		{"a pattern that matches nothing", []string{"run", good, "--modelled", "--set", "keep=zzz*"}, 0, `warning: keep "zzz*": no op`, ""},
		{"a plan of no height", []string{"plan", "nofile.csv", "--capacity", "0"}, 2, "", "takes a size above 0"},
		{"a NaN with check_numerics", []string{"run", file(t, "nan.yaml", "model: mlp\ntrain: {optimizer: sgd, learning_rate: 1e20}\nsteps: 3\ncheck_numerics: true\n")}, 1, "dense2/MatMul: MatMul: output 0", ""},
		{"one output for two", []string{"run", good, good, "-o", "x.tideline"}, 2, "", "once per workload"},
		{"output that is no timeline", []string{"run", good, "-o", bad}, 2, "", "not a timeline"},
		{"output into nowhere", []string{"run", good, "-o", "/nonexistent/x.tideline"}, 1, "", "/nonexistent"},
		{"validate", []string{"validate", good}, 0, "optimizer: sgd", ""},
		{"validate a bad file", []string{"validate", bad}, 1, "", bad + ":2:"},
		{"validate to JSON", []string{"validate", bad, "--json"}, 1, `"path": "batchsize"`, ""},
		{"devices", []string{"devices"}, 0, "lab-256m", ""},
		{"diff", []string{"diff", line, line}, 0, "peak in use", ""},
		{"diff with a cut file", []string{"diff", line, file(t, "cut.tideline", string(whole[:len(whole)*2/3]))}, 0, "cut short", ""},
		{"diff with a flipped bit", []string{"diff", line, file(t, "flipped.tideline", string(flipped))}, 0, "", "checksum"},
		{"diff with a newer file", []string{"diff", line, file(t, "newer.tideline", string(newer))}, 1, "", "newer version"},
		{"diff with something else", []string{"diff", line, file(t, "a.png", "\x89PNG\r\n\x1a\n")}, 1, "", "a picture"},
		{"diff with a workload", []string{"diff", line, good}, 2, "", "good.yaml is a workload"},
		{"diff with a log", []string{"diff", line, "../../../shared/analysis/testdata/cases/05-tf-bfc-2023-cifar-fragmented/input.log"}, 0, "3.06 GiB", ""},
		{"replay says what is taken from what", []string{"replay", line}, 0, "rerun − original", ""},
		{"replay names defaults", []string{"replay", line, "--set", "devices.0.growth=false"}, 0, "devices.0.growth: true -> false", ""},
		{"explain", []string{"explain", line}, 0, "GPU_0_bfc", ""},
		{"explain something else", []string{"explain", file(t, "b.png", "\x89PNG\r\n\x1a\n")}, 1, "", "a picture"},
		{"replay of nothing", []string{"replay"}, 2, "", "--answers"},
		{"replay of both", []string{"replay", line, "--answers", line}, 2, "", "not both"},
		{"replay", []string{"replay", line, "--set", "batch=32"}, 0, "batch: 16 -> 32", ""},
		{"replay into out of memory", []string{"replay", line, "--set", "batch=60000", "--set", "model=lenet5"}, 3, "out of memory", ""},
		{"replay with a conflict", []string{"replay", line, "--set", "devices.0.logical=1GiB"}, 2, "", "exclude each other"},
		{"answers of no trace", []string{"replay", "--answers", good}, 1, "", "good.yaml"},
		{"answers of requests", []string{"replay", "--answers", file(t, "a.csv", "op,id,size,stream\na,0,31000000,0\n"), "--limit", "30MiB", "--set", "max_split_size_mb=32"}, 0, "0,a,0,0,0,31457280,31457280,31457280, +seg0:31457280", ""},
		{"answers with an option that there is not", []string{"replay", "--answers", file(t, "b.csv", "op,id,size,stream\n"), "--set", "split=1"}, 2, "", `allocator torch has no option "split"`},
		{"answers of a bad row", []string{"replay", "--answers", file(t, "c.csv", "op,id,size,stream\nz,0,1,0\n")}, 1, "", `c.csv: requests, line 2: op "z" is unknown`},
		{"convert to what", []string{"convert", line, "x.png"}, 2, "", "neither .tideline nor .txt"},
		{"convert onto itself", []string{"convert", line, line}, 2, "", "while it is read"},
		{"bench", []string{"bench", "--events", "2000", "--rounds", "1", "--only", "timelines"}, 0, "encode, deflated", ""},
		{"bench of nothing", []string{"bench", "--events", "1"}, 2, "", "at least 1000"},
		{"short token", []string{"serve", "--token", "x"}, 2, "", "at least 8"},
		{"serve a file that is not there", []string{"serve", "--data", t.TempDir(), "missing.tideline"}, 1, "", "missing.tideline"},
		{"serve a workload", []string{"--data", t.TempDir(), good}, 2, "", "good.yaml is a workload"},
		{"serve a file about nothing", []string{"--data", t.TempDir(), file(t, "notes.txt", "nothing of interest\n")}, 1, "", "notes.txt is text"},
		{"verb misspelt", []string{"explian", "x"}, 2, "", `did you mean "explain"`},
		{"verb of nothing near", []string{"frobnicate"}, 2, "", "Verbs: serve, run"},
		{"model misspelt", []string{"run", good, "--set", "model=lenet"}, 2, "", `did you mean "lenet5"`},
		{"model of nothing near", []string{"run", good, "--set", "model=qqq"}, 2, "", `unknown model "qqq". Known: mlp, `},
		{"a folder, said once", []string{"explain", dir}, 1, "", "tideline: read " + dir + ": is a directory\n"},
		{"explain two snapshots", []string{"explain", "--no-reruns", "../../../examples/files/small-model.pickle", "../../../examples/files/llm-step.pickle.gz"}, 0, "llm-step.pickle.gz: PyTorch memory snapshot", ""},
		{"diff of snapshots", []string{"diff", "../../../examples/files/small-model.pickle", "../../../examples/files/llm-step.pickle.gz"}, 0, "Who holds GPU_0_torch at the end", ""},
		{"diff of a snapshot by stack", []string{"diff", "../../../examples/files/small-model.pickle", "../../../examples/files/llm-step.pickle.gz"}, 0, "step optimizers.py:82, from wrapper optimizer.py:493", ""},
		{"diff of profiles", []string{"diff", "../../../examples/files/jax-memory.prof", "../../../examples/files/jax-memory.prof"}, 0, "Who holds buffer on gpu:0 at the peak", ""},
		{"diff of a log of memory and a snapshot", []string{"diff", "../../../examples/files/rmm.csv", "../../../examples/files/small-model.pickle"}, 0, "rmm_0 → GPU_0_torch peak in use", ""},
		{"diff of copies", []string{"diff", "../../../examples/files/alexnet.trace.json.gz", "../../../examples/files/alexnet.xplane.pb.gz"}, 0, "A tells nothing of GPU_0_bfc: its zeros are unknown.", ""},
		{"diff with a table of cards", []string{"diff", "../../../examples/files/smi-gpu.csv", "../../../examples/files/small-model.pickle"}, 1, "", "(nvidia-smi) and"},
		{"diff of nothing alike", []string{"diff", "../../../examples/files/jax-memory.prof", "../../../examples/files/llm-step.pickle.gz"}, 0, "", ""},
		{"a folder to compare", []string{"diff", dir, line}, 1, "", "tideline: open " + dir + ": is a directory\n"},
		{"diff of packed files", []string{"diff", packed, line}, 0, "B − A", ""},
		{"explain a text twin", []string{"explain", twin}, 0, "GPU_0_bfc", ""},
		{"runs of one name", []string{"run", good, good, "--modelled"}, 0, "#2: done", ""},
		{"why the limit is less", []string{"run", good, "--modelled"}, 0, "232.00 MiB of its card's 256.00 MiB: 8.00 MiB are the driver's context, 16.00 MiB are left to libraries", ""},
		{"serve at no address", []string{"serve", "--data", t.TempDir(), "--addr", "nowhere"}, 1, "", "HOST:PORT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := tideline(t, tt.args...)
			if code != tt.code || !strings.Contains(stdout, tt.out) || !strings.Contains(stderr, tt.err) {
				t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s\nwant %q and %q", code, tt.code, stdout, stderr, tt.out, tt.err)
			}
		})
	}
}

func TestRunWritesWhatItSays(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.tideline")
	code, stdout, stderr := tideline(t, "run", file(t, "w.yaml", small), "-o", out, "--json")
	if code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	var sums []runSummary
	if err := json.Unmarshal([]byte(stdout), &sums); err != nil || len(sums) != 1 {
		t.Fatalf("%v in %s", err, stdout)
	}
	s := sums[0]
	events, stream := readAll(t, out)
	if !stream.Complete() || uint64(len(events)) != s.Events || s.State != "done" || s.Steps != 5 {
		t.Errorf("file has %d events, complete %v; summary %+v", len(events), stream.Complete(), s)
	}
	if _, ok := s.Metrics["loss"]; !ok || len(s.Memory) != 3 || s.Memory[2].PeakInUse == 0 || len(s.Transfers) == 0 {
		t.Errorf("summary %+v", s)
	}
	peak := int64(0)
	for _, b := range s.Memory[2].ByCategory {
		peak += b
	}
	if peak != s.Memory[2].PeakInUse {
		t.Errorf("categories sum to %d, the peak is %d", peak, s.Memory[2].PeakInUse)
	}
}

func TestOutOfMemoryIsRecordedAndExplained(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.tideline")
	code, stdout, _ := tideline(t, "run", file(t, "w.yaml", tooLarge), "-o", out, "--json", "--modelled")
	var sums []runSummary
	if err := json.Unmarshal([]byte(stdout), &sums); err != nil {
		t.Fatal(err)
	}
	if code != exitOutOfMemory || sums[0].OOM == nil || sums[0].OOM.Requested == 0 || sums[0].OOM.Cause == "" {
		t.Fatalf("%d %s", code, stdout)
	}
	events, stream := readAll(t, out)
	if !stream.Complete() || events[len(events)-1].Kind != event.End {
		t.Error("the file is not whole")
	}
	found := false
	for i := range events {
		found = found || events[i].Kind == event.OutOfMemory && events[i].Text != 0
	}
	if !found {
		t.Error("the failure is not in the file")
	}
}

func TestTwoRunsShareACard(t *testing.T) {
	w := func(growth bool) string {
		return file(t, "w.yaml", fmt.Sprintf("model: mlp\ntrain: {}\nbatch: 64\nsteps: 3\ndevices: [{preset: lab-256m, card: one, growth: %v}]\n", growth))
	}
	code, stdout, stderr := tideline(t, "run", w(true), w(true), "--modelled")
	if code != exitDone || strings.Count(stdout, "3 of 3 steps") != 2 {
		t.Errorf("with growth: %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = tideline(t, "run", w(false), w(false), "--modelled", "--json")
	var sums []runSummary
	if err := json.Unmarshal([]byte(stdout), &sums); err != nil {
		t.Fatalf("%v: %s %s", err, stdout, stderr)
	}
	if code == exitDone || sums[0].State != "done" || sums[1].State == "done" {
		t.Errorf("without growth: %d, %s and %s: %s", code, sums[0].State, sums[1].State, sums[1].Message)
	}
}

func TestAFullDiskDoesNotStopTheRun(t *testing.T) {
	const device = "/dev/full" // every write to it finds the disk full
	if _, err := os.Stat(device); err != nil {
		t.Skipf("no full disk here: %v", err)
	}
	code, stdout, stderr := tideline(t, "run", file(t, "w.yaml", small), "-o", device, "--modelled")
	if code != exitFailed || !strings.Contains(stdout, "5 of 5 steps") || !strings.Contains(stderr, "no space left on device") {
		t.Errorf("%d\n%s\n%s", code, stdout, stderr)
	}
}

func TestConvertThereAndBack(t *testing.T) {
	dir := t.TempDir()
	line := recorded(t, small)
	one, two := filepath.Join(dir, "1.txt"), filepath.Join(dir, "2.txt")
	back := filepath.Join(dir, "back.tideline")
	for _, args := range [][]string{{"convert", line, one}, {"convert", one, back}, {"convert", back, two}} {
		if code, _, stderr := tideline(t, args...); code != exitDone {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	a, errA := os.ReadFile(one)
	b, errB := os.ReadFile(two)
	if errA != nil || errB != nil || !bytes.Equal(a, b) || len(a) == 0 {
		t.Errorf("%v %v: %d and %d bytes differ", errA, errB, len(a), len(b))
	}
	if code, stdout, _ := tideline(t, "convert", line, "-"); code != exitDone || stdout != string(a) {
		t.Errorf("to the standard output: %d, %d bytes", code, len(stdout))
	}
}

func TestARerunWithoutChangesChangesNothing(t *testing.T) {
	line := recorded(t, small)
	code, stdout, stderr := tideline(t, "replay", line, "--json")
	var x comparison
	if err := json.Unmarshal([]byte(stdout), &x); err != nil || code != exitDone {
		t.Fatalf("%d %v %s", code, err, stderr)
	}
	if len(x.Changed) > 0 {
		t.Errorf("changed settings %+v", x.Changed)
	}
	for _, r := range x.Rows {
		if r.A != r.B {
			t.Errorf("%s: %d and %d", r.What, r.A, r.B)
		}
	}
}

func TestTheRunThatComputesAllocatesAsTheModelledOne(t *testing.T) {
	w := file(t, "w.yaml", small)
	dir := t.TempDir()
	var memory [2][]event.Event
	for i, args := range [][]string{{"--modelled"}, nil} {
		out := filepath.Join(dir, fmt.Sprint(i, ".tideline"))
		if code, _, stderr := tideline(t, append([]string{"run", w, "-o", out}, args...)...); code != exitDone {
			t.Fatal(stderr)
		}
		all, _ := readAll(t, out)
		for _, e := range all {
			if e.Kind == event.Alloc || e.Kind == event.Free || e.Kind == event.RegionAdd {
				e.Time = 0
				memory[i] = append(memory[i], e)
			}
		}
	}
	if len(memory[0]) == 0 || !reflect.DeepEqual(memory[0], memory[1]) {
		t.Errorf("%d and %d events of memory differ", len(memory[0]), len(memory[1]))
	}
}

// endless runs until it is stopped.
const endless = "model: mlp\ntrain: {}\nbatch: 16\nsteps: 10000000\ndevices: [{preset: lab-256m, growth: true}]\n"

// runUntilRecorded starts an endless run and waits until something lies on disk.
func runUntilRecorded(t *testing.T) (*exec.Cmd, *bytes.Buffer, string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "x.tideline")
	cmd, stderr := child(t, "run", file(t, "w.yaml", endless), "-o", out, "--modelled")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if st, err := os.Stat(out); err == nil && st.Size() > 300_000 {
			return cmd, stderr, out
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing recorded: %s", stderr)
		}
	}
}

func TestAKilledRunLeavesAFileThatOpens(t *testing.T) {
	cmd, _, out := runUntilRecorded(t)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	st, err := os.Stat(out)
	if err != nil {
		t.Fatal(err)
	}
	events, stream := readAll(t, out)
	if stream.Complete() || len(events) < 1000 {
		t.Errorf("%d events, complete %v", len(events), stream.Complete())
	}
	// At most the block that was being written is missing.
	for _, d := range stream.Damage() {
		if !errors.Is(d.Err, timeline.ErrTruncated) || d.Offset+d.Bytes != st.Size() {
			t.Errorf("damage within the file: %v", d)
		}
	}
	if code, stdout, stderr := tideline(t, "diff", out, out); code != exitDone || !strings.Contains(stdout, "cut short") {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}

func TestAnInterruptedRunFinishesItsFile(t *testing.T) {
	cmd, stderr, out := runUntilRecorded(t)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	exit := new(exec.ExitError)
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed {
		t.Errorf("ended with %v: %s", err, stderr)
	}
	events, stream := readAll(t, out)
	last := events[len(events)-1]
	if !stream.Complete() || last.Kind != event.End || event.EndReason(last.Cause) != event.EndStopped {
		t.Errorf("complete %v, last event %+v", stream.Complete(), last)
	}
}

func TestADamagedFileIsWatchedWithItsGapMarked(t *testing.T) {
	line := recorded(t, strings.Replace(small, "steps: 5", "steps: 4000", 1))
	whole, err := os.ReadFile(line)
	if err != nil {
		t.Fatal(err)
	}
	all, _ := readAll(t, line)
	flipped := bytes.Clone(whole)
	flipped[20_000] ^= 1 // in the first of several blocks, the one with the strings
	for name, text := range map[string][]byte{"flipped": flipped, "cut": whole[:len(whole)/2]} {
		var stderr bytes.Buffer
		src, _, err := openFile(&console{err: &stderr}, file(t, name+".tideline", string(text)))
		if err != nil {
			t.Fatal(err)
		}
		dec := block.NewDecoder()
		var seen []event.Event
		for i := range src.State().Blocks {
			b, err := src.Frame(i, nil)
			if err != nil {
				t.Fatal(err)
			}
			if seen, err = dec.Decode(b, seen); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		lost := 0
		for _, e := range seen {
			if e.Kind == event.Lost {
				lost++
			}
		}
		if len(seen) < 1000 || len(seen) >= len(all) || lost == 0 || !strings.Contains(stderr.String(), "can be seen") {
			t.Errorf("%s: %d of %d events, %d marks, said %q", name, len(seen), len(all), lost, stderr.String())
		}
	}
}

func TestServeAnswersAndStops(t *testing.T) {
	line := recorded(t, small)
	cmd, stderr := child(t, "serve", line, "--addr", "127.0.0.1:0", "--data", t.TempDir(), "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said struct{ URL, Addr, Token string }
	if err := json.NewDecoder(out).Decode(&said); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	get := func(path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+said.Addr+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+said.Token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for path, want := range map[string]string{"/": "<html", "/api/v1/info": `"lab-256m"`, "/api/v1/files": "x.tideline"} {
		if status, body := get(path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %.200s", path, status, body)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, stderr)
	}
}

func TestAPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	code, _, stderr := tideline(t, "serve", "--data", t.TempDir(), "--addr", l.Addr().String())
	if code != exitFailed || !strings.Contains(stderr, "is in use") || !strings.Contains(stderr, "try --addr") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestEveryExampleIsValid(t *testing.T) {
	list, err := demos()
	if err != nil || len(list) == 0 {
		t.Fatal(err)
	}
	for _, d := range list {
		if code, _, stderr := tideline(t, "validate", file(t, d.Name+".yaml", d.YAML)); code != exitDone || d.Title == "" {
			t.Errorf("%s: %s", d.Name, stderr)
		}
	}
}

func TestTheGuideNamesEveryVerbAndField(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guide/command.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range api.Paths() {
		if !strings.Contains(string(text), "| `"+path+"` |") {
			t.Errorf("the guide lacks the field %s", path)
		}
	}
	for f := range reflect.TypeFor[grammar]().Fields() {
		if verb := "tideline " + strings.ToLower(f.Name); !strings.Contains(string(text), verb) {
			t.Errorf("the guide lacks %q", verb)
		}
	}
}

// TestPackedFilesAreServed: a gzipped timeline or log opens in the page like
// one that is not, and one that is packed twice says so.
func TestPackedFilesAreServed(t *testing.T) {
	whole, err := os.ReadFile(recorded(t, small))
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile("../../../shared/analysis/testdata/cases/05-tf-bfc-2023-cifar-fragmented/input.log")
	if err != nil {
		t.Fatal(err)
	}
	c := &console{nil, io.Discard, io.Discard}
	for name, b := range map[string][]byte{"timeline": whole, "log": log} {
		src, of, err := openFile(c, file(t, "x.gz", gzipped(b)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if src.File().Size() == 0 || (of.Open != nil) != (name == "log") {
			t.Errorf("%s: %d bytes, made of a file of kind %q", name, src.File().Size(), of.Kind)
		}
	}
	if _, _, err := openFile(c, file(t, "x.gz", gzipped([]byte(gzipped(whole))))); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("packed twice: %v", err)
	}
}
