package synthetic

import (
	"math"
	"strconv"

	"tideline/protocol/event"
)

// Options say what to make up.
type Options struct {
	// Events is at least how many events to give; the run ends with the step
	// in which the number is reached, and its End.
	Events int
	// Seed of everything random.
	Seed uint64
	// Dynamic makes the batch's sequence length, and so most sizes, differ
	// from step to step. Without it all steps are alike but for their times.
	Dynamic bool
	// Layers of the model; 0 means 48.
	Layers int
	// Devices that train side by side, each with its host transfers; 0 means 1.
	// Device 0 is the host.
	Devices int
}

// Generate gives a made-up run to sink; strings is the table it interns in. It
// returns the number of events.
func Generate(o Options, strings *event.Strings, sink event.Sink) int {
	if o.Layers <= 0 {
		o.Layers = 48
	}
	if o.Devices <= 0 {
		o.Devices = 1
	}
	g := &run{o: o, s: strings, sink: sink, r: random(o.Seed + 0x9E3779B97F4A7C15), step: event.NoStep}
	g.begin()
	for g.n < o.Events {
		g.oneStep()
	}
	g.step = event.NoStep
	g.emit(event.Event{Kind: event.End, Cause: uint8(event.EndDone)})
	return g.n
}

// random is splitmix64.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below is a number from 0 to n-1.
func (r *random) below(n int64) int64 { return int64(r.next() % uint64(n)) }

// run is the state of one made-up run.
type run struct {
	o      Options
	s      *event.Strings
	sink   event.Sink
	r      random
	n      int
	time   int64
	step   int32
	ids    uint64
	layers []layer
	cards  []card
	length int64 // of the step's sequences
	stages [3]event.StringID
	out    event.Event
}

// layer is what one layer of the model needs. The name slices are: op, tensor.
type layer struct {
	forward, backward, update    event.StringID
	out, work, gradOut, gradW, w event.StringID
	width, inner                 int64
}

// card is one device with its memory.
type card struct {
	id    event.DeviceID
	heap  heap
	acts  []block
	input block
}

type block struct {
	address uint64
	size    int64
	tensor  event.StringID
}

const (
	batch     = 16
	maxLength = 512
	cardBytes = 16 << 30
)

func (g *run) emit(e event.Event) {
	g.out = e // in a field, so that the interface's pointer does not make e escape
	g.out.Time, g.out.Step = g.time, g.step
	g.sink.Emit(&g.out)
	g.n++
}

// pass lets time pass: usual nanoseconds with jitter.
func (g *run) pass(usual int64) { g.time += usual/2 + g.r.below(usual) }

// begin tells the facts and allocates the parameters.
func (g *run) begin() {
	settings := event.Fields{{Key: "model", Value: "synthetic"}, {Key: "steps", Value: "0"}}
	g.emit(event.Event{Kind: event.Settings, Text: g.s.ID(settings.Encode())})
	for d := 0; d <= g.o.Devices; d++ {
		name, kind := "/device:GPU:"+strconv.Itoa(d-1), "gpu"
		if d == 0 {
			name, kind = "/device:CPU:0", "cpu"
		}
		facts := event.Fields{{Key: "name", Value: name}, {Key: "kind", Value: kind}, {Key: "total", Value: strconv.Itoa(cardBytes)}}
		g.emit(event.Event{Kind: event.DeviceFacts, Device: event.DeviceID(d), Text: g.s.ID(facts.Encode())})
	}
	for d := 1; d <= g.o.Devices; d++ {
		facts := event.Fields{{Key: "name", Value: "GPU_" + strconv.Itoa(d-1) + "_bfc"}, {Key: "kind", Value: "bfc"}}
		g.cards = append(g.cards, card{id: event.DeviceID(d)})
		c := &g.cards[d-1]
		g.emit(event.Event{Kind: event.AllocatorFacts, Device: c.id, Allocator: event.AllocatorID(d), Size: cardBytes, Text: g.s.ID(facts.Encode())})
		base := uint64(0x7f0000000000) + uint64(d)<<36
		c.heap.add(base, cardBytes)
		g.emit(event.Event{Kind: event.RegionAdd, Device: c.id, Allocator: event.AllocatorID(d), Address: base, Size: cardBytes, Requested: cardBytes})
	}
	for i, name := range [...]string{"input/read", "input/map", "input/prefetch"} {
		g.stages[i] = g.s.ID(name)
	}
	g.model()
	for i := range g.cards {
		for l := range g.layers {
			la := &g.layers[l]
			g.alloc(&g.cards[i], la.width*la.inner*4, la.update, la.w, event.Parameter)
		}
	}
}

// model names and sizes the layers.
func (g *run) model() {
	for i := range g.o.Layers {
		var l layer
		p := "block" + strconv.Itoa(i/4) + "/dense" + strconv.Itoa(i%4)
		l.forward = g.s.ID(p + "/MatMul")
		l.out = g.s.ID(p + "/MatMul:0")
		l.work = g.s.ID(p + "/MatMul/workspace")
		l.w = g.s.ID(p + "/kernel")
		l.width = 64 * (1 + g.r.below(16))
		l.inner = 64 * (1 + g.r.below(16))
		g.layers = append(g.layers, l)
	}
	for i := range g.layers {
		l := &g.layers[i]
		p := "gradients/" + g.s.At(l.forward)
		l.backward = g.s.ID(p)
		l.gradOut = g.s.ID(p + ":0")
		l.gradW = g.s.ID(p + ":1")
		l.update = g.s.ID("apply/" + g.s.At(l.w))
	}
}

func (g *run) alloc(c *card, requested int64, op, tensor event.StringID, cat event.Category) block {
	size := (max(requested, 1) + 255) &^ 255
	b := block{c.heap.alloc(size), size, tensor}
	g.emit(event.Event{
		Kind: event.Alloc, Device: c.id, Allocator: event.AllocatorID(c.id), Address: b.address, Size: size,
		Requested: requested, Op: op, Tensor: tensor, Category: cat,
	})
	return b
}

func (g *run) free(c *card, b block) {
	c.heap.free(b.address, b.size)
	g.emit(event.Event{Kind: event.Free, Device: c.id, Allocator: event.AllocatorID(c.id), Address: b.address, Size: b.size})
}

func (g *run) oneStep() {
	g.step++
	if g.length = maxLength; g.o.Dynamic {
		g.length = 32 + g.r.below(maxLength-32)
	}
	g.emit(event.Event{Kind: event.StepBegin, Size: batch})
	g.pipeline()
	for i := range g.cards {
		g.feed(&g.cards[i])
	}
	for i := range g.cards {
		g.forward(&g.cards[i])
	}
	for i := range g.cards {
		g.backward(&g.cards[i])
	}
	loss := 2.3 / (1 + float64(g.step)/50)
	g.emit(event.Event{Kind: event.Metric, Op: g.s.ID("loss"), Size: int64(math.Float64bits(loss))})
	g.emit(event.Event{Kind: event.StepEnd, Size: batch})
	g.pass(2000)
}

// pipeline prepares a batch; sometimes the step has to wait for it.
func (g *run) pipeline() {
	for i, name := range g.stages {
		g.ids++
		id := g.ids
		worker := event.StreamID(id % 4)
		g.emit(event.Event{Kind: event.StageBegin, Op: name, ID: id, Stream: worker})
		g.pass(4000)
		g.emit(event.Event{Kind: event.StageEnd, Op: name, ID: id, Stream: worker, Size: batch * g.length * 4})
		g.emit(event.Event{Kind: event.QueueDepth, Op: name, Size: int64(i) + g.r.below(3), Requested: 8})
	}
	if g.r.below(8) == 0 {
		g.ids++
		stall := event.Event{Kind: event.StallBegin, Device: 1, ID: g.ids, Op: g.stages[1]}
		g.emit(stall)
		g.pass(300_000)
		stall.Kind = event.StallEnd
		g.emit(stall)
	}
}

// feed copies the batch to a card.
func (g *run) feed(c *card) {
	bytes := batch * g.length * 4
	name := g.s.ID("batch:0")
	c.input = g.alloc(c, bytes, g.stages[2], name, event.Input)
	g.ids++
	t := event.Event{
		Kind: event.TransferBegin, Device: 0, Peer: c.id, Size: bytes, ID: g.ids, Stream: event.StreamH2D,
		Cause: uint8(event.CauseInput), Flags: event.Pinned, Op: g.stages[2], Tensor: name,
	}
	g.emit(t)
	g.pass(6000)
	t.Kind = event.TransferEnd
	g.emit(t)
}

// op brackets the work of one op.
func (g *run) op(c *card, name event.StringID, part event.Category, work func()) {
	g.ids++
	e := event.Event{Kind: event.OpBegin, Device: c.id, Op: name, ID: g.ids, Category: part}
	g.emit(e)
	g.pass(500)
	work()
	g.pass(5000)
	e.Kind = event.OpEnd
	g.emit(e)
	g.pass(800)
}

func (g *run) forward(c *card) {
	for i := range g.layers {
		l := &g.layers[i]
		g.op(c, l.forward, event.OpForward, func() {
			c.acts = append(c.acts, g.alloc(c, batch*g.length*l.width*4, l.forward, l.out, event.Activation))
			g.pass(400)
			if i%3 == 0 {
				w := g.alloc(c, batch*g.length*l.inner*2+1000, l.forward, l.work, event.Temporary)
				g.pass(3000)
				g.free(c, w)
			}
		})
	}
}

func (g *run) backward(c *card) {
	var above block
	for i := len(g.layers) - 1; i >= 0; i-- {
		l := &g.layers[i]
		g.op(c, l.backward, event.OpBackward, func() {
			grad := g.alloc(c, batch*g.length*l.inner*4, l.backward, l.gradOut, event.ActivationGradient)
			g.pass(300)
			gw := g.alloc(c, l.width*l.inner*4, l.backward, l.gradW, event.Gradient)
			g.pass(2000)
			if above.size > 0 {
				g.free(c, above)
			}
			g.free(c, c.acts[i])
			g.pass(300)
			above = grad
			g.op(c, l.update, event.OpUpdate, func() {})
			g.free(c, gw)
		})
	}
	g.free(c, above)
	g.free(c, c.input)
	c.acts = c.acts[:0]
}
