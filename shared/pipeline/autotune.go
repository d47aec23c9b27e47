package pipeline

type tunable interface {
	parallelism() int
	raise(n int, at int64)
}

type tuning struct {
	list []struct {
		i int
		x tunable
	}
}

func (m *Model) tune(i int, x tunable) {}
func (m *Model) retune()               {}
