package yardstick

import (
	"fmt"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	bfcref "tideline/shared/alloc/bfc/reference"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/torch/random"
	torchref "tideline/shared/alloc/torch/reference"
)

// plainOps is how far PyTorch's plain implementation plays its trace: it keeps
// its free blocks in lists.
const plainOps = 20_000

// limit is that of every allocator here, in bytes: more than any trace needs.
const limit = 256 << 30

// Allocators are the allocators on traces of 4,000 blocks of random sizes, and
// TensorFlow's on those of modelled runs.
func Allocators() ([]Task, error) {
	var tasks []Task
	for _, x := range workloads() {
		t, err := Record(x.name, x.w)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, BFC(t, nil, nil)...)
	}
	t, err := Random(random.Shape{Ops: 200_000})
	if err != nil {
		return nil, err
	}
	tasks = append(tasks, BFC(t, nil, nil)...)
	r, err := random.Make(random.Shape{})
	if err != nil {
		return nil, err
	}
	tasks = append(tasks, Torch(r)...)
	for _, k := range kinds.All() {
		if k.Name != "bfc" && k.Name != "torch" {
			tasks = append(tasks, Kind(k, t))
		}
	}
	return tasks, nil
}

// BFC is TensorFlow's allocator on a trace, beside the plain one: by address,
// as programs and executors call it, and by handle in one batch, as recorded
// requests are played again. A nil build and plain make their own of a space
// without end.
func BFC(t *Trace, build func() (*bfc.Allocator, error), plain func() (*bfcref.Allocator, error)) []Task {
	if build == nil {
		build = func() (*bfc.Allocator, error) {
			space, err := alloc.NewSpace(alloc.SpaceOptions{Base: 1 << 40})
			if err != nil {
				return nil, err
			}
			return bfc.New(space, bfc.Options{Name: "bench", Limit: limit})
		}
	}
	if plain == nil {
		plain = func() (*bfcref.Allocator, error) {
			space, err := alloc.NewSpace(alloc.SpaceOptions{Base: 1 << 40})
			if err != nil {
				return nil, err
			}
			return bfcref.New(space, bfcref.Options{Limit: limit}), nil
		}
	}
	tasks := []Task{bfcPlain(t, plain), bfcTask(t, build)}
	if t.natural() {
		tasks = append(tasks, bfcReplay(t, build))
	}
	return tasks
}

// ready is an allocator whose region and tables stand before the clock starts.
func ready(build func() (*bfc.Allocator, error)) (*bfc.Allocator, error) {
	a, err := build()
	if err != nil {
		return nil, err
	}
	first, _ := a.Allocate(alloc.Request{Bytes: 256})
	return a, a.Free(first.Address)
}

func bfcTask(t *Trace, build func() (*bfc.Allocator, error)) Task {
	var a *bfc.Allocator
	addrs := make([]uint64, t.Slots)
	return Task{
		Name: "BFC, " + t.Name, Per: "operation", N: len(t.Ops), To: "plain BFC, " + t.Name,
		Prepare: func() (err error) {
			clear(addrs)
			a, err = ready(build)
			return err
		},
		Run:  func() error { return t.Play(a, addrs) },
		Laps: func(lap func()) error { return t.laps(a, addrs, lap) },
	}
}

// bfcReplay needs a natural trace.
func bfcReplay(t *Trace, build func() (*bfc.Allocator, error)) Task {
	var a *bfc.Allocator
	ops, slots := make([]bfc.Op, len(t.Ops)), make([]bfc.Slot, t.Slots)
	for i := range t.Ops {
		ops[i] = bfc.Op{Bytes: t.Ops[i].Bytes, Slot: uint32(t.Ops[i].Slot)}
		if t.Ops[i].Bytes == 0 {
			ops[i].Bytes = bfc.Free
		}
	}
	replay := func(from, to int) error {
		_, err := a.Replay(ops[from:to], slots)
		return err
	}
	return Task{
		Name: "BFC by handle, " + t.Name, Per: "operation", N: len(t.Ops), To: "plain BFC, " + t.Name,
		Prepare: func() (err error) {
			clear(slots)
			a, err = ready(build)
			return err
		},
		Run:  func() error { return replay(0, len(ops)) },
		Laps: func(lap func()) error { return stretches(len(ops), lap, replay) },
	}
}

func bfcPlain(t *Trace, build func() (*bfcref.Allocator, error)) Task {
	var a *bfcref.Allocator
	addrs := make([]uint64, t.Slots)
	play := func(from, to int) error {
		ops := t.Ops[from:to]
		for i := range ops {
			op := &ops[i]
			if op.Bytes > 0 {
				addrs[op.Slot], _ = a.Allocate(op.Bytes, max(op.Align, alloc.DefaultAlignment))
			} else if addrs[op.Slot] != 0 && !a.Free(addrs[op.Slot]) {
				return fmt.Errorf("%s, operation %d: address %#x is not in use", t.Name, from+i, addrs[op.Slot])
			}
		}
		return nil
	}
	return Task{
		Name: "plain BFC, " + t.Name, Per: "operation", N: len(t.Ops), Plain: true,
		Prepare: func() (err error) {
			clear(addrs)
			a, err = build()
			return err
		},
		Run:  func() error { return play(0, len(t.Ops)) },
		Laps: func(lap func()) error { return stretches(len(t.Ops), lap, play) },
	}
}

// TorchName is the name of the task of PyTorch's allocator.
const TorchName = "PyTorch's allocator, random"

// Torch is PyTorch's allocator on a trace, beside the plain one. A run goes on
// where the one before ended, as in a program that has warmed up.
func Torch(r random.Trace) []Task {
	plain, player := (*torchref.Allocator)(nil), (*random.Player)(nil)
	addrs := make([]uint64, r.Slots)
	first := min(plainOps, len(r.Ops))
	fast := Task{
		Name: TorchName, Per: "operation", N: len(r.Ops), To: "plain PyTorch's, random",
		Prepare: func() error {
			if player != nil {
				return nil
			}
			a, err := torch.New(torch.NewDevice(alloc.NewCard(limit), 0), torch.Options{})
			if err != nil {
				return err
			}
			player = random.NewPlayer(r, a)
			return player.Play(len(r.Ops))
		},
		Run: func() error { return player.Play(len(r.Ops)) },
		Laps: func(lap func()) error {
			return stretches(len(r.Ops), lap, func(from, to int) error { return player.Play(to - from) })
		},
	}
	slow := Task{
		Name: "plain PyTorch's, random", Per: "operation", N: first, Plain: true,
		Prepare: func() error {
			clear(addrs)
			plain = torchref.New(torch.NewDevice(alloc.NewCard(limit), 0), torchref.Options{})
			return nil
		},
		Run: func() error {
			for i := range r.Ops[:first] {
				op := &r.Ops[i]
				if op.Bytes == 0 {
					if !plain.Free(addrs[op.Slot]) {
						return fmt.Errorf("random, operation %d: address %#x is not in use", i, addrs[op.Slot])
					}
					continue
				}
				b := plain.Allocate(op.Bytes, uint64(op.Stream), torchref.ID{})
				if b == nil {
					return fmt.Errorf("random, operation %d: no memory for %d bytes", i, op.Bytes)
				}
				addrs[op.Slot] = b.Addr
			}
			return nil
		},
		Note: func() string { return fmt.Sprintf("the first %d operations", first) },
	}
	return []Task{slow, fast}
}

// Kind is any allocator on a trace.
func Kind(k *kinds.Kind, t *Trace) Task {
	var a alloc.Allocator
	addrs := make([]uint64, t.Slots)
	return Task{
		Name: k.Name + ", " + t.Name, Per: "operation", N: len(t.Ops), To: "BFC, " + t.Name,
		Prepare: func() error {
			clear(addrs)
			x, err := k.New(kinds.Env{Card: alloc.NewCard(limit)}, nil)
			if err != nil {
				return err
			}
			a = x.Allocator
			return nil
		},
		Run:  func() error { return t.Play(a, addrs) },
		Laps: func(lap func()) error { return t.laps(a, addrs, lap) },
	}
}
