package remedy

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"tideline/shared/alloc/torch"
	"tideline/shared/ingest"
	"tideline/shared/ingest/snapshot/synthetic"
)

// file is a program's record as PyTorch would have saved it.
func file(tb testing.TB, p *program) []byte {
	tb.Helper()
	var b bytes.Buffer
	r := p.recorded()
	if err := synthetic.Record(&b, r.Segments, r.Trace, p.s.String()); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestASnapshotFileIsFilled(t *testing.T) {
	in, err := ingest.Open("oom.pickle", bytes.NewReader(file(t, broken(t, 31))), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	Fill(in, Options{})
	r := in.Readings[0]
	o := Outcome{Trials: r.Trials}
	if x := find(&o, expandable); x == nil || !x.Serves || r.Least != 75*mib || !strings.Contains(r.Replayed, "fails as recorded") {
		t.Errorf("%+v", r)
	}
	if json := string(r.AppendJSON(nil)); !strings.Contains(json, `"least_reduction":78643200`) || !strings.Contains(json, `"serves":true`) {
		t.Error(json)
	}
	cut := file(t, broken(t, 31))
	if in, err = ingest.Open("cut.pickle", bytes.NewReader(cut[:len(cut)*2/3]), ingest.Limits{}); err == nil {
		if Fill(in, Options{}); len(in.Readings[0].Trials) > 0 {
			t.Errorf("of a file that is cut: %+v", in.Readings[0].Trials)
		}
	}
}

// long is a program of many requests that fails in the end.
func long(tb testing.TB, requests int) *Recorded {
	tb.Helper()
	p := start(tb, "", 14<<30, 4*requests)
	r := rand.New(rand.NewPCG(7, 7))
	live := make([]uint64, 0, 2000)
	for range requests {
		if n := len(live); n == cap(live) || n > 0 && r.IntN(2) == 0 {
			k := r.IntN(n)
			if err := p.a.Free(live[k]); err != nil {
				tb.Fatal(err)
			}
			live[k] = live[n-1]
			live = live[:n-1]
			continue
		}
		bytes := int64(1) << (9 + r.IntN(16))
		b, ok := p.a.AllocateOn(torch.Request{Bytes: bytes + r.Int64N(bytes)})
		if !ok {
			tb.Fatal(p.a.Failure())
		}
		live = append(live, b.Address)
	}
	p.fails(14 << 30)
	return p.recorded()
}

func BenchmarkFailure(b *testing.B) {
	r := long(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		Torch(r, Options{})
	}
}
