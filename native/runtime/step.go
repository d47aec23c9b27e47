package runtime

// Step marks what f does as one step of the program's loop, from 0, on a batch
// of so many samples: the timeline shows steps, and memory by step.
func (rt *Runtime) Step(step, batch int, f func() error) error {
	begin := func() error {
		rt.mu.Lock()
		defer rt.mu.Unlock()
		if err := rt.start(); err != nil {
			return err
		}
		rt.run.BeginStep(int32(step), int64(batch))
		return nil
	}
	if err := begin(); err != nil {
		return err
	}
	err := f()
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if !rt.closed {
		rt.run.EndStep(int64(batch))
	}
	return err
}
