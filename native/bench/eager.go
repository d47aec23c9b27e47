package bench

import (
	"tideline/native/backend/vgpu"
	"tideline/native/runtime"
	"tideline/protocol/event"
	"tideline/shared/yardstick"
)

// nowhere drops events.
type nowhere struct{}

func (nowhere) Emit(*event.Event) {}

// opsPerRun is how many calls a run makes.
const opsPerRun = 1000

// dispatch is what a small op costs: the modelled executor's, then those of
// TensorFlow's programming surface, which compute. All of them tell their
// events.
func dispatch(*Options) ([]*task, []Line, error) {
	list, err := yardstick.Dispatch()
	if err != nil {
		return nil, nil, err
	}
	tasks := both(list...)
	for _, x := range []struct {
		name  string
		cards []string
		call  func(rt *runtime.Runtime) (func() error, error)
	}{
		{"x + y of one number, host", nil, addition},
		{"x + y of one number, virtual card", []string{"t4-16g"}, addition},
		{"x * y under a tape, and its gradient", []string{"t4-16g"}, gradient},
		{"function of ten ops, called", []string{"t4-16g"}, function},
	} {
		rt, err := runtime.New(runtime.Options{GPUs: x.cards, Backend: vgpu.New(), Sink: nowhere{}})
		if err != nil {
			return nil, nil, err
		}
		one, err := x.call(rt)
		if err != nil {
			return nil, nil, err
		}
		tasks = append(tasks, plain(yardstick.Task{Name: x.name, Per: "call", N: opsPerRun, To: "small op, called", Run: func() error {
			for range opsPerRun {
				if err := one(); err != nil {
					return err
				}
			}
			return nil
		}})...)
	}
	return tasks, nil, nil
}

func twoNumbers(rt *runtime.Runtime) (x, y *runtime.Tensor, err error) {
	if x, err = runtime.Constant(rt, []float32{1}); err != nil {
		return nil, nil, err
	}
	y, err = runtime.Constant(rt, []float32{2})
	return x, y, err
}

func addition(rt *runtime.Runtime) (func() error, error) {
	x, y, err := twoNumbers(rt)
	return func() error {
		z, err := rt.Add(x, y)
		if err != nil {
			return err
		}
		z.Release()
		return nil
	}, err
}

func gradient(rt *runtime.Runtime) (func() error, error) {
	x, y, err := twoNumbers(rt)
	return func() error {
		t := rt.Tape(false)
		t.Watch(x)
		z, err := rt.Mul(x, y)
		if err != nil {
			return err
		}
		g, err := t.Gradient(z, x)
		if err != nil {
			return err
		}
		g[0].Release()
		z.Release()
		return nil
	}, err
}

func function(rt *runtime.Runtime) (func() error, error) {
	x, _, err := twoNumbers(rt)
	f := rt.Function("f", func(args ...any) ([]*runtime.Tensor, error) {
		x := args[0].(*runtime.Tensor)
		for range 10 {
			var err error
			if x, err = rt.Add(x, x); err != nil {
				return nil, err
			}
		}
		return []*runtime.Tensor{x}, nil
	})
	return func() error {
		out, err := f.Call(x)
		if err != nil {
			return err
		}
		out[0].Release()
		return nil
	}, err
}
