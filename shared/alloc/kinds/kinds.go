package kinds

import (
	"fmt"
	"slices"
	"strings"

	"tideline/protocol/nearest"
	"tideline/shared/alloc"
	"tideline/shared/alloc/async"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/direct"
	"tideline/shared/alloc/ort"
	"tideline/shared/alloc/rmm"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/system"
	"tideline/shared/alloc/torch"
)

// Kind is a sort of allocator.
type Kind struct {
	Name    string
	Aliases []string // what other programs call it
	Doc     string   // a sentence for people
	// Modelled kinds give no exact layout; Label stands beside their results.
	Modelled bool
	Options  []Option

	build func(*config, Env) (alloc.Allocator, error)
}

// Label is what must stand beside the results of a modelled kind; empty for
// the others.
func (k *Kind) Label() string {
	if k.Modelled {
		return async.Label
	}
	return ""
}

// Env is what an allocator is made in.
type Env struct {
	Name  string // the allocator's name in logs; "" means the kind's own
	Limit int64  // most bytes it may take; 0 means none but the card's
	// Card is the memory it draws on; nil means one of Limit bytes.
	Card *alloc.Card
	// Base is where the driver's addresses begin; 0 means the driver's choice.
	Base uint64
	// Driver, if set, replaces the one that would be made of Card and Base. For
	// kinds that map pages it must be able to.
	Driver   alloc.SubAllocator
	Device   int // ordinal, for texts
	Order    *stream.Order
	Observer alloc.Observer

	OnWait  func(by, on stream.ID)         // one stream waits for another
	OnSync  func(s stream.ID, device bool) // the host waits
	OnStall func()                         // a request that would fail waits for the device
}

var all = []*Kind{
	{
		Name: "bfc", Aliases: []string{"tensorflow", "jax"}, Doc: "TensorFlow's and JAX's best fit with coalescing; exact.",
		Options: bfcOptions, build: buildBFC,
	},
	{
		Name: "torch", Aliases: []string{"pytorch", "native"}, Doc: "PyTorch's caching allocator; exact.",
		Options: torchOptions, build: buildTorch,
	},
	{
		Name: "ort", Aliases: []string{"onnxruntime"}, Doc: "ONNX Runtime's arena; exact.",
		Options: ortOptions, build: buildORT,
	},
	{
		Name: "async", Aliases: []string{"cuda_async", "cuda_malloc_async", "cudaMallocAsync"}, Doc: "CUDA's stream-ordered pool; modelled.",
		Modelled: true, Options: asyncOptions, build: buildAsync,
	},
	{
		Name: "rmm-pool", Aliases: []string{"rmm"}, Doc: "RMM's coalescing best-fit pool; exact.",
		Options: poolOptions, build: buildPool,
	},
	{
		Name: "rmm-binning", Doc: "RMM's bins of fixed sizes over its pool; exact.",
		Options: binningOptions, build: buildBinning,
	},
	{
		Name: "rmm-arena", Doc: "RMM's arena of superblocks; exact.",
		Options: arenaOptions, build: buildArena,
	},
	{
		Name: "system", Aliases: []string{"malloc"}, Doc: "One heap, first fit.",
		build: buildSystem,
	},
	{
		Name: "direct", Aliases: []string{"cuda", "platform"}, Doc: "Every block is a driver allocation.",
		build: buildDirect,
	},
}

// All are the kinds in the order in which people are shown them.
func All() []*Kind { return slices.Clone(all) }

// Names are the names of all kinds.
func Names() []string {
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.Name
	}
	return names
}

// ByName is the kind of that name or alias, in any case. The error names all.
func ByName(name string) (*Kind, error) {
	for _, k := range all {
		if strings.EqualFold(k.Name, name) {
			return k, nil
		}
		for _, a := range k.Aliases {
			if strings.EqualFold(a, name) {
				return k, nil
			}
		}
	}
	guess := "."
	if n := nearest.Word(name, Names()); n != "" {
		guess = fmt.Sprintf(": did you mean %q?", n)
	}
	return nil, fmt.Errorf("unknown allocator %q%s Known: %s", name, guess, strings.Join(Names(), ", "))
}

// driver is the driver of an Env: one that also maps pages.
func (e *Env) driver() alloc.SubAllocator {
	if e.Driver != nil {
		return e.Driver
	}
	return torch.NewDevice(e.Card, e.Base)
}

// prepared fills in what is left out.
func (e Env) prepared() Env {
	if e.Card == nil {
		e.Card = alloc.NewCard(e.Limit)
	}
	if e.Observer == nil {
		e.Observer = alloc.NoObserver{}
	}
	if e.Limit < 0 {
		e.Limit = 0
	}
	return e
}

// cap is the most bytes that can be had in this Env; 0 means unlimited.
func (e *Env) cap() int64 {
	c := e.Card.Capacity()
	if e.Limit > 0 && (c == 0 || e.Limit < c) {
		return e.Limit
	}
	return c
}

func buildBFC(c *config, e Env) (alloc.Allocator, error) {
	o := c.bfc
	o.Limit = e.cap()
	if o.Limit == 0 {
		if !o.Growth {
			return nil, fmt.Errorf("allocator bfc takes its whole limit at once, and there is none: give a limit, or growth=true")
		}
		o.Limit = 1 << 50
	}
	o.Name = named(e.Name, fmt.Sprintf("GPU_%d_bfc", e.Device))
	o.NoRetry = true // nobody here frees while a request waits
	o.Observer = e.Observer
	return bfc.New(e.driver(), o)
}

func named(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

func buildTorch(c *config, e Env) (alloc.Allocator, error) {
	s, err := torch.ParseSettings(strings.Join(c.torch, ","))
	if err != nil {
		return nil, err
	}
	o := torch.Options{Name: e.Name, Settings: s, Device: e.Device, DeviceTotal: e.Card.Capacity(), Fraction: c.fraction, Observer: e.Observer}
	if n := e.Card.Capacity(); e.Limit > 0 && e.Limit < n && o.Fraction == 0 {
		o.Fraction = float64(e.Limit) / float64(n)
	}
	return torch.New(e.driver(), o)
}

func buildORT(c *config, e Env) (alloc.Allocator, error) {
	o := c.ort
	o.Name, o.MaxMemory, o.Order, o.OnWait, o.Observer = e.Name, e.Limit, e.Order, e.OnWait, e.Observer
	return ort.New(e.driver(), o)
}

func buildAsync(c *config, e Env) (alloc.Allocator, error) {
	o := c.async
	o.Name, o.Limit, o.Order, o.OnWait, o.OnStall, o.Observer = e.Name, e.Limit, e.Order, e.OnWait, e.OnStall, e.Observer
	if !c.thresholdSet {
		o.Threshold = async.KeepAll
		if n := e.cap(); n > 0 {
			o.Threshold = n
		}
	}
	vm, ok := e.driver().(async.VirtualMemory)
	if !ok {
		return nil, fmt.Errorf("allocator async needs a driver that maps pages, and this one only hands out regions")
	}
	return async.New(vm, o)
}

// poolIn is the configured pool in an Env.
func (c *config) poolIn(e *Env) rmm.PoolOptions {
	o := c.pool
	o.Name, o.Order, o.OnWait, o.Observer = e.Name, e.Order, e.OnWait, e.Observer
	if o.Maximum == 0 {
		o.Maximum = e.Limit &^ (rmm.Granule - 1)
	}
	return o
}

func buildPool(c *config, e Env) (alloc.Allocator, error) {
	p, err := rmm.NewPool(e.driver(), c.poolIn(&e))
	if err != nil {
		return nil, err
	}
	return c.limited(p)
}

func buildBinning(c *config, e Env) (alloc.Allocator, error) {
	o := c.binning
	if o.MostBin == 0 {
		o.MostBin = max(mostBin(e.cap()), o.LeastBin)
	}
	if o.LeastBin == 0 {
		o.LeastBin = min(o.MostBin, max(leastBin, o.MostBin-rmm.DefaultMostBin+rmm.DefaultLeastBin))
	}
	o.Pool = c.poolIn(&e)
	b, err := rmm.NewBinning(e.driver(), o)
	if err != nil {
		return nil, err
	}
	return c.limited(b)
}

// leastBin is a granule.
const leastBin = 8

// mostBin is the largest bin for a limit: upstream names none, and all bins
// take a first run at once.
func mostBin(limit int64) int {
	n := rmm.DefaultMostBin
	for limit > 0 && n > leastBin && rmm.RunBlocks<<(n+1) > limit/4 {
		n--
	}
	return n
}

// limited puts RMM's limiting adaptor over a resource where it is asked for.
func (c *config) limited(a alloc.Allocator) (alloc.Allocator, error) {
	if c.allocation == 0 {
		return a, nil
	}
	return rmm.NewLimiting(a, c.allocation)
}

func buildArena(c *config, e Env) (alloc.Allocator, error) {
	o := c.arena
	o.Name, o.Order, o.OnSync, o.Observer = e.Name, e.Order, e.OnSync, e.Observer
	o.Free = e.cap()
	if o.Size == 0 && o.Free == 0 {
		return nil, fmt.Errorf("allocator rmm-arena takes half of the free memory at once, and there is no limit: give one, or arena_size")
	}
	a, err := rmm.NewArena(e.driver(), o)
	if err != nil {
		return nil, err
	}
	return c.limited(a)
}

func buildSystem(_ *config, e Env) (alloc.Allocator, error) {
	return system.New(system.Options{Name: e.Name, Base: e.Base, Limit: e.Limit, Card: e.Card, Observer: e.Observer}), nil
}

func buildDirect(_ *config, e Env) (alloc.Allocator, error) {
	return direct.New(e.driver(), direct.Options{Name: e.Name, Limit: e.Limit, Observer: e.Observer})
}
