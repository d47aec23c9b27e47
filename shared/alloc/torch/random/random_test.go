package random_test

import (
	"reflect"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/torch/random"
)

func TestATraceKeepsItsShape(t *testing.T) {
	s := random.Shape{Ops: 20000, Live: 300, Least: 512, Most: 1 << 20, Streams: 3, Seed: 4}
	trace, err := random.Make(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := random.Make(s)
	if err != nil || !reflect.DeepEqual(trace, again) {
		t.Error("equal shapes, different traces", err)
	}
	live, most := 0, 0
	filled := make([]bool, trace.Slots)
	for i, op := range trace.Ops {
		if (op.Bytes == 0) != filled[op.Slot] {
			t.Fatalf("operation %d: slot %d is in use: %v", i, op.Slot, filled[op.Slot])
		}
		filled[op.Slot] = !filled[op.Slot]
		if op.Bytes == 0 {
			live--
			continue
		}
		live++
		most = max(most, live)
		if op.Bytes < s.Least || op.Bytes > s.Most || int(op.Stream) >= s.Streams {
			t.Fatalf("operation %d: %+v", i, op)
		}
		if i > 1000 && live < 280 {
			t.Fatalf("operation %d: %d alive", i, live)
		}
	}
	if most > s.Live || len(trace.Ops) != s.Ops {
		t.Errorf("%d alive, %d operations", most, len(trace.Ops))
	}
}

func TestShapesThatCannotBe(t *testing.T) {
	for _, s := range []random.Shape{{Ops: -1}, {Live: -1}, {Least: 10, Most: 5}, {Streams: 300}, {Least: -1}} {
		if _, err := random.Make(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

func TestAPlayerGoesRound(t *testing.T) {
	trace, err := random.Make(random.Shape{Ops: 5000, Live: 100})
	if err != nil {
		t.Fatal(err)
	}
	a, err := torch.New(torch.NewDevice(alloc.NewCard(0), 0), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := random.NewPlayer(trace, a)
	for range 7 {
		if err := p.Play(3001); err != nil {
			t.Fatal(err)
		}
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
	}
	if n := a.Statistics().Allocation.All.Current; n < 50 || n > 100 {
		t.Errorf("%d alive", n)
	}
	full, err := torch.New(torch.NewDevice(alloc.NewCard(1<<20), 0), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := random.NewPlayer(trace, full).Play(10); err == nil {
		t.Error("a card of 1 MiB served")
	}
}
