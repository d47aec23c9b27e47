package pipeline

import "math"

// The names of what is tuned, as TensorFlow calls them.
const (
	Parallelism = "parallelism"
	BufferSize  = "buffer_size"
)

// DefaultCores bounds automatic parallelism where nothing says how many cores
// there are, and is an automatic interleave's cycle: that of the modelled host.
const DefaultCores = 8

// The optimizer looks at the pipeline after the first interval, and then at
// intervals that double up to the last, in nanoseconds.
const (
	firstInterval = 10_000_000
	lastInterval  = 60_000_000_000
)

// minGain is the gain in nanoseconds an element that a larger buffer must
// bring.
const minGain = 1

// Parameter is something that is tuned.
type Parameter struct {
	Name            string
	Value, Min, Max int
}

// Node is a stage in the model of performance.
type Node struct {
	Name   string
	Self   float64    // nanoseconds of work for one element that leaves
	Ratio  float64    // elements that enter for one that leaves
	Async  bool       // it runs beside its consumer
	Tuned  *Parameter // nil: nothing
	Calls  int        // that run at a time, where Tuned is not the parallelism
	Buffer int        // elements it may hold, where Tuned is not the buffer's size
	Bytes  int64      // of one of them
	Input  *Node      // nil for a source
}

func (n *Node) calls() float64 {
	if n.Tuned != nil && n.Tuned.Name == Parallelism {
		return float64(n.Tuned.Value)
	}
	return float64(max(1, n.Calls))
}

// buffer is the number of elements that wait between an asynchronous stage and
// its consumer; a parallel stage's results are as many as its calls.
func (n *Node) buffer() int {
	switch {
	case n.Tuned != nil:
		return n.Tuned.Value
	case n.Buffer > 0:
		return n.Buffer
	}
	return int(n.calls())
}

// OutputTime is the time in nanoseconds that a consumer, which comes back after
// so many, spends on getting an element: all the work of a synchronous stage,
// and of an asynchronous one the wait for what is not there yet.
func (n *Node) OutputTime(consumer float64) float64 {
	self := n.Self / n.calls()
	produce := self
	if n.Input != nil {
		by := consumer
		if n.Async {
			by = 0
		}
		produce += n.Ratio * n.Input.OutputTime((by+self)/max(1, n.Ratio))
	}
	if !n.Async {
		return produce
	}
	return wait(produce, consumer, n.buffer())
}

// wait is the expected wait on a buffer of k between a producer and a consumer
// with exponential times of these means (M/M/1/k): the probability that it is
// empty, times the time to produce.
func wait(producer, consumer float64, k int) float64 {
	switch {
	case producer == 0:
		return 0
	case consumer == 0:
		return producer
	}
	ratio := consumer / producer
	if math.Abs(ratio-1) < 1e-9 {
		return producer / float64(k+1)
	}
	return producer * (1 - ratio) / (1 - math.Pow(ratio, float64(k+1)))
}

// ProcessingTime is the work in nanoseconds of all cores for one element.
func (n *Node) ProcessingTime() float64 {
	t := n.Self
	if n.Input != nil {
		t += n.Ratio * n.Input.ProcessingTime()
	}
	return t
}

// buffered is the bytes of all asynchronous stages' buffers when full.
func (n *Node) buffered() int64 {
	var b int64
	for ; n != nil; n = n.Input {
		if n.Async {
			b += int64(n.buffer()) * n.Bytes
		}
	}
	return b
}

// HillClimb sets the parameters of all stages below a root: it begins with
// the least of each and takes, step by step, the one that brings most. It ends
// when all are at their most, the work is spread over all cores, or the
// buffers would take more than the budget in bytes (0: no limit); then what was
// there before stays, and it says false. A buffer at most doubles from one
// optimization to the next.
func HillClimb(root *Node, cores int, budget int64) (accepted bool) {
	var list []*Parameter
	var before, most []int
	for n := root; n != nil; n = n.Input {
		if p := n.Tuned; p != nil {
			list, before = append(list, p), append(before, p.Value)
			m := p.Max
			if p.Name == BufferSize {
				m = min(m, max(2*p.Value, p.Min))
			}
			most = append(most, m)
			p.Value = p.Min
		}
	}
	work := root.ProcessingTime() / float64(max(1, cores))
	for {
		now := root.OutputTime(0)
		if budget > 0 && root.buffered() > budget {
			for i, p := range list {
				p.Value = before[i]
			}
			return false
		}
		if now < work {
			return true
		}
		best, gain := -1, -1.0
		for i, p := range list {
			if p.Value >= most[i] {
				continue
			}
			p.Value++
			g := now - root.OutputTime(0)
			p.Value--
			if g > gain && (p.Name != BufferSize || g > minGain) {
				best, gain = i, g
			}
		}
		if best < 0 {
			return true
		}
		list[best].Value++
	}
}

// Performance is the model of a chain's performance, from its costs, and where
// something is tuned, the parameter by the number of its stage.
func (d Dataset) Performance(cores int) (root *Node, tuned []*Parameter) {
	tuned = make([]*Parameter, len(d.Stages))
	names := d.Names()
	for i := range d.Stages {
		s := &d.Stages[i]
		n := &Node{Name: names[i], Self: s.meanCost(), Ratio: 1, Async: s.async(), Calls: s.Parallel, Bytes: d.bytes(i), Input: root}
		if s.Cores > 0 && s.Parallel > 0 {
			n.Calls = min(s.Parallel, s.Cores)
		}
		switch s.Op {
		case OpBatch, OpMapBatch:
			n.Ratio = float64(s.meanSize())
			n.Self *= n.Ratio
		case OpInterleave:
			n.Ratio, n.Self = 0, d.meanRead()
		case OpPrefetch:
			n.Buffer = max(1, s.N)
		case OpDevice:
			n.Buffer = s.N
		default:
		}
		if s.Parallel == Auto {
			most := cores
			if s.Cores > 0 {
				most = s.Cores
			}
			if s.Op == OpInterleave {
				most = min(most, s.Cycle)
			}
			n.Tuned = &Parameter{Parallelism, 1, 1, most}
			tuned[i] = n.Tuned
		}
		root = n
	}
	return root, tuned
}

func (s *Stage) meanCost() float64 {
	if len(s.Costs) == 0 {
		return float64(s.Cost)
	}
	var sum float64
	for _, c := range s.Costs {
		sum += float64(c)
	}
	return sum / float64(len(s.Costs))
}

func (s *Stage) meanSize() float64 {
	var sum float64
	for _, n := range s.Sizes {
		sum += float64(n)
	}
	return sum / float64(len(s.Sizes))
}

// meanRead is the mean time to read an element of the files.
func (d Dataset) meanRead() float64 {
	var sum, n float64
	for _, f := range d.Stages[0].Files {
		sum += float64(f.Open) + float64(f.Elements)*float64(f.Read)
		n += float64(f.Elements)
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// tunable is a running stage with automatic parallelism.
type tunable interface {
	parallelism() int
	raise(n int, at int64)
}

// tuning is the optimizer of a running pipeline.
type tuning struct {
	stages   map[int]tunable
	root     *Node
	tuned    []*Parameter
	started  bool
	at       int64 // when it looks next
	interval int64
	budget   int64
}

// tune makes a stage's parallelism automatic; it begins with 1.
func (m *Model) tune(i int, x tunable) {
	if m.tuning == nil {
		m.tuning = &tuning{stages: map[int]tunable{}, interval: firstInterval}
		m.tuning.root, m.tuning.tuned = m.d.Performance(DefaultCores)
		m.tuning.budget = m.d.Budget()
	}
	m.tuning.stages[i] = x
}

// retune looks at the pipeline when the interval is over.
func (m *Model) retune() {
	t := m.tuning
	if t == nil {
		return
	}
	if !t.started {
		t.started, t.at = true, m.now+t.interval
	}
	due := false
	for m.now >= t.at {
		due = true
		t.interval = min(2*t.interval, lastInterval)
		t.at += t.interval
	}
	if !due || !HillClimb(t.root, DefaultCores, t.budget) {
		return
	}
	for i, p := range t.tuned {
		if x := t.stages[i]; x != nil && p.Value > x.parallelism() {
			x.raise(p.Value, m.now)
		}
	}
}
