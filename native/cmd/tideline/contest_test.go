package main

import (
	"encoding/json"
	"strings"
	"testing"

	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
)

// case13 is what a real ONNX Runtime log shows: two requests under a limit.
const case13 = "bfc-trace 1\no name Cuda\no limit 1073741824\na 0 160000\na 1 19888128\n"

const rmmRows = "Thread,Time,Action,Pointer,Size,Stream\n" +
	"1,10:00:00:000001,allocate,0x7f0000000000,1048576,0x0\n1,10:00:00:000002,allocate,0x7f0000200000,2097152,0x0\n" +
	"1,10:00:00:000003,free,0x7f0000000000,1048576,0x0\n"

func TestReplayThroughOtherAllocators(t *testing.T) {
	line := recorded(t, small)
	trace := file(t, "x.trace", case13)
	const files = "../../../examples/files/"
	tests := []struct {
		name string
		args []string
		code int
		out  string // in the standard output
		err  string // in the standard error
	}{
		{"one", []string{line, "--allocator", "torch"}, 0, "as recorded", ""},
		{"an option", []string{line, "--allocator", "torch", "--set", "expandable_segments=true"}, 0, "torch expandable_segments=true", ""},
		{"an alias", []string{line, "--allocator", "cuda_malloc_async"}, 0, "* modelled: the driver's layout is not public", ""},
		{"all", []string{line, "--matrix"}, 0, "rmm-arena", ""},
		{"of the host's allocator", []string{line, "--matrix", "--of", "gpu_host_bfc"}, 0, "gpu_host_bfc: ", ""},
		{"a limit that is too low", []string{line, "--allocator", "direct", "--limit", "64KiB"}, 0, "the program would have ended there", ""},
		{"a trace", []string{trace, "--allocator", "ort"}, 0, "33.00 MiB", ""},
		{"a packed trace", []string{file(t, "x.trace.gz", gzipped([]byte(case13))), "--allocator", "ort", "--set", "arena_extend_strategy=same_as_requested"}, 0, "19.12 MiB", ""},
		{"what still fits", []string{trace, "--allocator", "ort"}, 0, "0 more requests of 18.97 MiB would be served", ""},
		{"the smallest limit", []string{trace, "--allocator", "direct", "--smallest-limit"}, 0, "20048128 bytes serve all requests and 20048127 do not; every larger limit serves them", ""},
		{"the smallest limits", []string{line, "--matrix", "--smallest-limit"}, 0, "for every larger limit", ""},
		{"the best setting", []string{trace, "--allocator", "ort", "--best"}, 0, "OrtArenaCfg ", ""},
		{"the best is the default", []string{trace, "--allocator", "system", "--best"}, 0, "The default is best: every combination of the values was tried.", ""},
		{"the best of a timeline", []string{line, "--allocator", "rmm-arena", "--best", "--limit", "1GiB"}, 0, "under 1.00 GiB: peak reserved", ""},
		{"nothing to set", []string{files + "small-model.pickle", "--allocator", "torch", "--best"}, 0, "Nothing is worth setting: limit and peak stay as by default.", ""},
		{"the best of who made them", []string{files + "small-model.pickle", "--best"}, 0, "PYTORCH_", ""},
		{"the best of nobody", []string{files + "jax-memory.prof", "--best"}, 2, "", "name it with --allocator"},
		{"best of no file", []string{"--best"}, 2, "", "give a timeline or an allocation trace"},
		{"best of all", []string{line, "--matrix", "--best"}, 2, "", "name it with --allocator"},
		{"best with settings", []string{line, "--allocator", "torch", "--best", "--set", "expandable_segments=true"}, 2, "", "leave --set away"},
		{"both searches", []string{line, "--allocator", "torch", "--best", "--smallest-limit"}, 2, "", "leave --smallest-limit away"},
		{"smallest limit of nothing", []string{line, "--smallest-limit"}, 2, "", "--allocator NAME or --matrix"},
		{"an RMM log", []string{file(t, "rmm.csv", rmmRows), "--matrix"}, 0, "Not made: rmm-arena", ""},
		{"an RMM log's limit", []string{file(t, "rmm2.csv", rmmRows), "--allocator", "direct", "--smallest-limit"}, 0, "a limit of 3.00 MiB on", ""},
		{"a pickle of nothing", []string{file(t, "x.pickle", "\x80\x04N."), "--matrix"}, 1, "", "x.pickle"},
		{"a cut dump", []string{files + "cifar-2023.log", "--matrix"}, 1, "", "is cut: it lists 530.33 MiB of the 561.92 MiB in use"},
		{"a cut dump as it is", []string{files + "cifar-2023.log", "--matrix", "--start", "fresh"}, 0, "The dump is cut: 530.33 MiB of 561.92 MiB in use are listed", ""},
		{"a whole dump", []string{files + "alexnet-2017.log", "--allocator", "bfc"}, 0, "0 more requests of 74.16 MiB", ""},
		{"a dump's smallest limit", []string{files + "alexnet-2017.log", "--allocator", "bfc", "--smallest-limit"}, 0, "363234816 bytes serve all requests and 363234560 do not", ""},
		{"a snapshot's state", []string{files + "llm-step.pickle.gz", "--allocator", "torch"}, 0, "torch          51.23 GiB      58.52 GiB", ""},
		{"a snapshot's requests alone", []string{files + "llm-step.pickle.gz", "--allocator", "torch", "--start", "fresh"}, 0, "Start: Fresh: what was live", ""},
		{"the best of an older release", []string{files + "small-model.pickle", "--allocator", "torch", "--best", "--torch-version", "2.8"}, 0, "large_segment_size_mb: left out, not in 2.8", ""},
		{"a release for nothing", []string{trace, "--allocator", "torch", "--torch-version", "2.8"}, 2, "", "--torch-version"},
		{"no release", []string{trace, "--allocator", "torch", "--best", "--torch-version", "old"}, 2, "", "--torch-version"},
		{"options", []string{"--allocator", "ort", "--options"}, 0, "max_dead_bytes_per_chunk", ""},
		{"options of nothing", []string{"--allocator", "jemalloc", "--options"}, 2, "", "Known: bfc, torch"},
		{"no such allocator", []string{line, "--allocator", "jemalloc"}, 2, "", `unknown allocator "jemalloc"`},
		{"no such option", []string{line, "--allocator", "ort", "--set", "growth=true"}, 2, "", `no option "growth"`},
		{"an option's nonsense", []string{line, "--allocator", "bfc", "--set", "growth=perhaps"}, 2, "", "expected true or false"},
		{"no option at all", []string{line, "--allocator", "bfc", "--set", "growth"}, 2, "", "OPTION=VALUE"},
		{"nonsense as a limit", []string{line, "--matrix", "--limit", "much"}, 2, "", "expected a size"},
		{"no file", []string{"--matrix"}, 2, "", "give a timeline"},
		{"both", []string{line, "--matrix", "--allocator", "bfc"}, 2, "", "--matrix has its own"},
		{"with an output", []string{line, "--matrix", "-o", "x.tideline"}, 2, "", "neither --answers nor -o"},
		{"of nobody", []string{line, "--matrix", "--of", "GPU_7_bfc"}, 2, "", "It has: "},
		{"of without a contest", []string{line, "--of", "GPU_0_bfc"}, 2, "", "--matrix"},
		{"a bad trace", []string{file(t, "bad.trace", "bfc-trace 1\no limit 5\nz\n"), "--matrix"}, 1, "", "line 3"},
		{"not made", []string{trace, "--allocator", "rmm-pool", "--set", "initial_pool_size=2GiB"}, 1, "", "above the maximum"},
		{"a missing file", []string{"missing.tideline", "--matrix"}, 1, "", "missing.tideline"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := tideline(t, append([]string{"replay"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stdout, tt.out) || !strings.Contains(stderr, tt.err) {
				t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s\nwant %q and %q", code, tt.code, stdout, stderr, tt.out, tt.err)
			}
		})
	}
}

func TestTheMatrixAsJSON(t *testing.T) {
	code, stdout, stderr := tideline(t, "replay", recorded(t, small), "--matrix", "--json")
	if code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	var x contestReport
	if err := json.Unmarshal([]byte(stdout), &x); err != nil {
		t.Fatal(err)
	}
	if len(x.Rows) != len(contest.Matrix())+1 || x.Floor == 0 || x.Allocations == 0 {
		t.Fatalf("%+v", x)
	}
	was, bfc := x.Rows[0], x.Rows[1]
	if was.Allocator != "recorded" || was.External != nil || bfc.Allocator != "bfc" || bfc.External == nil {
		t.Errorf("%+v\n%+v", was, bfc)
	}
	kindsSeen := map[string]bool{}
	for _, r := range x.Rows[1:] {
		kindsSeen[r.Allocator] = true
		if r.Error == "" && (r.AtPeak == nil || r.AtPeak.Reserved < r.AtPeak.InUse || r.OutOfMemory > 0 != (r.AtFailure != nil)) {
			t.Errorf("%+v", r)
		}
		if r.Error == "" && (r.PeakReserved < x.Floor || r.Cost != r.PeakReserved-x.Floor) {
			t.Errorf("%s holds %d for %d: %+v", r.Allocator, r.PeakReserved, x.Floor, r)
		}
		if (r.Label != "") != (r.Allocator == "async") {
			t.Errorf("%s is labelled %q", r.Allocator, r.Label)
		}
	}
	for _, k := range kinds.Names() {
		if !kindsSeen[k] {
			t.Errorf("no row of %s", k)
		}
	}
}

func TestTheBestSettingAsJSON(t *testing.T) {
	trace := file(t, "x.trace", case13)
	code, stdout, stderr := tideline(t, "replay", trace, "--allocator", "ort", "--best", "--json")
	if code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	var x bestReport
	if err := json.Unmarshal([]byte(stdout), &x); err != nil {
		t.Fatal(err)
	}
	if x.Allocator != "ort" || !x.Worth || len(x.Best.Settings) == 0 || len(x.Written) != len(x.Best.Settings) || x.Saved != x.Default.Limit-x.Best.Limit || x.Saved <= 0 ||
		!x.Best.Verified || !x.Default.Verified || x.Best.Fails >= x.Best.Limit || x.Best.Limit < x.Floor || len(x.Values) == 0 || len(x.LeftOut) == 0 {
		t.Errorf("%+v", x)
	}
	code, stdout, stderr = tideline(t, "replay", trace, "--matrix", "--smallest-limit", "--json")
	if code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	var l limitsReport
	if err := json.Unmarshal([]byte(stdout), &l); err != nil {
		t.Fatal(err)
	}
	if len(l.Rows) != len(contest.Matrix()) {
		t.Fatalf("%d rows", len(l.Rows))
	}
	for _, r := range l.Rows {
		if r.Limit < l.Floor || r.Above != r.Limit-l.Floor || !r.Verified || r.Text == "" || r.Replays == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// An option that only the newest release has is not recommended alone.
func TestTheBestSettingOfAnOlderRelease(t *testing.T) {
	code, stdout, stderr := tideline(t, "replay", "../../../examples/files/llm-step.pickle.gz", "--allocator", "torch", "--best", "--start", "fresh", "--json")
	if code != exitDone {
		t.Fatalf("%d %s", code, stderr)
	}
	var x bestReport
	if err := json.Unmarshal([]byte(stdout), &x); err != nil {
		t.Fatal(err)
	}
	if len(x.Since) != 1 || x.Since[0] != (sinceRow{"large_segment_size_mb", "2.11"}) || x.Older == nil {
		t.Fatalf("%+v", x)
	}
	if o := x.Older; o.Release != olderTorch || len(o.Written) != 1 || o.Written[0] != "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" || !o.Verified || o.Limit > x.Default.Limit {
		t.Errorf("%+v", o)
	}
}
