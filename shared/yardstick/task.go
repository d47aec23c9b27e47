package yardstick

// Task is something to time.
type Task struct {
	Name string
	Per  string // what N counts: operation
	N    int    // how many of these a run is
	To   string // the name of the task to compare with, one before this; "" is none
	// Plain marks what is there to be compared with, and no part of Tideline.
	Plain bool
	// Prepare makes what Run needs, untimed, before each run; nil for nothing.
	Prepare func() error
	Run     func() error
	// Laps is Run with a call of lap after every stretch, which are the same in
	// every run; nil where a run is not cut. See Stopwatch.
	Laps func(lap func()) error
	// Note says more once it has run, such as a plan's height; nil for nothing.
	Note func() string
}

// Portable lists the tasks that natively and as WebAssembly are the same.
func Portable() ([]Task, error) {
	var all []Task
	for _, group := range []func() ([]Task, error){Allocators, Dispatch, Steps, Planners} {
		tasks, err := group()
		if err != nil {
			return nil, err
		}
		all = append(all, tasks...)
	}
	return all, nil
}
