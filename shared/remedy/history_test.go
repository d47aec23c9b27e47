package remedy

import (
	"strconv"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/ingest"
)

// recordedHistory is what an allocator of a kind does with requests until one
// fails; a negative number frees the block of that number, from 1.
func recordedHistory(t *testing.T, kind string, limit int64, settings []kinds.Setting, requests ...int64) *contest.Trace {
	t.Helper()
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	emit := func(e event.Event) { rec.Emit(&e) }
	emit(event.Event{Kind: event.AllocatorFacts, Size: limit, Text: strs.ID(event.Fields{{Key: "kind", Value: kind}}.Encode())})
	k, err := kinds.ByName(kind)
	if err != nil {
		t.Fatal(err)
	}
	var e contest.Entry
	e.Kind, e.Settings = k, settings
	var text strings.Builder
	text.WriteString("bfc-trace 1\no limit 1099511627776\n")
	for i, n := range requests {
		if n < 0 {
			text.WriteString("f " + strconv.FormatInt(-n, 10) + "\n")
		} else {
			text.WriteString("a " + strconv.Itoa(i+1) + " " + strconv.FormatInt(n, 10) + "\n")
		}
	}
	x, err := contest.FromTrace(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	x.Run(e, contest.Options{Limit: limit, Sink: event.SinkFunc(func(e *event.Event) {
		if e.Kind != event.RegionRefused {
			rec.Emit(e)
		}
	})})
	return rec.Traces()[0]
}

func TestAHistoryIsReplayedUnderItsOwnSettings(t *testing.T) {
	growing := []kinds.Setting{{Name: "growth", Value: "true"}}
	x := recordedHistory(t, "bfc", 64*mib, growing, mib, 2*mib, 4*mib, 8*mib, 16*mib, 17*mib)
	o := History(x, Options{})
	// 33 MiB are left in one piece, and go whole to a request of more than half.
	if y := find(&o, "TF_FORCE_GPU_ALLOW_GROWTH=false"); y == nil || !y.Serves || y.Spare != 0 || y.Assumes != "" {
		t.Errorf("%+v", o)
	}
	if o.Least != mib || o.Short != 0 || !strings.Contains(o.Replayed, "under TF_FORCE_GPU_ALLOW_GROWTH=true the request fails as recorded") {
		t.Errorf("%+v", o)
	}
}

func TestAHistoryWithoutACapacityTellsWhatItTakes(t *testing.T) {
	const log = "Thread,Time,Action,Pointer,Size,Stream\n" +
		"1,10:00:00:000001,allocate,0x100,1048576,0\n" +
		"1,10:00:00:000002,allocate,0x200000,3145728,0\n" +
		"1,10:00:00:000003,allocate failure,(nil),8388608,0\n" +
		"1,10:00:00:000004,free,0x100,1048576,0\n"
	in, err := ingest.Open("rmm.csv", strings.NewReader(log), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	Fill(in, Options{})
	r := in.Readings[0]
	if len(r.Trials) > 0 || !strings.Contains(r.Replayed, "What the device had is not told") || len(r.Peaks) < 5 {
		t.Errorf("%+v", r)
	}
	for _, p := range r.Peaks {
		if p.Serves || p.Peak < 12*mib {
			t.Errorf("%+v", p)
		}
	}
}
