package runtime

import (
	"slices"

	"tideline/shared/device"
	"tideline/shared/program"
)

// queue is the state of asynchronous eager execution: ops are put into a queue
// and the program goes on at once. Here they run when they are put in, but
// what the program sees is that of the queue: inputs stay held for a while,
// and a failure is not told by the op that failed. It poisons the op's
// outputs, and later ops are cancelled until the error is cleared.
type queue struct {
	on     bool
	inputs [][]*handle // of the ops that are taken to be under way
	failed error
}

// depth is how many ops are taken to be under way before the program waits for
// something; assumed.
const depth = 64

// SetSynchronous switches asynchronous eager execution off (the default) or
// on, at any time; what is under way is waited for.
func (rt *Runtime) SetSynchronous(on bool) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.run != nil {
		rt.drain()
	}
	rt.queue.on = !on
	rt.config.General.Synchronous = device.Some(0)
	if on {
		rt.config.General.Synchronous = device.Some(1)
	}
	return rt.queue.failed
}

// Wait waits for all ops and devices. In asynchronous execution it gives the
// error that later ops are cancelled for, which stays until ClearErrors.
func (rt *Runtime) Wait() error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if err := rt.start(); err != nil {
		return err
	}
	rt.drain()
	if err := rt.run.Sync(); err != nil {
		return rt.wrap("wait", 0, nil, err)
	}
	return rt.queue.failed
}

// ClearErrors lets asynchronous execution go on after a failure. Outputs that
// it poisoned stay so.
func (rt *Runtime) ClearErrors() {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	rt.queue.failed = nil
}

// drain lets go of what the queue holds.
func (c *core) drain() {
	for _, in := range c.queue.inputs {
		for _, h := range in {
			c.drop(h)
		}
	}
	c.queue.inputs = c.queue.inputs[:0]
}

// enqueue runs an op of asynchronous execution.
func (rt *Runtime) enqueue(x *call, out *[maxOut]*handle) (*kernel, error) {
	k, err := rt.kernel(x)
	if err != nil {
		return nil, err // the program's own mistake is told at once
	}
	q := &rt.queue
	err = q.failed
	for _, h := range x.in {
		if err == nil {
			err = h.err
		}
	}
	if err == nil {
		if _, err = rt.dispatch(x, out); err == nil {
			for _, h := range x.in {
				h.refs++
			}
			q.inputs = append(q.inputs, slices.Clone(x.in))
			for len(q.inputs) > depth {
				for _, h := range q.inputs[0] {
					rt.drop(h)
				}
				q.inputs = q.inputs[1:]
			}
			return k, nil
		}
		q.failed = err
	}
	for i, s := range k.outs {
		out[i] = rt.newHandle(0, k.device, s.dtype, s.shape)
		out[i].err = err
	}
	return k, nil
}

// execute is dispatch in the mode that is on.
func (rt *Runtime) execute(op program.Op, a *program.Attrs, in []*handle, out *[maxOut]*handle) (*kernel, error) {
	x := call{op: op, attrs: a, in: in}
	if rt.queue.on {
		return rt.enqueue(&x, out)
	}
	for _, h := range in {
		if h.err != nil {
			return nil, h.err
		}
	}
	return rt.dispatch(&x, out)
}
