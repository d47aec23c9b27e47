package ingest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/golden"
	"tideline/shared/ingest/pickle"
	"tideline/shared/store"
)

// binaryCases are those of the collection that are no text.
func binaryCases(t *testing.T) (ids []string) {
	t.Helper()
	for _, c := range cases(t) {
		if textKinds[c.Kind] == 0 {
			ids = append(ids, c.ID)
		}
	}
	if len(ids) < 7 {
		t.Errorf("only %d cases are no texts: %v", len(ids), ids)
	}
	return ids
}

// TestBinaryCases: the kind is told from the content, every expected number is
// there, and the timeline takes every event.
func TestBinaryCases(t *testing.T) {
	for _, id := range binaryCases(t) {
		t.Run(id, func(t *testing.T) {
			inputs, description := golden.Case(t, id)
			for name, b := range inputs {
				d, err := ReadData(name, bytes.NewReader(b), Limits{})
				if err != nil {
					t.Fatal(err)
				}
				golden.CheckCase(t, description, d.Reading.AppendJSON(nil))
				strs := &event.Strings{}
				tl := store.New(strs)
				d.Emit(strs, event.SinkFunc(func(e *event.Event) { tl.Append([]event.Event{*e}) }))
				if tl.Skipped() != 0 || !tl.End().Ended || len(tl.Pools())+len(tl.Tracks()) == 0 {
					t.Errorf("%d events skipped, %d pools, %d tracks", tl.Skipped(), len(tl.Pools()), len(tl.Tracks()))
				}
			}
		})
	}
}

// TestBinaryCasesPackedAgain: who sends a file may have packed it.
func TestBinaryCasesPackedAgain(t *testing.T) {
	for _, id := range binaryCases(t) {
		inputs, _ := golden.Case(t, id)
		for name, b := range inputs {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			_, _ = w.Write(b)
			w.Close()
			d, err := ReadData(name, &z, Limits{})
			if bytes.HasPrefix(b, []byte("\x1f\x8b")) {
				if u, ok := errors.AsType[*UnsupportedError](err); !ok || u.Kind != GZip {
					t.Errorf("%s packed twice: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if gz, _ := d.Reading.Facts.Get("gzip"); !gz.Bool {
				t.Errorf("%s: gzip is %+v", name, gz)
			}
		}
	}
}

func TestOtherFilesSayWhatTheyAre(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"\x80\x02cos\nsystem\nU\x02ls\x85R.", "REDUCE on os.system refused"},
		{"\x80\x02}U\x01aK\x01s.", `its keys are ["a"]`},
		{"just a log line", "text"},
		{"\x89PNG....", "picture"},
		{`{"level":"info"}`, "JSON"},
		{"\x0a\xff\xff\xff\xff\x0f" + strings.Repeat("\x00", 34), "neither a profile"},
		{"", "empty file"},
		{`{"ph": 1}`, "expected traceEvents"},
	} {
		_, err := ReadData("x", strings.NewReader(c.file), Limits{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.file, err, c.want)
		}
	}
}

func TestLimitsOfData(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte("\x80\x02"))
	_, _ = w.Write(bytes.Repeat([]byte("N0"), 1<<21))
	w.Close()
	_, err := ReadData("bomb", bytes.NewReader(z.Bytes()), Limits{Unzip: 1 << 20})
	if err == nil || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("bomb: %v", err)
	}
	_, err = ReadData("deep", strings.NewReader("\x80\x02"+strings.Repeat("]", 1<<20)), Limits{Pickle: pickle.Limits{Memory: 1 << 20}})
	if err == nil || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("deep: %v", err)
	}
}

const memoryProfile = `{"memoryProfilePerAllocator":{"GPU_0_bfc":{"memoryProfileSnapshots":[
 {"timeOffsetPs":"1000","aggregationStats":{"stackReservedBytes":"0","heapAllocatedBytes":"512","freeMemoryBytes":"488","fragmentation":0.25,"peakBytesInUse":"900"},
  "activityMetadata":{"memoryActivity":"ALLOCATION","requestedBytes":"500","allocationBytes":"512","address":"4096","tfOpName":"a/MatMul","stepId":"3","regionType":"output","dataType":"float","tensorShape":"[125]"}},
 {"timeOffsetPs":"2000","aggregationStats":{"heapAllocatedBytes":"0","freeMemoryBytes":"1000"},"activityMetadata":{"memoryActivity":"DEALLOCATION","allocationBytes":"512","address":"4096"}}],
 "profileSummary":{"peakBytesUsageLifetime":"900","peakStats":{"heapAllocatedBytes":"512","freeMemoryBytes":"488","fragmentation":0.25},"peakStatsTimePs":"1000","memoryCapacity":"1000"},
 "activeAllocations":[{"snapshotIndex":"0","specialIndex":"-1","numOccurrences":"1"}],"specialAllocations":[],"sampledTimelineSnapshots":[]}},
 "numHosts":1,"memoryIds":["GPU_0_bfc"]}`

func TestMemoryProfile(t *testing.T) {
	d, err := ReadData("memory_profile.json", strings.NewReader(memoryProfile), Limits{})
	if err != nil || d.Memory == nil {
		t.Fatal(err)
	}
	a := d.Memory.Allocators[0]
	if a.LifetimePeak != 900 || a.PeakInUse != 512 || a.Capacity != 1000 || a.PeakTime != 1000 || a.Fragment != 0.25 || a.Snapshots != 2 || a.Active != 1 {
		t.Errorf("%+v", a)
	}
	strs := &event.Strings{}
	tl := store.New(strs)
	d.Emit(strs, event.SinkFunc(func(e *event.Event) { tl.Append([]event.Event{*e}) }))
	if tl.Skipped() != 0 || len(tl.SeriesList()) != 1 {
		t.Errorf("%d skipped, %d series", tl.Skipped(), len(tl.SeriesList()))
	}
	for n := range len(memoryProfile) {
		_, _ = ReadData("cut", strings.NewReader(memoryProfile[:n]), Limits{})
	}
}

func FuzzData(f *testing.F) {
	f.Add([]byte(memoryProfile))
	f.Add([]byte("\x80\x02]}(U\x06actionU\x05allocU\x04addrK\x01U\x04sizeK\x02ua."))
	f.Add([]byte(`[{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pinned -> Device)","ts":1,"dur":2,"pid":0,"tid":7,"args":{"bytes":5}}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ReadData("fuzz", bytes.NewReader(b), Limits{Unzip: 1 << 20, Pickle: pickle.Limits{Memory: 8 << 20}})
		if err != nil {
			return
		}
		last := int64(0)
		d.Emit(&event.Strings{}, event.SinkFunc(func(e *event.Event) {
			if e.Time < last {
				t.Fatalf("%s: time goes backwards", e.Kind)
			}
			last = e.Time
		}))
	})
}
