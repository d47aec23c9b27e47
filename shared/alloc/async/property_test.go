package async_test

import (
	"math/rand/v2"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/async"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/torch"
)

// subject draws the settings of a pool.
func subject(d check.Draw) check.Subject {
	o := async.Options{
		Page:     int64(async.Granule) << d.Draw(13),
		NoEvents: d.Draw(3) == 0, NoOpportunistic: d.Draw(2) == 0, NoInternal: d.Draw(2) == 0,
	}
	switch d.Draw(3) {
	case 0:
		o.Threshold = async.KeepAll
	case 1:
		o.Threshold = int64(d.Draw(16 << 20))
	}
	if d.Draw(2) == 0 {
		o.Limit = o.Page + int64(d.Draw(64<<20))
	}
	capacity := int64(0)
	if d.Draw(2) == 0 {
		capacity = o.Page + int64(d.Draw(64<<20))
	}
	var order *stream.Order
	if d.Draw(4) > 0 {
		order = new(stream.Order)
	}
	o.Order = order
	return check.Subject{
		Rules: check.Rules{Granule: async.Granule, Limit: o.Limit, Page: o.Page}, CountsRequested: true, Remaps: true,
		Order: order, Opportunistic: !o.NoOpportunistic,
		Use: func(a alloc.Allocator, s stream.ID) { a.(*async.Pool).UseStream(s) },
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			o.Observer = obs
			return async.New(torch.NewDevice(alloc.NewCard(capacity), 0), o)
		},
		Extra: func(w *check.Watch, d check.Draw) {
			p := w.A.(*async.Pool)
			if d.Draw(2) == 0 {
				p.Synchronize()
			} else {
				p.SynchronizeStream(stream.ID(d.Draw(4)))
			}
		},
	}
}

func TestRandomLivesObeyTheRules(t *testing.T) {
	for seed := range uint64(400) {
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

func BenchmarkRandom(b *testing.B) {
	p, err := async.New(torch.NewDevice(nil, 0), async.Options{Threshold: async.KeepAll})
	if err != nil {
		b.Fatal(err)
	}
	check.Bench(b, p, 0, nil)
}

func BenchmarkFourStreams(b *testing.B) {
	var order stream.Order
	p, err := async.New(torch.NewDevice(nil, 0), async.Options{Threshold: async.KeepAll, Order: &order})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	check.Bench(b, p, 4, func(s stream.ID) {
		if n++; n%1000 == 0 {
			order.Finish(s)
		}
		p.UseStream(s)
	})
}
