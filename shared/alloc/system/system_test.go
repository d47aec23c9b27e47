package system_test

import (
	"math/rand/v2"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/system"
)

func TestFirstFit(t *testing.T) {
	a := system.New(system.Options{})
	get := func(n, align int64) alloc.Block {
		b, ok := a.Allocate(alloc.Request{Bytes: n, Alignment: align})
		if !ok {
			t.Fatalf("%d bytes do not fit", n)
		}
		b.Address -= system.DefaultBase
		return b
	}
	steps := []struct {
		bytes, align int64
		addr         uint64
		size         int64
	}{
		{1, 0, 0, 64}, {64, 0, 64, 64}, {65, 0, 128, 128}, {100, 4096, 4096, 128}, {3000, 0, 256, 3008}, {1 << 20, 0, 4224, 1 << 20},
	}
	for i, s := range steps {
		if b := get(s.bytes, s.align); b != (alloc.Block{Address: s.addr, Size: s.size, Requested: s.bytes, ID: int64(i + 1)}) {
			t.Errorf("step %d gives %+v", i, b)
		}
	}
	if err := a.Free(system.DefaultBase + 64); err != nil {
		t.Fatal(err)
	}
	if err := a.Free(system.DefaultBase + 64); err == nil {
		t.Error("a second free passed")
	}
	if b := get(50, 0); b.Address != 64 {
		t.Errorf("the hole is not reused: %x", b.Address)
	}
	if _, ok := a.Allocate(alloc.Request{}); ok {
		t.Error("0 bytes were allocated")
	}
	if _, ok := a.Allocate(alloc.Request{Bytes: 1<<63 - 1}); ok {
		t.Error("2^63 bytes were allocated")
	}
	if s := a.Stats(); s.Limit != 0 || s.NumAllocs != 7 || s.InUse != 64*2+128+128+3008+1<<20 || s.Pool%system.Step != 0 {
		t.Errorf("stats %+v", s)
	}
}

func subject(d check.Draw) check.Subject {
	o := system.Options{}
	if d.Draw(2) == 0 {
		o.Limit = 1 + int64(d.Draw(32<<20))
	}
	if d.Draw(2) == 0 {
		o.Card = alloc.NewCard(1 + int64(d.Draw(32<<20)))
	}
	return check.Subject{
		Rules: check.Rules{Granule: system.Alignment, Limit: o.Limit}, Aligned: true,
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			o.Observer = obs
			return system.New(o), nil
		},
	}
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

func TestLimitIsUsedToTheLastBlock(t *testing.T) {
	a := system.New(system.Options{Limit: 3<<20 + 100})
	if b, ok := a.Allocate(alloc.Request{Bytes: 3 << 20}); !ok || b.Size != 3<<20 {
		t.Fatalf("%+v %v", b, ok)
	}
	if _, ok := a.Allocate(alloc.Request{Bytes: 64}); !ok {
		t.Error("the last 64 bytes of the limit are not used")
	}
	if _, ok := a.Allocate(alloc.Request{Bytes: 1}); ok {
		t.Error("a block past the limit")
	}
	if s := a.Stats(); s.Pool != 3<<20+64 || s.Limit != 3<<20+100 {
		t.Errorf("%+v", s)
	}
}

func TestTwoHeapsShareACard(t *testing.T) {
	card := alloc.NewCard(4 << 20)
	a, b := system.New(system.Options{Card: card}), system.New(system.Options{Card: card})
	if _, ok := a.Allocate(alloc.Request{Bytes: 3 << 20}); !ok {
		t.Fatal("3 of 4 MiB do not fit")
	}
	if _, ok := b.Allocate(alloc.Request{Bytes: 2 << 20}); ok {
		t.Error("the card gave more than it has")
	}
	a.Close()
	if _, ok := b.Allocate(alloc.Request{Bytes: 2 << 20}); !ok {
		t.Error("a closed heap keeps its memory")
	}
}

func BenchmarkRandom(b *testing.B) { check.Bench(b, system.New(system.Options{}), 0, nil) }
