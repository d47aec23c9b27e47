package remedy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/tune"
	"tideline/shared/ingest"
)

// example is a file of the examples with the allocator that held most.
func example(t *testing.T, name string) (*ingest.Input, *contest.Trace) {
	t.Helper()
	f, err := os.Open(filepath.Join("../../examples/files", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := ingest.Open(name, f, ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	if err := in.Emit(&strs, rec); err != nil {
		t.Fatal(err)
	}
	var best *contest.Trace
	for _, x := range rec.Traces() {
		if best == nil || x.Floor > best.Floor {
			best = x
		}
	}
	return in, best
}

func through(t *testing.T, kind string, settings ...string) contest.Entry {
	t.Helper()
	k, err := kinds.ByName(kind)
	if err != nil {
		t.Fatal(err)
	}
	e := contest.Entry{Kind: k}
	for _, text := range settings {
		s, err := kinds.ParseSetting(text)
		if err != nil {
			t.Fatal(err)
		}
		e.Settings = append(e.Settings, s)
	}
	return e
}

// The requests of a snapshot set out from the state that it records, so that the
// recorded settings reserve what was recorded, and others what the trials say.
func TestTheRequestsOfASnapshotReserveWhatWasRecorded(t *testing.T) {
	for _, name := range []string{"llm-step.pickle.gz", "small-model.pickle"} {
		in, x := example(t, name)
		q, err := RequestsOf(in, x, false, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := q.For("torch").Run(through(t, "torch"), contest.Options{})
		if r.PeakReserved != x.Original.PeakReserved || !strings.Contains(q.Start, "in the order of addresses") {
			t.Errorf("%s: %d reserved, %d were recorded; %s", name, r.PeakReserved, x.Original.PeakReserved, q.Start)
		}
		Fill(in, Options{})
		other := q.For("torch").Run(through(t, "torch", "expandable_segments=true"), contest.Options{})
		for _, p := range in.Readings[0].Peaks {
			if p.Setting == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" && p.Peak != other.PeakReserved {
				t.Errorf("%s: expandable segments reserve %d, the trial says %d", name, other.PeakReserved, p.Peak)
			}
		}
		if q.Own.Floor > x.Original.PeakInUse || q.Own.Allocs != x.Allocs || q.Own.Begins == 0 {
			t.Errorf("%s: floor %d, %d allocations of %d, %d calls before", name, q.Own.Floor, q.Own.Allocs, x.Allocs, q.Own.Begins)
		}
		fresh, err := RequestsOf(in, x, true, Options{})
		if err != nil || fresh.Own != x || !strings.HasPrefix(fresh.Start, "Fresh: ") {
			t.Errorf("%s: %+v, %v", name, fresh, err)
		}
	}
}

// A whole dump's last call is what failed, and it fails; the smallest limit is
// the one that the reading tells.
func TestTheRequestsOfADumpEndInItsFailure(t *testing.T) {
	in, x := example(t, "alexnet-2017.log")
	q, err := RequestsOf(in, x, false, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var last contest.Call
	q.Own.Each(func(c *contest.Call) { last = *c })
	r := q.Own.Run(through(t, "bfc"), contest.Options{})
	if !last.Fails || last.Bytes != 77760000 || r.OutOfMemory != 1 || r.FirstFailed != q.Own.Len() || r.PeakInUse != x.Original.PeakInUse || q.Own.Allocs != x.Allocs {
		t.Errorf("%+v\n%+v", last, r)
	}
	least, _ := tune.SmallestLimit(q.Own, through(t, "bfc"), tune.Options{})
	Fill(in, Options{})
	if text := in.Readings[0].Replayed; least.Limit != 363234816 || !strings.Contains(text, "A limit of 363234816 bytes (74.16 MiB more) would have served it") {
		t.Errorf("%+v, but %s", least, text)
	}
	if tune.Serves(q.Own, through(t, "bfc"), least.Below) {
		t.Errorf("%d serves, too", least.Below)
	}
	fresh, err := RequestsOf(in, x, true, Options{})
	if err != nil || fresh.Own.Begins != int(x.Allocs) || fresh.Own.Len() != int(x.Allocs)+1 || !strings.Contains(fresh.Start, "nothing else ever was") {
		t.Errorf("%+v, %v", fresh, err)
	}
}

func TestACutDumpIsNotReplayedUnawares(t *testing.T) {
	in, x := example(t, "cifar-2023.log")
	q, err := RequestsOf(in, x, false, Options{})
	cut, ok := errors.AsType[*CutError](err)
	if !ok || cut.Listed >= cut.InUse || q != nil || !strings.Contains(err.Error(), "530.33 MiB of the 561.92 MiB in use") {
		t.Errorf("%+v, %v", q, err)
	}
	q, err = RequestsOf(in, x, true, Options{})
	if err != nil || !strings.HasPrefix(q.Start, "The dump is cut: 530.33 MiB of 561.92 MiB in use") {
		t.Errorf("%+v, %v", q, err)
	}
}

// What has its history from the beginning is as it is.
func TestAHistoryNeedsNoStart(t *testing.T) {
	in, x := example(t, "rmm.csv")
	if q, err := RequestsOf(in, x, false, Options{}); err != nil || q.Own != x || q.Start != "" {
		t.Errorf("%+v, %v", q, err)
	}
}

// A dump whose summary alone is whole is replayed by it, whatever chunks are
// listed beside; one of which neither is whole is cut.
func TestADumpIsReplayedByItsSummary(t *testing.T) {
	in, x := example(t, "host-pool.log")
	q, err := RequestsOf(in, x, false, Options{})
	if err != nil || q.Own.Allocs != 16 || q.Own.Floor < 63<<30 || !strings.Contains(q.Start, "as the summary has them") {
		t.Errorf("%+v, %v", q, err)
	}
	for _, name := range []string{"cut.log", "growth-refused.log", "limit-55-mb.log"} {
		in, x := example(t, name)
		if q, err := RequestsOf(in, x, false, Options{}); q != nil || !strings.Contains(err.Error(), "is cut: it lists") {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
}

// A message of one failed request holds nothing to replay.
func TestAMessageAloneIsNotReplayed(t *testing.T) {
	for _, name := range []string{"torch-absurd.txt", "others-hold.txt", "jax-dot.log"} {
		in, x := example(t, name)
		if q, err := RequestsOf(in, x, false, Options{}); q != nil || !errors.Is(err, ErrNoRequests) {
			t.Errorf("%s: %+v, %v", name, q, err)
		}
	}
}
