package ingest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"tideline/protocol/event"
	"tideline/shared/golden"
	"tideline/shared/ingest/memorydump"
)

// debugMap is a map as a build with memory debugging writes it: three chunks
// in one region, of which the second in memory was taken first.
func debugMap() []byte {
	number := func(b []byte, field int, n uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, protowire.Number(field), protowire.VarintType), n)
	}
	part := func(b []byte, field int, in []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, protowire.Number(field), protowire.BytesType), in)
	}
	b := part(nil, 1, []byte("GPU_0_bfc"))
	for i := range memorydump.NumBins {
		in := number(nil, 1, uint64(i))
		if i == 0 {
			in = number(number(number(number(nil, 2, 512), 3, 768), 4, 2), 5, 3)
		}
		b = part(b, 2, in)
	}
	for i, op := range []string{"late", "early", ""} {
		c := number(number(number(nil, 1, 0x1000+256*uint64(i)), 2, 256), 3, 200)
		if op != "" {
			c = part(number(c, 4, ^uint64(0)), 5, []byte(op))
			c = number(number(c, 7, uint64(9-i)), 8, 1)
		}
		b = part(b, 3, c)
	}
	for i, n := range []uint64{256, 768, 512} {
		b = part(b, 4, number(number(nil, 1, uint64(7+i)), 2, n))
	}
	return part(b, 5, number(number(number(number(nil, 1, 3), 2, 512), 3, 768), 4, 256))
}

// TestMapsOfDebugBuildsAreTold: the history comes first, then the blocks in the
// order in which they were taken, with their ops, then the failure.
func TestMapsOfDebugBuildsAreTold(t *testing.T) {
	in, err := Open("map", bytes.NewReader(debugMap()), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if in.Kind != "tf-bfc-oom" || in.Form != MemoryMap || in.Cut != "" || in.Data.Dump == nil {
		t.Errorf("%+v", in)
	}
	_, rec := told(t, in)
	var ops []string
	var points []int64
	for i := range rec.events {
		switch e := &rec.events[i]; {
		case e.Kind == event.Alloc:
			ops = append(ops, rec.strs.At(e.Op))
			if e.Requested != 200 {
				t.Errorf("a block of %d was asked for", e.Requested)
			}
		case e.Kind == event.Sample && rec.strs.At(e.Op) == lane:
			points = append(points, e.Size, e.Time)
		}
	}
	if !slices.Equal(ops, []string{"early", "late"}) || !slices.Equal(points, []int64{256, 0, 768, 1000, 512, 2000}) {
		t.Errorf("ops %q, points %v", ops, points)
	}
	if rec.count(event.OutOfMemory) != 1 || rec.judge.Err() != nil {
		t.Errorf("%d failures, %v", rec.count(event.OutOfMemory), rec.judge.Err())
	}
	if r := in.Readings[0]; r.Verdict != "undetermined_no_request" || len(r.Rows) == 0 || r.Rows[len(r.Rows)-1].Label != "held by late" {
		t.Errorf("%s, %v", r.Verdict, r.Rows)
	}
}

// TestMapsAreTakenForNothingElse: every map of the golden data opens as one,
// packed too, cut files as far as they go; no other file is one.
func TestMapsAreTakenForNothingElse(t *testing.T) {
	list, err := filepath.Glob(filepath.Join(golden.Dir(t, "bfc"), "*.map-*.pb"))
	if err != nil || len(list) < 11 {
		t.Fatalf("%d maps, %v", len(list), err)
	}
	for _, f := range list {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for what, file := range map[string][]byte{"whole": b, "packed": packFile(b), "cut": b[:len(b)-3]} {
			in, err := Open(f, bytes.NewReader(file), Limits{})
			if err != nil || in.Form != MemoryMap || in.Data.Map == nil || (in.Cut != "") != (what == "cut") {
				t.Errorf("%s, %s: %+v, %v", filepath.Base(f), what, in, err)
				continue
			}
			if _, rec := told(t, in); rec.count(event.OutOfMemory) != 1 || rec.judge.Err() != nil {
				t.Errorf("%s, %s: %v", filepath.Base(f), what, rec.judge.Err())
			}
		}
	}
	for name, b := range everyInput(t) {
		if in, err := Open(name, bytes.NewReader(b), Limits{}); err == nil && (in.Form == MemoryMap) != strings.HasSuffix(name, ".map") {
			t.Errorf("%s opens as %v", name, in.Form)
		}
	}
}

// TestAMapWithItsLog: the log behind the map tells what the map does not.
func TestAMapWithItsLog(t *testing.T) {
	dir := golden.Dir(t, "bfc")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	with := func(log []byte) *Input {
		file := append(append(read("oom-fragmented.map-1.pb"), '\n'), log...)
		in, err := Open("both", bytes.NewReader(file), Limits{})
		if err != nil || in.Cut != "" {
			t.Fatalf("%+v, %v", in, err)
		}
		return in
	}
	r := with(read("oom-fragmented.log.txt")).Readings[0]
	if n, _ := r.Facts.Get("requested_rounded_bytes"); r.Verdict != "fragmented" || n.Int != 4194304 {
		t.Errorf("%s, request %v", r.Verdict, n)
	}
	if r := with(read("basic-20.map-1.pb")).Readings[0]; r.Verdict != "undetermined_no_request" || !strings.Contains(strings.Join(r.Open, " "), "Another memory map") {
		t.Errorf("two maps: %s, %q", r.Verdict, r.Open)
	}
	for name, log := range map[string][]byte{"another run's": read("backpedal-fixed-fail.log.txt"), "no dump": []byte("step 1, loss 2\n")} {
		r := with(log).Readings[0]
		if r.Verdict != "undetermined_no_request" || !strings.Contains(strings.Join(r.Open, " "), "that of the map") {
			t.Errorf("%s: %s, %q", name, r.Verdict, r.Open)
		}
	}
}
