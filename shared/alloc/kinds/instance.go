package kinds

import (
	"fmt"
	"strings"

	"tideline/shared/alloc"
	"tideline/shared/alloc/async"
	"tideline/shared/alloc/ort"
	"tideline/shared/alloc/stream"
	"tideline/shared/alloc/torch"
)

// Instance is an allocator of some kind. What only some kinds can do does
// nothing for the others.
type Instance struct {
	alloc.Allocator
	Kind     *Kind
	Settings []Setting

	use     func(stream.ID)
	pool    func(stream.ID, torch.PoolID)
	empty   func()
	sync    func()
	endStep func()
	reserve func(bytes int64) (alloc.Block, bool)
}

// New makes an allocator. An OptionError says which setting it cannot have.
func (k *Kind) New(e Env, settings []Setting) (*Instance, error) {
	c, err := k.configure(settings)
	if err != nil {
		return nil, err
	}
	a, err := k.build(c, e.prepared())
	if err != nil {
		return nil, fmt.Errorf("make allocator %s: %w", k.Name, err)
	}
	x := &Instance{Allocator: a, Kind: k, Settings: settings}
	switch a := a.(type) {
	case *torch.Allocator:
		x.use = func(s stream.ID) { a.Use(torch.Stream(s), torch.PoolID{}) }
		x.pool = func(s stream.ID, p torch.PoolID) { a.Use(torch.Stream(s), p) }
		x.empty = a.EmptyCache
		x.sync = a.ProcessEvents
	case *ort.Arena:
		x.use = a.UseStream
		if c.shrink {
			x.endStep = a.Shrink
		}
		if c.reserve {
			x.reserve = a.Reserve
		}
	case *async.Pool:
		x.use, x.sync = a.UseStream, a.Synchronize
	case interface{ UseStream(s stream.ID) }:
		x.use = a.UseStream
	}
	return x, nil
}

// Title is what the instance is called beside its figures: the kind and what
// was set.
func (x *Instance) Title() string { return Title(x.Kind, x.Settings) }

// Title is a kind with its settings, as people read it: "torch
// expandable_segments=true".
func Title(k *Kind, settings []Setting) string {
	words := []string{k.Name}
	for _, x := range settings {
		words = append(words, x.String())
	}
	return strings.Join(words, " ")
}

// UseStream sets the stream of the calls that follow, where the kind knows any.
func (x *Instance) UseStream(s stream.ID) {
	if x.use != nil {
		x.use(s)
	}
}

// UsePool sets the stream and the private pool of the calls that follow; kinds
// that know no such pools take the stream alone.
func (x *Instance) UsePool(s stream.ID, p torch.PoolID) {
	if x.pool != nil {
		x.pool(s, p)
		return
	}
	x.UseStream(s)
}

// EmptyCache gives idle memory back to the driver, where a program can ask its
// allocator for that.
func (x *Instance) EmptyCache() {
	if x.empty != nil {
		x.empty()
	}
}

// Synchronize says that the host waited for the device.
func (x *Instance) Synchronize() {
	if x.sync != nil {
		x.sync()
	}
}

// EndStep says that a step of the program is over.
func (x *Instance) EndStep() {
	if x.endStep != nil {
		x.endStep()
	}
}

// AllocateParameter asks for memory that stays for the whole run; some kinds
// take it from elsewhere.
func (x *Instance) AllocateParameter(r alloc.Request) (alloc.Block, bool) {
	if x.reserve != nil {
		return x.reserve(r.Bytes)
	}
	return x.Allocate(r)
}
