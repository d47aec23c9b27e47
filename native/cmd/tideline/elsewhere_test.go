package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/golden"
)

// TestAFileForAnotherVerb: who gives a file to the wrong verb is told what it is
// and which verb is for it, in one line.
func TestAFileForAnotherVerb(t *testing.T) {
	w := file(t, "w.yaml", fitting)
	broken := file(t, "broken.yaml", "model: lenet5\nbatchsize: 64\n")
	table := file(t, "buffers.csv", "id,lower,upper,size\na,0,3,512\n")
	trace := file(t, "trace.gz", gzipped([]byte("bfc-trace 1\n")))
	oom := file(t, "oom.log", "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)\n"+
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.78 GiB of which 1.09 GiB is free.\n")
	run := recorded(t, fitting)
	allocations := filepath.Join(t.TempDir(), "allocations.csv")
	if code, _, stderr := tideline(t, "convert", run, allocations); code != exitDone {
		t.Fatal(stderr)
	}
	for _, c := range []struct{ args, want string }{
		{"replay " + w, "is a workload, not what became of one: tideline run -o run.tideline " + w + ", then tideline replay run.tideline"},
		{"replay --matrix " + w, "then tideline replay run.tideline"},
		{"explain " + w, "then tideline explain run.tideline"},
		{"serve " + w, "then tideline serve run.tideline"},
		{"diff " + run + " " + w, "then tideline diff run.tideline OTHER.tideline"},
		{"convert " + w + " -", "then tideline convert run.tideline OUT"},
		{"plan " + w, "tideline convert --csv buffers run.tideline buffers.csv"},
		{"explain " + broken, "then tideline explain run.tideline"},
		{"plan " + run, "no table of buffers: tideline convert --csv buffers"},
		{"run " + run, "is a timeline, not a workload: tideline serve "},
		{"fit " + run, "is a timeline, not a workload"},
		{"validate " + run, "is a timeline, not a workload"},
		{"run " + oom, "is a report about memory, not a workload: tideline explain "},
		{"run " + table, "is a table of buffers: tideline plan " + table},
		{"replay " + table, "is a table of buffers"},
		{"explain " + trace, "is an allocation trace: tideline replay --matrix"},
		{"explain " + allocations, "is a table of allocations for spreadsheets, which convert wrote: give tideline explain the file that it was made of"},
		{"serve " + allocations, "is a table of allocations"},
		{"plan " + allocations, "is a table of allocations, not of buffers: tideline convert --csv buffers"},
		{"run " + trace, "is an allocation trace"},
		{"replay " + oom, "--allocator NAME or --matrix"},
	} {
		code, stdout, stderr := tideline(t, strings.Fields(c.args)...)
		if code == 0 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("tideline %s: exit %d\n%s%swant %q", c.args, code, stdout, stderr, c.want)
		}
	}
	// Mistakes in a file that is for the verb are told as they are.
	for _, args := range [][]string{{"run", broken}, {"validate", broken}} {
		if _, _, stderr := tideline(t, args...); !strings.Contains(stderr, broken+":2: batchsize") {
			t.Errorf("%v: %s", args, stderr)
		}
	}
}

// TestWhateverExplainReadsIsServed: every case streams like a run.
func TestWhateverExplainReadsIsServed(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(golden.Cases(t), "*", "case.json"))
	if err != nil || len(folders) < 30 {
		t.Fatalf("%d cases, %v", len(folders), err)
	}
	c := &console{nil, io.Discard, io.Discard}
	for _, f := range folders {
		files, _ := golden.Case(t, filepath.Base(filepath.Dir(f)))
		for name := range files {
			if testing.Short() && strings.Contains(f, "25-torch") {
				continue
			}
			src, of, err := openFile(c, filepath.Join(filepath.Dir(f), name))
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			if s := src.State(); s.Events < 2 || !s.Finished || len(s.Blocks) == 0 || of.Kind == "" {
				t.Errorf("%s: %d events in %d blocks", f, s.Events, len(s.Blocks))
			}
			_ = src.Close() // it was only read
		}
	}
}
