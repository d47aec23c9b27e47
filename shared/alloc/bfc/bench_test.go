package bfc_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/bfc/reference"
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

func topSlot(ops []trace.Op) uint32 {
	top := uint32(0)
	for _, op := range ops {
		top = max(top, op.ID)
	}
	return top
}

// replayOps is the trace as it is replayed.
func replayOps(ops []trace.Op) []bfc.Op {
	out := make([]bfc.Op, len(ops))
	for i, op := range ops {
		out[i] = bfc.Op{Bytes: op.Bytes, Slot: op.ID}
		if op.Kind == trace.Free {
			out[i].Bytes = bfc.Free
		}
	}
	return out
}

// quiet sums, over stretches of a trace, the shortest time that each took in
// any round: what the trace takes while the machine does nothing else.
type quiet []time.Duration

const stretch = 2000

func (q *quiet) keep(k int, d time.Duration) {
	if k == len(*q) {
		*q = append(*q, d)
	}
	(*q)[k] = min((*q)[k], d)
}

func (q quiet) perOp(ops int) float64 {
	sum := time.Duration(0)
	for _, d := range q {
		sum += d
	}
	return float64(sum.Nanoseconds()) / float64(ops)
}

// player is a way to play a trace: by address, as a program does; by handle;
// and by address on the plain reference.
type player struct {
	name string
	play func(b *testing.B, opts trace.Options, ops []bfc.Op, slots int, q *quiet)
}

var players = []player{{"calls", playCalls}, {"replay", playReplay}, {"reference", playReference}}

func stretches(ops []bfc.Op, q *quiet, play func(part []bfc.Op)) {
	for k := 0; k*stretch < len(ops); k++ {
		part := ops[k*stretch : min(len(ops), (k+1)*stretch)]
		began := time.Now()
		play(part)
		q.keep(k, time.Since(began))
	}
}

// ready builds the allocator. The region and its tables stand before the clock
// starts.
func ready(b *testing.B, opts trace.Options) *bfc.Allocator {
	b.Helper()
	a, err := opts.Build(bfc.Current, nil)
	if err != nil {
		b.Fatal(err)
	}
	first, _ := a.Allocate(alloc.Request{Bytes: 256})
	if err := a.Free(first.Address); err != nil {
		b.Fatal(err)
	}
	return a
}

func playCalls(b *testing.B, opts trace.Options, ops []bfc.Op, slots int, q *quiet) {
	b.Helper()
	a, addrs := ready(b, opts), make([]uint64, slots)
	b.StartTimer()
	stretches(ops, q, func(part []bfc.Op) {
		for i := range part {
			op := &part[i]
			if op.Bytes >= 0 {
				blk, _ := a.Allocate(alloc.Request{Bytes: op.Bytes})
				addrs[op.Slot] = blk.Address
			} else if err := a.Free(addrs[op.Slot]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.StopTimer()
}

func playReplay(b *testing.B, opts trace.Options, ops []bfc.Op, slots int, q *quiet) {
	b.Helper()
	a, held := ready(b, opts), make([]bfc.Slot, slots)
	b.StartTimer()
	stretches(ops, q, func(part []bfc.Op) {
		if _, err := a.Replay(part, held); err != nil {
			b.Fatal(err)
		}
	})
	b.StopTimer()
}

func playReference(b *testing.B, opts trace.Options, ops []bfc.Op, slots int, q *quiet) {
	b.Helper()
	space, err := alloc.NewSpace(alloc.SpaceOptions{Base: opts.Base, Joins: opts.Joins})
	if err != nil {
		b.Fatal(err)
	}
	a, addrs := reference.New(space, reference.Options{Limit: opts.Limit, Growth: opts.Growth}), make([]uint64, slots)
	b.StartTimer()
	stretches(ops, q, func(part []bfc.Op) {
		for i := range part {
			op := &part[i]
			if op.Bytes >= 0 {
				addrs[op.Slot], _ = a.Allocate(op.Bytes, 64)
			} else if addr := addrs[op.Slot]; addr != 0 && !a.Free(addr) {
				b.Fatalf("%x is not known", addr)
			}
		}
	})
	b.StopTimer()
}

// BenchmarkTrace times the recorded traces: ns/op over all rounds, as usual,
// and quiet-ns/op, which a busy machine hardly changes given some rounds
// (-benchtime 15x).
func BenchmarkTrace(b *testing.B) {
	for _, name := range []string{"dnn", "eager", "nlp", "loguniform"} {
		opts, recorded := loadTrace(b, "bench-"+name)
		ops, slots := replayOps(recorded), int(topSlot(recorded))+1
		for _, p := range players {
			b.Run(name+"/"+p.name, func(b *testing.B) {
				b.ReportAllocs()
				b.StopTimer()
				var q quiet
				for range b.N {
					p.play(b, opts, ops, slots, &q)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(ops)), "ns/op")
				b.ReportMetric(q.perOp(len(ops)), "quiet-ns/op")
			})
		}
	}
}
