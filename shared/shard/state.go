package shard

// Model is what of a model matters here.
type Model struct {
	Params  int64 // numbers that are trained
	Largest int64 // of them in the largest layer
}

// Nodes are the devices that training is divided over.
type Nodes struct {
	Devices int64 // in all
	PerNode int64 // of them on one host
	// Sharded: each process builds its part of the model alone. Otherwise every
	// process of a host first has all of it in the host's memory.
	Sharded bool
}

// Stage is how training in mixed precision with Adam is divided.
type Stage uint8

// The stages. In the second the gradients and the optimizer's state are divided,
// in the third the parameters too; what is offloaded waits in the host's memory.
const (
	Two Stage = iota
	TwoOffload
	Three
	ThreeOffload    // the optimizer's state
	ThreeOffloadAll // parameters, too
	stages
)

// Stages are all of them, with the most on the device first.
func Stages() []Stage {
	list := make([]Stage, stages)
	for i := range list {
		list[i] = Stage(i)
	}
	return list
}

// String says the stage in words.
func (s Stage) String() string {
	return [...]string{
		"stage 2", "stage 2, optimizer offloaded", "stage 3", "stage 3, optimizer offloaded", "stage 3, all offloaded",
	}[s]
}

// Device is the bytes on each device.
func (s Stage) Device(m Model, n Nodes) int64 {
	p, l, all := m.Params, m.Largest, max(1, n.Devices)
	switch s {
	case Two:
		return 4*p + 16*p/all
	case TwoOffload:
		return 2 * p
	case Three:
		return 4*l + 18*p/all
	case ThreeOffload:
		return 4*l + 2*p/all
	default:
		return 4 * l
	}
}

// Host is the bytes on each host, with half of it again for buffers. The rows of
// the third stage are of one host.
func (s Stage) Host(m Model, n Nodes) int64 {
	p, on, all := m.Params, max(1, n.PerNode), max(1, n.Devices)
	var bytes int64
	switch {
	case s == Two:
		bytes = 4 * on * p
	case s == TwoOffload:
		bytes = max(4*all, 16) * p
	case s == Three && n.Sharded:
		bytes = 4 * on * m.Largest
	case s == Three:
		bytes = 4 * on * p
	case s == ThreeOffload && n.Sharded:
		bytes = 16 * p
	case s == ThreeOffload:
		bytes = max(4*on, 16) * p
	case n.Sharded:
		bytes = 18 * p
	default:
		bytes = max(4*on, 18) * p
	}
	return bytes + bytes/2
}
