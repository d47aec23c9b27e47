package bfc_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
)

// pair is two allocators with the same options: one is replayed on, the other
// asked step by step.
type pair struct {
	t     *testing.T
	batch *bfc.Allocator
	steps *bfc.Allocator
	slots []bfc.Slot
	addrs []uint64
}

func newPair(t *testing.T, o bfc.Options, slots int) *pair {
	t.Helper()
	p := &pair{t: t, slots: make([]bfc.Slot, slots), addrs: make([]uint64, slots)}
	p.batch, p.steps = newAllocator(t, o), newAllocator(t, o)
	return p
}

func (p *pair) play(ops []bfc.Op) {
	p.t.Helper()
	failed := 0
	for _, o := range ops {
		if o.Bytes == bfc.Free {
			if err := p.steps.Free(p.addrs[o.Slot]); err != nil {
				p.t.Fatal(err)
			}
			p.addrs[o.Slot] = 0
			continue
		}
		b, ok := p.steps.Allocate(alloc.Request{Bytes: o.Bytes})
		p.addrs[o.Slot] = b.Address
		if !ok {
			failed++
		}
	}
	got, err := p.batch.Replay(ops, p.slots)
	if err != nil || got != failed {
		p.t.Fatalf("%d requests failed, error %v; want %d", got, err, failed)
	}
	for i, s := range p.slots {
		if s.Address != p.addrs[i] {
			p.t.Fatalf("slot %d holds %x, want %x", i, s.Address, p.addrs[i])
		}
	}
}

// same compares everything, handles included.
func (p *pair) same() {
	p.t.Helper()
	if err := p.batch.Check(); err != nil {
		p.t.Fatal(err)
	}
	if got, want := fmt.Sprint(p.batch.Map()), fmt.Sprint(p.steps.Map()); got != want {
		p.t.Fatalf("map %s, want %s", got, want)
	}
}

func TestReplayAnswersAsAllocateAndFreeDo(t *testing.T) {
	kinds := map[string]bfc.Options{
		"fixed":     {Limit: 1 << 24, NoRetry: true},
		"growth":    {Limit: 1 << 24, NoRetry: true, Growth: true, GarbageCollection: true},
		"fraction":  {Limit: 1 << 24, NoRetry: true, Fragmentation: 0.001},
		"partition": {Limit: 1 << 24, NoRetry: true, Partition: bfc.Partition{On: true}},
		"stamped":   {Limit: 1 << 24, NoRetry: true},
	}
	for name, o := range kinds {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(12) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				p := newPair(t, o, 1+rnd.IntN(900))
				if name == "stamped" {
					for _, a := range []*bfc.Allocator{p.batch, p.steps} {
						if err := a.SetCounter(new(alloc.Counter)); err != nil {
							t.Fatal(err)
						}
					}
				}
				if seed%2 == 0 {
					p.batch.ShortenWalks(4)
				}
				held := make([]bool, len(p.slots))
				most := 1 << (4 + rnd.IntN(14))
				for round := range 12 {
					ops := make([]bfc.Op, 0, 200)
					for range 200 {
						k := rnd.IntN(len(held))
						op := bfc.Op{Bytes: bfc.Free, Slot: uint32(k)}
						if held[k] = !held[k]; held[k] {
							op.Bytes = int64(rnd.IntN(most))
						}
						ops = append(ops, op)
					}
					p.play(ops)
					if name == "stamped" {
						p.batch.SetSafeFrontier(seed)
						p.steps.SetSafeFrontier(seed)
					}
					if round%4 == 3 {
						p.same()
					}
				}
			}
		})
	}
}

// TestReplayOfTheRecordedTraces: the recorded answers hold for the way that
// asks step by step, so both ways must agree.
func TestReplayOfTheRecordedTraces(t *testing.T) {
	if testing.Short() {
		t.Skip("a million operations each")
	}
	for _, name := range []string{"bench-dnn", "bench-eager", "bench-nlp", "bench-loguniform"} {
		opts, ops := loadTrace(t, name)
		p := newPair(t, bfc.Options{Limit: opts.Limit, Growth: opts.Growth, NoRetry: true}, int(topSlot(ops))+1)
		rs := replayOps(ops)
		for len(rs) > 0 {
			n := min(len(rs), 100_000)
			p.play(rs[:n])
			rs = rs[n:]
		}
		p.same()
		if p.batch.Stats() != p.steps.Stats() {
			t.Errorf("%s: stats %+v, want %+v", name, p.batch.Stats(), p.steps.Stats())
		}
	}
}

func TestReplayStopsAtASlotThatHoldsNoBlock(t *testing.T) {
	a := newAllocator(t, bfc.Options{Limit: 1 << 20, NoRetry: true})
	slots := make([]bfc.Slot, 3)
	if failed, err := a.Replay([]bfc.Op{{100, 0}, {1 << 30, 1}, {0, 2}, {bfc.Free, 1}, {bfc.Free, 2}}, slots); failed != 2 || err != nil {
		t.Fatalf("%d failed, error %v", failed, err)
	}
	twice := []bfc.Slot{slots[0], slots[0]}
	_, err := a.Replay([]bfc.Op{{bfc.Free, 0}, {bfc.Free, 0}, {bfc.Free, 1}, {100, 0}}, twice)
	if err == nil || !strings.Contains(err.Error(), "op 2") || !strings.Contains(err.Error(), "freed twice") {
		t.Fatalf("error %v", err)
	}
	if !reflect.DeepEqual(twice[0], bfc.Slot{}) {
		t.Errorf("went on after the error: %+v", twice[0])
	}
	if err := a.Check(); err != nil {
		t.Error(err)
	}
}
