package rmm_test

import (
	"math/rand/v2"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/rmm"
	"tideline/shared/alloc/stream"
)

func poolSubject(d check.Draw) check.Subject {
	var order stream.Order
	o := rmm.PoolOptions{Order: &order, Initial: int64(d.Draw(1<<12)) * rmm.Granule}
	if d.Draw(2) == 0 {
		o.Maximum = o.Initial + int64(d.Draw(1<<18))*rmm.Granule
	}
	so := alloc.SpaceOptions{Order: alloc.Order(d.Draw(3))}
	if d.Draw(2) == 0 {
		so.Card = alloc.NewCard(o.Initial + int64(d.Draw(64<<20)) + 1)
	}
	return check.Subject{
		Rules: check.Rules{Granule: rmm.Granule, Limit: o.Maximum}, Order: &order,
		Use: func(a alloc.Allocator, s stream.ID) { a.(*rmm.Pool).UseStream(s) },
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			sub, err := alloc.NewSpace(so)
			if err != nil {
				return nil, err
			}
			o.Observer = obs
			return rmm.NewPool(sub, o)
		},
	}
}

func arenaSubject(d check.Draw) check.Subject {
	var order stream.Order
	o := rmm.ArenaOptions{Order: &order, Size: rmm.SuperblockSize + int64(d.Draw(1<<18))*rmm.Granule}
	return check.Subject{
		Rules: check.Rules{Granule: rmm.Granule, Limit: o.Size}, Order: &order,
		Use: func(a alloc.Allocator, s stream.ID) { a.(*rmm.Arena).UseStream(s) },
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			sub, err := alloc.NewSpace(alloc.SpaceOptions{})
			if err != nil {
				return nil, err
			}
			o.Observer = obs
			return rmm.NewArena(sub, o)
		},
		Extra: func(w *check.Watch, _ check.Draw) { w.A.(*rmm.Arena).Defragment() },
	}
}

// binningSubject draws bins over a pool, under the limiting adaptor at times.
func binningSubject(d check.Draw) check.Subject {
	var order stream.Order
	least := 8 + d.Draw(6)
	o := rmm.BinningOptions{LeastBin: least, MostBin: least + d.Draw(3), Pool: rmm.PoolOptions{Order: &order}}
	first := int64(rmm.RunBlocks) << (o.MostBin + 1) // all bins' first runs
	if d.Draw(2) == 0 {
		o.Pool.Maximum = 4*first + int64(d.Draw(1<<18))*rmm.Granule
	}
	var so alloc.SpaceOptions
	if d.Draw(2) == 0 {
		so.Card = alloc.NewCard(4*first + int64(d.Draw(64<<20)))
	}
	limit := int64(0)
	if d.Draw(3) == 0 {
		limit = 1 + int64(d.Draw(16<<20))
	}
	return check.Subject{
		Rules: check.Rules{Granule: rmm.Granule, Limit: o.Pool.Maximum}, Order: &order,
		Use: func(a alloc.Allocator, s stream.ID) { a.(interface{ UseStream(stream.ID) }).UseStream(s) },
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			sub, err := alloc.NewSpace(so)
			if err != nil {
				return nil, err
			}
			o.Pool.Observer = obs
			b, err := rmm.NewBinning(sub, o)
			if err != nil || limit == 0 {
				return b, err
			}
			return rmm.NewLimiting(b, limit)
		},
	}
}

func TestRandomLivesOfBinsObeyTheRules(t *testing.T) {
	for seed := range uint64(200) {
		d := check.Seeded(seed, 400)
		if err := check.Life(d, binningSubject(d)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestRandomLivesOfPoolsObeyTheRules(t *testing.T) {
	for seed := range uint64(300) {
		d := check.Seeded(seed, 400)
		if err := check.Life(d, poolSubject(d)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestRandomLivesOfArenasObeyTheRules(t *testing.T) {
	for seed := range uint64(300) {
		d := check.Seeded(seed, 400)
		if err := check.Life(d, arenaSubject(d)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func fuzzLives(f *testing.F, subject func(check.Draw) check.Subject) {
	f.Helper()
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

func FuzzPoolLives(f *testing.F)    { fuzzLives(f, poolSubject) }
func FuzzArenaLives(f *testing.F)   { fuzzLives(f, arenaSubject) }
func FuzzBinningLives(f *testing.F) { fuzzLives(f, binningSubject) }

func BenchmarkPool(b *testing.B) {
	p, _ := rmm.NewPool(space(b, 0), rmm.PoolOptions{})
	check.Bench(b, p, 0, nil)
}

func BenchmarkPoolFourStreams(b *testing.B) {
	p, _ := rmm.NewPool(space(b, 0), rmm.PoolOptions{})
	check.Bench(b, p, 4, p.UseStream)
}

func BenchmarkArena(b *testing.B) {
	a, _ := rmm.NewArena(space(b, 0), rmm.ArenaOptions{Size: 64 * gib})
	check.Bench(b, a, 0, nil)
}

func BenchmarkBinning(b *testing.B) {
	a, _ := rmm.NewBinning(space(b, 0), rmm.BinningOptions{})
	check.Bench(b, a, 0, nil)
}
