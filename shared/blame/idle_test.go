package blame

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/ingest"
	"tideline/shared/ingest/snapshot/synthetic"
)

// saved runs a program of many requests on two streams, until one fails, and
// gives what PyTorch would save of it.
func saved(t *testing.T, seed uint64, last int64) (*ingest.Input, *torch.OutOfMemory) {
	t.Helper()
	h := torch.NewHistory(10_000)
	a, err := torch.New(torch.NewDevice(alloc.NewCard(600*mib), 0x7f0000000000), torch.Options{Tracer: h})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	var live []uint64
	for range 300 {
		if n := len(live); n > 20 && r.IntN(2) == 0 {
			k := r.IntN(n)
			if err := a.Free(live[k]); err != nil {
				t.Fatal(err)
			}
			live[k] = live[n-1]
			live = live[:n-1]
			continue
		}
		b, ok := a.AllocateOn(torch.Request{Bytes: 1 + r.Int64N(int64(1)<<(9+r.IntN(16))), Stream: torch.Stream(r.IntN(2))})
		if ok {
			live = append(live, b.Address)
		}
	}
	if _, ok := a.AllocateOn(torch.Request{Bytes: last}); ok {
		t.Fatal("the last request fits: this program tests nothing")
	}
	var file bytes.Buffer
	if err := synthetic.Record(&file, a.Snapshot(), h.Entries(), ""); err != nil {
		t.Fatal(err)
	}
	in, err := ingest.Open("oom.pickle", &file, ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	Fill(in, Options{})
	return in, a.Failure()
}

// TestStrandedIsWhatTheAllocatorCouldNotUse: of a snapshot taken at a failure,
// what is idle and out of the request's reach is what the allocator itself knew.
func TestStrandedIsWhatTheAllocatorCouldNotUse(t *testing.T) {
	elsewhere := false
	for seed := range uint64(8) {
		in, f := saved(t, seed, 590*mib)
		var r struct {
			Stranded struct {
				Requested int64 `json:"requested_bytes"`
				Within    int64 `json:"within_reach_bytes"`
				Stream    int64 `json:"other_stream_bytes"`
				Pool      int64 `json:"other_pool_bytes"`
			} `json:"stranded"`
			ByPool []struct {
				Pool string `json:"pool"`
				Idle int64  `json:"idle_bytes"`
			} `json:"idle_by_pool"`
			Inactive int64 `json:"inactive_bytes"`
			Pinned   []struct {
				Idle int64 `json:"idle_bytes"`
				Live int64 `json:"live_bytes"`
			} `json:"pinned"`
		}
		if err := json.Unmarshal(in.Readings[0].AppendJSON(nil), &r); err != nil {
			t.Fatal(err)
		}
		x := r.Stranded
		if x.Within != f.IdleSameStream || x.Stream != f.IdleOtherStreams || x.Pool != f.IdleOtherPool {
			t.Errorf("seed %d: %+v, the allocator: %d, %d, %d", seed, x, f.IdleSameStream, f.IdleOtherStreams, f.IdleOtherPool)
		}
		elsewhere = elsewhere || x.Stream > 0 && x.Pool > 0
		var sum int64
		for _, p := range r.ByPool {
			sum += p.Idle
		}
		if sum != r.Inactive || sum != x.Within+x.Stream+x.Pool {
			t.Errorf("seed %d: %d bytes idle by pool, %d inactive", seed, sum, r.Inactive)
		}
		for i := 1; i < len(r.Pinned); i++ {
			if a, b := r.Pinned[i-1], r.Pinned[i]; a.Idle*b.Live < b.Idle*a.Live {
				t.Errorf("seed %d: %+v before %+v", seed, a, b)
			}
		}
		if len(r.Pinned) == 0 {
			t.Errorf("seed %d: nothing is pinned", seed)
		}
	}
	if !elsewhere {
		t.Error("no program left memory in another stream and pool")
	}
}

// TestWithoutAFailureNothingIsStranded: who asks for nothing can reach it all.
func TestWithoutAFailureNothingIsStranded(t *testing.T) {
	in, err := ingest.Open("none.pickle", bytes.NewReader(quiet(t)), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	Fill(in, Options{})
	if v, ok := in.Readings[0].Facts.Get("stranded"); !ok || string(v.AppendJSON(nil)) != "null" {
		t.Errorf("stranded: %s", v.AppendJSON(nil))
	}
}

// quiet is the snapshot of a program that frees half of what it has.
func quiet(t *testing.T) []byte {
	t.Helper()
	a, err := torch.New(torch.NewDevice(alloc.NewCard(0), 0), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		b, ok := a.AllocateOn(torch.Request{Bytes: 3 * mib})
		if !ok || i%2 == 0 && a.Free(b.Address) != nil {
			t.Fatal("no memory")
		}
	}
	var file bytes.Buffer
	if err := synthetic.Record(&file, a.Snapshot(), nil, ""); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}
