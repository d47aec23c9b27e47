package ort_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/ort"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/trace"
	"tideline/shared/golden"
)

// subject draws the settings of an arena.
func subject(d check.Draw) check.Subject {
	var order stream.Order
	o := ort.Options{
		Strategy: ort.Strategy(d.Draw(2)), Profile: ort.Profile(d.Draw(2)), CrossStream: d.Draw(2) == 1, Dump: d.Draw(4) == 0,
		InitialChunk: int64(d.Draw(4)) * 1000 * 1000, MaxDead: int64(d.Draw(3)) << 18, MaxExtend: int64(d.Draw(3)) << 22, GrowthChunk: int64(d.Draw(3)) << 20,
		Order: &order,
	}
	if d.Draw(2) == 0 {
		o.MaxMemory = 1 + int64(d.Draw(64<<20))
	}
	space := alloc.SpaceOptions{Order: alloc.Order(d.Draw(3)), Gap: int64(d.Draw(2)) << 12}
	if d.Draw(2) == 0 {
		space.Card = alloc.NewCard(1 + int64(d.Draw(64<<20)))
	}
	s := check.Subject{
		Rules: check.Rules{Granule: ort.Granule, SizeGranule: 1, Limit: o.MaxMemory}, Order: &order, SameStream: true,
		Use: func(a alloc.Allocator, s stream.ID) { a.(*ort.Arena).UseStream(s) },
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			sub, err := alloc.NewSpace(space)
			if err != nil {
				return nil, err
			}
			o.Observer = obs
			return ort.New(sub, o)
		},
		Extra: func(w *check.Watch, d check.Draw) {
			a := w.A.(*ort.Arena)
			switch d.Draw(3) {
			case 0:
				a.Shrink()
			case 1:
				end := stream.ID(d.Draw(4))
				for _, b := range w.Live {
					if b.Stream == end {
						return // a stream ends when its work is done
					}
				}
				order.Synchronize()
				a.EndStream(end)
			default:
				if b, ok := a.Reserve(int64(d.Draw(1 << 20))); ok {
					w.Took(b)
				}
			}
		},
	}
	if o.Profile == ort.Core {
		s.Rules.Limit = 0 // its reservations know none
	}
	return s
}

func TestRandomLivesObeyTheRules(t *testing.T) {
	for seed := range uint64(300) {
		d := check.Seeded(seed, 400)
		if err := check.Life(d, subject(d)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzLives(f *testing.F) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := make([]byte, 600)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			t.Skip("long inputs only repeat short ones")
		}
		d := check.Fuzzed(b)
		if err := check.Life(d, subject(d)); err != nil {
			t.Fatal(err)
		}
	})
}

// With one stream, a first region of 2 MiB and no cap the arena is TensorFlow's
// allocator with growth: the same recorded traces give the same addresses.
func TestTheSameAddressesAsTensorFlowsAllocator(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(golden.Dir(t, "bfc"), "*.trace.gz"))
	if err != nil || len(names) == 0 {
		t.Fatal("no traces", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			n, err := compareWithBFC(name)
			if err != nil {
				t.Error(err)
			}
			if testing.Verbose() {
				t.Logf("%d requests", n)
			}
		})
	}
}

// most operations of a trace are compared; the long ones go on for a million.
const most = 20000

func compareWithBFC(name string) (n int, err error) {
	f, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	z, err := gzip.NewReader(bytes.NewReader(f))
	if err != nil {
		return 0, err
	}
	r, err := trace.NewReader(z)
	if err != nil {
		return 0, err
	}
	space := func() alloc.SubAllocator {
		s, err := alloc.NewSpace(alloc.SpaceOptions{})
		if err != nil {
			panic(err)
		}
		return s
	}
	limit := max(r.Options.Limit, 1<<20)
	a, err := ort.New(space(), ort.Options{MaxMemory: limit, InitialChunk: bfc.FirstRegion, MaxExtend: ort.NoCap})
	if err != nil {
		return 0, err
	}
	b, err := bfc.New(space(), bfc.Options{Limit: limit, Growth: true, NoRetry: true})
	if err != nil {
		return 0, err
	}
	addrs := map[uint32]uint64{}
	for n < most {
		op, err := r.Next()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		switch op.Kind {
		case trace.Alloc, trace.AllocNoRetry:
			if op.Bytes <= 0 {
				continue
			}
			n++
			x, okX := a.Allocate(alloc.Request{Bytes: op.Bytes})
			y, okY := b.Allocate(alloc.Request{Bytes: op.Bytes, NoRetry: true})
			if okX != okY || x.Address != y.Address || x.Size != y.Size {
				return n, fmt.Errorf("request %d of %d bytes: the arena gives %+v %v, BFC %+v %v", n, op.Bytes, x, okX, y, okY)
			}
			addrs[op.ID] = x.Address
		case trace.Free:
			if err := errors.Join(a.Free(addrs[op.ID]), b.Free(addrs[op.ID])); err != nil {
				return n, err
			}
			delete(addrs, op.ID)
		default: // only allocations and frees mean the same to both
		}
	}
	return n, nil
}

func BenchmarkRandom(b *testing.B) {
	for _, c := range []struct {
		name    string
		streams int
	}{{"one stream", 0}, {"four streams", 4}} {
		b.Run(c.name, func(b *testing.B) {
			sub, err := alloc.NewSpace(alloc.SpaceOptions{})
			if err != nil {
				b.Fatal(err)
			}
			var order stream.Order
			a, err := ort.New(sub, ort.Options{Order: &order})
			if err != nil {
				b.Fatal(err)
			}
			check.Bench(b, a, c.streams, func(s stream.ID) { a.UseStream(s) })
		})
	}
}
