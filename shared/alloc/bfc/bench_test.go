package bfc_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/trace"
	"tideline/shared/golden"
)

// loadTrace parses a recorded trace whole.
func loadTrace(tb testing.TB, name string) (trace.Options, []trace.Op) {
	tb.Helper()
	in, ok := read(tb, filepath.Join(golden.Dir(tb, "bfc"), name+".trace"))
	if !ok {
		tb.Fatalf("no trace %s", name)
	}
	r, err := trace.NewReader(bytes.NewReader(in))
	if err != nil {
		tb.Fatal(err)
	}
	var ops []trace.Op
	for {
		op, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r.Options, ops
		}
		if err != nil {
			tb.Fatal(err)
		}
		if op.Kind == trace.Alloc || op.Kind == trace.Free {
			ops = append(ops, op)
		}
	}
}

func benchmarkTrace(b *testing.B, name string) {
	b.Helper()
	opts, ops := loadTrace(b, name)
	top := uint32(0)
	for _, op := range ops {
		top = max(top, op.ID)
	}
	addrs := make([]uint64, top+1)
	b.ReportAllocs()
	b.ResetTimer()
	b.StopTimer()
	for range b.N {
		a, err := opts.Build(bfc.Current, nil)
		if err != nil {
			b.Fatal(err)
		}
		// The region and its tables stand before the clock starts.
		first, _ := a.Allocate(alloc.Request{Bytes: 256})
		if err := a.Free(first.Address); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		for i := range ops {
			op := &ops[i]
			if op.Kind == trace.Alloc {
				blk, _ := a.Allocate(alloc.Request{Bytes: op.Bytes, Alignment: op.Align})
				addrs[op.ID] = blk.Address
			} else if err := a.Free(addrs[op.ID]); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
	}
	n := float64(b.N) * float64(len(ops))
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/op")
	b.ReportMetric(float64(len(ops)), "ops")
}

func BenchmarkTraceDNN(b *testing.B)        { benchmarkTrace(b, "bench-dnn") }
func BenchmarkTraceEager(b *testing.B)      { benchmarkTrace(b, "bench-eager") }
func BenchmarkTraceNLP(b *testing.B)        { benchmarkTrace(b, "bench-nlp") }
func BenchmarkTraceLogUniform(b *testing.B) { benchmarkTrace(b, "bench-loguniform") }
