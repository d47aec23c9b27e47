package device

import (
	"fmt"
	"sort"
	"strconv"

	"tideline/shared/alloc"
)

// Hardware is the accelerators that a driver shows, in its order.
type Hardware struct {
	GPUs []*Card
	TPUs []*Card
}

// Process is what TensorFlow keeps for the whole of a process: which card a
// GPU id stands for, and the limit of its allocator. Neither changes with a
// later configuration. The zero value is a fresh process.
type Process struct{ known map[int]bound }

type bound struct {
	card  int
	limit int64
}

// bind notes that a GPU id stands for a card, and gives the limit that its
// allocator has, which is an earlier configuration's if there was one.
func (p *Process) bind(id, card int, limit int64) (int64, error) {
	if b, ok := p.known[id]; ok {
		if b.card != card {
			return 0, &Error{
				Kind: AlreadyExists, Device: "/GPU:" + strconv.Itoa(id), Setting: "visible_device_list",
				Message: "stands for card " + strconv.Itoa(b.card) + " in this process already and cannot become card " + strconv.Itoa(card),
			}
		}
		return b.limit, nil
	}
	if p.known == nil {
		p.known = map[int]bound{}
	}
	p.known[id] = bound{card, limit}
	return limit, nil
}

// Assembly is the logical devices of a process. Its driver contexts hold
// memory of the cards until Release.
type Assembly struct {
	Devices  []*Logical // CPUs, GPUs by id, TPUs
	Log      []string   // lines of information, "Created device …" among them
	Warnings []string
	// For whoever builds allocators and streams.
	HostLimit  int64 // bytes of the pinned host pool
	HostGrowth bool
	D2DStreams int // 1 to 4
	Threads    ThreadMode

	link  Interconnect
	holds []held
}

type held struct {
	card  *Card
	bytes int64
}

// CPUMemoryLimit is what a CPU reports as its memory in bytes; nothing
// enforces it.
const CPUMemoryLimit = 256 * mib

// MinCapability is the lowest compute capability, times ten, that is used.
const MinCapability = 35

// Create makes the devices of a process: contexts on all cards in use first,
// then limits from what is free after that. On an error nothing is held.
func (o *Options) Create(hw Hardware, env Env, proc *Process) (*Assembly, error) {
	if proc == nil {
		proc = new(Process)
	}
	if o.CPUs < 1 {
		return nil, &Error{Kind: NotFound, Device: "CPU:0", Setting: "visible devices", Message: "there must be a CPU device: leave it visible"}
	}
	a := &Assembly{HostLimit: o.HostLimit(env), HostGrowth: !o.HostNoGrowth, link: o.Interconnect}
	for i := range o.CPUs {
		a.Devices = append(a.Devices, &Logical{Name: Local("CPU", i), Model: HostModel()})
	}
	c := creation{Options: o, Assembly: a, env: env, proc: proc, cards: hw.GPUs}
	if err := c.gpus(); err != nil {
		a.Release()
		return nil, err
	}
	for i, card := range hw.TPUs {
		if err := c.tpu(i, card); err != nil {
			a.Release()
			return nil, err
		}
	}
	return a, nil
}

// Release gives back what the driver contexts held.
func (a *Assembly) Release() {
	for _, h := range a.holds {
		h.card.Hold(-h.bytes)
	}
	a.holds = nil
}

// Of lists the devices of a type, all for "".
func (a *Assembly) Of(typ string) []*Logical {
	var out []*Logical
	for _, l := range a.Devices {
		if typ == "" || l.Name.Type == typ {
			out = append(out, l)
		}
	}
	return out
}

// creation is one call of Create.
type creation struct {
	*Options
	*Assembly
	env   Env
	proc  *Process
	cards []*Card
	slots []slot
}

// slot is a logical GPU before it has a number.
type slot struct {
	card     int // physical id
	at       int // position among the visible cards
	budget   Budget
	alone    int64
	free     int64
	priority int
	ordinal  int
}

func (c *creation) gpus() error {
	use := len(c.cards)
	if c.GPUs.Set {
		use = c.GPUs.Value
	}
	if err := c.streams(); err != nil || use <= 0 {
		return err // with no GPU to use, the list is not even read
	}
	order, err := parseVisible(c.VisibleDeviceList, len(c.cards))
	if err != nil {
		return err
	}
	valid := c.filter(order)
	use = min(use, len(valid))
	if len(c.Virtual) > 0 {
		if err := c.verify(use, order, valid); err != nil {
			return err
		}
		use = len(c.Virtual)
	}
	if err := c.contexts(valid); err != nil {
		return err
	}
	for at, card := range valid[:use] {
		if err := c.cut(at, card); err != nil {
			return err
		}
	}
	sort.SliceStable(c.slots, func(i, j int) bool {
		if x, y := &c.slots[i], &c.slots[j]; x.ordinal != y.ordinal {
			return x.ordinal < y.ordinal
		}
		return c.slots[i].at < c.slots[j].at
	})
	return c.number()
}

// streams settles what is the same for all GPUs.
func (c *creation) streams() error {
	c.Assembly.D2DStreams = 1
	switch n := c.Options.D2DStreams; {
	case n >= 1 && n <= 4:
		c.Assembly.D2DStreams = n
	case n != 0:
		c.warn(fmt.Sprintf("num_dev_to_dev_copy_streams=%d is not between 1 and 4: one stream is used", n))
	}
	var err error
	c.Threads, err = c.env.Threads()
	return err
}

func (c *creation) warn(text string) { c.Warnings = append(c.Warnings, text) }

// filter leaves out cards that are too old, or too small beside the others.
func (c *creation) filter(order []int) []int {
	least := int64(0)
	for _, id := range order {
		least = max(least, c.cards[id].Preset.Multiprocessors.Value)
	}
	least = min(least, 8)
	n, bad, ok := c.env.number("TF_MIN_GPU_MULTIPROCESSOR_COUNT", 0)
	if bad != "" {
		c.warn("TF_MIN_GPU_MULTIPROCESSOR_COUNT=" + bad + " is no number: ignored")
	}
	if ok {
		least = n
	}
	var valid []int
	for _, id := range order {
		p := c.cards[id].Preset
		switch {
		case p.Major*10+p.Minor < MinCapability:
			c.Log = append(c.Log, fmt.Sprintf("Ignoring visible GPU %d (%s): compute capability %d.%d is below %d.%d",
				id, p.Title, p.Major, p.Minor, MinCapability/10, MinCapability%10))
		case p.Multiprocessors.Value > 0 && p.Multiprocessors.Value < least:
			c.Log = append(c.Log, fmt.Sprintf("Ignoring visible GPU %d (%s): %d multiprocessors are fewer than %d; TF_MIN_GPU_MULTIPROCESSOR_COUNT changes that",
				id, p.Title, p.Multiprocessors.Value, least))
		default:
			valid = append(valid, id)
		}
	}
	return valid
}

// verify holds the virtual devices against the cards.
func (c *creation) verify(use int, order, valid []int) error {
	n := len(c.Virtual)
	bad := func(k Kind, format string, args ...any) error {
		return &Error{Kind: k, Setting: "virtual_devices", Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.Fraction > 0:
		return &Error{
			Kind: InvalidArgument, Setting: "virtual_devices", Cause: ErrConflict,
			Message: fmt.Sprintf("excludes per_process_gpu_memory_fraction (%v): give limits or a fraction, not both", c.Fraction),
		}
	case use < n:
		return bad(Unknown, "%d entries for %d usable GPUs: one entry per visible GPU", n, use)
	case c.VisibleDeviceList != "" && len(order) != n:
		return bad(InvalidArgument, "%d entries, but visible_device_list %q names %d GPUs: one entry per visible GPU", n, c.VisibleDeviceList, len(order))
	case len(valid) != n:
		return bad(Unknown, "%d entries for %d valid GPUs: one entry per visible GPU", n, len(valid))
	}
	priorities, ordinals := 0, 0
	for i, v := range c.Virtual {
		priorities += min(1, len(v.Priorities))
		ordinals += min(1, len(v.Ordinals))
		if k := len(v.Priorities); k > 0 && k != len(v.Limits) {
			return bad(InvalidArgument, "entry %d has %d priorities for %d limits", i, k, len(v.Limits))
		}
		if k := len(v.Ordinals); k > 0 && k != len(v.Limits) {
			return bad(InvalidArgument, "entry %d has %d ordinals for %d limits", i, k, len(v.Limits))
		}
		low, high := c.cards[valid[i]].Preset.Priorities()
		for _, p := range v.Priorities {
			if p < low || p > high {
				return bad(InvalidArgument, "entry %d: priority %d is outside of the range [%d, %d] of GPU %d", i, p, low, high, valid[i])
			}
		}
		for _, limit := range v.Limits {
			if limit <= 0 {
				return bad(InvalidArgument, "entry %d: a memory limit of %d bytes makes every allocation fail: give at least 1 MiB", i, limit)
			}
		}
	}
	cut := 0
	for _, v := range c.Virtual {
		cut += min(1, len(v.Limits))
	}
	switch {
	case priorities != 0 && priorities != cut:
		return bad(InvalidArgument, "priorities are given for some entries only: give them for all or none")
	case ordinals != 0 && ordinals != cut:
		return bad(InvalidArgument, "ordinals are given for some entries only: give them for all or none")
	}
	return nil
}

// contexts makes the driver contexts of all usable cards.
func (c *creation) contexts(valid []int) error {
	for _, id := range valid {
		card := c.cards[id]
		if err := c.hold(card, card.Preset.Context.Value); err != nil {
			return err
		}
	}
	return nil
}

func (a *Assembly) hold(card *Card, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	if !card.Hold(bytes) {
		return &Error{
			Kind: Internal, Device: card.Name, Setting: "driver context",
			Message: fmt.Sprintf("needs %d bytes and the card has %d free: end another process, or choose another card", bytes, card.Free()),
		}
	}
	a.holds = append(a.holds, held{card, bytes})
	return nil
}

// cut makes the slots of one card.
func (c *creation) cut(at, id int) error {
	card := c.cards[id]
	m := Memory{Total: card.Total(), Free: card.Free(), Major: card.Preset.Major}
	s := slot{card: id, at: at, free: m.Free}
	if at < len(c.Virtual) && len(c.Virtual[at].Limits) > 0 {
		v := &c.Virtual[at]
		for i, limit := range v.Limits {
			s.budget, s.alone = Budget{Limit: limit}, limit
			if len(v.Priorities) > 0 {
				s.priority = v.Priorities[i]
			}
			if len(v.Ordinals) > 0 {
				s.ordinal = v.Ordinals[i]
			}
			c.slots = append(c.slots, s)
		}
		return nil
	}
	o := *c.Options
	b, err := card.budget(&o, m, c.env)
	if err != nil {
		return err
	}
	c.Warnings = append(c.Warnings, b.Warning...)
	s.budget, s.alone = b, b.Limit
	if b.Reserve > 0 || b.Limit == m.Free { // the limit follows from what is free
		m.Free += max(0, m.Total-m.Free-card.Preset.Context.Value)
		if lone, err := card.budget(&o, m, c.env); err == nil {
			s.alone = lone.Limit
		}
	}
	parts := int64(1)
	if len(c.Virtual) == 0 {
		parts = int64(max(1, c.NumVirtualPerGPU))
	}
	s.budget.Limit /= parts
	s.alone /= parts
	for range parts {
		c.slots = append(c.slots, s)
	}
	return nil
}

// budget is Options.Limit with the reserve that an invented card may have.
func (c *Card) budget(o *Options, m Memory, env Env) (Budget, error) {
	if own := c.Preset.Reserve.Value; own > 0 && o.Fraction == 0 && o.SystemMemoryMiB == 0 && o.ReserveRule == ReserveCurrent {
		if _, set := env.get("TF_DEVICE_MIN_SYS_MEMORY_IN_MB"); !set && !o.UseUnifiedMemory {
			limit := DefaultLimit(m.Free, own)
			return Budget{Limit: limit, Reserve: m.Free - limit}, nil
		}
	}
	return o.Limit(m, env, "card "+c.Name)
}

// number gives the slots their ids, in order, and makes them devices.
func (c *creation) number() error {
	growth, warning := c.env.Growth(c.AllowGrowth)
	if warning != "" && len(c.slots) > 0 {
		c.warn(warning)
	}
	for i, s := range c.slots {
		limit, err := c.proc.bind(i, s.card, s.budget.Limit)
		if err != nil {
			return err
		}
		card := c.cards[s.card]
		l := &Logical{
			Name: Local("GPU", i), Card: card, Model: card.Preset.ModelOver(c.Interconnect), Limit: limit,
			Alone: max(limit, s.alone), Growth: growth, FreeNow: s.free, Context: card.Preset.Context.Value,
			Held: max(0, card.Total()-s.free-card.Preset.Context.Value), Reserve: s.budget.Reserve,
			Physical: s.card, Priority: s.priority, Unified: s.budget.Unified,
		}
		c.Devices = append(c.Devices, l)
		c.Log = append(c.Log, l.Created())
	}
	return nil
}

// tpu makes a core: no pool of TensorFlow's, and a limit that is the memory
// but for what the chip keeps.
func (c *creation) tpu(i int, card *Card) error {
	if err := c.hold(card, card.Preset.Context.Value); err != nil {
		return err
	}
	free := card.Free()
	limit := DefaultLimit(free, card.Preset.Reserve.Value)
	c.Devices = append(c.Devices, &Logical{
		Name: Local("TPU", i), Card: card, Model: card.Preset.Model(), Limit: limit, Alone: limit,
		FreeNow: free, Context: card.Preset.Context.Value, Reserve: free - limit, Physical: i,
		Held: max(0, card.Total()-free-card.Preset.Context.Value),
	})
	return nil
}

// Link is how two logical GPUs of an assembly are linked: StreamExecutor with
// strength 1 where peer access exists, SAME_DEVICE with 1000 on one card, and
// nothing with 0 else.
func (a *Assembly) Link(i, j int) (kind string, strength int) {
	x, y := a.Devices[i], a.Devices[j]
	switch {
	case i == j || x.IsHost() || y.IsHost():
	case x.Card == y.Card:
		return "SAME_DEVICE", 1000
	case x.Model.Peer > 0 && y.Model.Peer > 0:
		return "StreamExecutor", 1
	}
	return "", 0
}

// Space is a fresh address space for the allocator of this device.
func (l *Logical) Space(base uint64) (alloc.SubAllocator, error) {
	if l.Unified { // pages come from the host when the card has none left
		s, err := alloc.NewSpace(alloc.SpaceOptions{Base: base})
		if err != nil {
			return nil, fmt.Errorf("address space of %s: %w", l.Name.Short(), err)
		}
		return s, nil
	}
	return l.Card.Space(base)
}

// Created is the line that TensorFlow logs for a GPU.
func (l *Logical) Created() string {
	p := l.Card.Preset
	return fmt.Sprintf("Created device %s with %d MB memory:  -> device: %d, name: %s, pci bus id: 0000:%02x:00.0, compute capability: %d.%d",
		l.Name, l.Limit>>20, l.Physical, p.Title, l.Physical+1, p.Major, p.Minor)
}
