package exec

// Mode is how programs run. The modes differ in which tensor lives how long
// and in who finds its address, and in nothing else.
type Mode uint8

// The modes.
const (
	// Graph runs a queue of ready nodes, first in first out; a tensor dies with
	// its last consumer, and its memory may be taken over in place.
	Graph Mode = iota
	// Eager runs op by op in program order; a tensor lives as long as the
	// program or its gradient tape refers to it.
	Eager
	// Planned runs as Graph does, but what lives and dies within one execution
	// lies in one arena per memory, at offsets that were worked out ahead; the
	// arena is asked for once per execution and given back at its end.
	Planned
)

// String is the mode's word in workloads.
func (m Mode) String() string {
	switch m {
	case Graph:
		return "graph"
	case Eager:
		return "eager"
	case Planned:
		return "planned"
	}
	return "unknown"
}
