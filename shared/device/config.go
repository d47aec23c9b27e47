package device

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Physical is a device of the machine, whether a program may see it or not.
// Two are the same when both fields are.
type Physical struct {
	Name string // /physical_device:GPU:0
	Type string // CPU, GPU, TPU
}

// PhysicalName is the name of the n-th physical device of a type.
func PhysicalName(typ string, n int) string { return "/physical_device:" + typ + ":" + strconv.Itoa(n) }

// Growth is the memory growth setting of a device. Unset and Off are different
// settings, although they do the same.
type Growth uint8

// The values of Growth.
const (
	GrowthUnset Growth = iota
	GrowthOff
	GrowthOn
)

// String is the value as TensorFlow's Python shows it.
func (g Growth) String() string { return [...]string{"None", "False", "True"}[g] }

// LogicalConfig is one logical device to make of a physical one.
type LogicalConfig struct {
	Limit    int64 // bytes; 0: none given. MiB reads TensorFlow's form
	Priority Optional
	Ordinal  Optional
}

// Config is tf.config as a value: what a program has set, checked at once by
// TensorFlow's rules, and frozen when the devices are made. The zero value is
// not usable; NewConfig knows the hardware. Not safe for concurrent use.
//
// Errors are *Error. Each method says which kinds it gives.
type Config struct {
	hw  Hardware
	env Env

	physical []Physical
	visible  []Physical
	growth   map[Physical]Growth
	logical  map[Physical][]LogicalConfig
	assembly *Assembly

	// Options are the raw GPU options under the settings, for what these do not
	// cover: fraction, streams, reserve rule. Growth, the visible list and the
	// virtual devices in it are replaced by the settings. Changes after the
	// devices were made do nothing.
	Options Options

	intra, inter int
	soft         Optional // 0, 1; unset
	optimizer    map[string]bool
	General      General
}

// General are the settings that may change at any time.
type General struct {
	LogPlacement          bool
	Synchronous           Optional // 0, 1; unset is synchronous
	RunFunctionsEagerly   bool
	OptimizerJIT          string // "" or autoclustering
	Determinism           bool   // enable_op_determinism
	TensorFloat32Disabled bool
}

// NewConfig is a fresh context's settings: everything visible, nothing set.
// The environment's CUDA_VISIBLE_DEVICES decides which GPUs there are.
func NewConfig(hw Hardware, env Env) *Config {
	hw.GPUs = CUDAVisible(hw.GPUs, env)
	c := &Config{hw: hw, env: env, growth: map[Physical]Growth{}, logical: map[Physical][]LogicalConfig{}, optimizer: map[string]bool{}}
	add := func(typ string, n int) {
		for i := range n {
			c.physical = append(c.physical, Physical{PhysicalName(typ, i), typ})
		}
	}
	add("CPU", 1)
	add("GPU", len(hw.GPUs))
	add("TPU", len(hw.TPUs))
	c.visible = slices.Clone(c.physical)
	return c
}

// Initialized says whether the devices were made.
func (c *Config) Initialized() bool { return c.assembly != nil }

// PhysicalDevices lists the machine's devices of a type, all for "": CPU,
// GPUs by driver order, then plugged devices. Invisible ones are listed, too.
func (c *Config) PhysicalDevices(typ string) []Physical { return ofType(c.physical, typ) }

// Visible lists what a program may see, in the order in which it was set.
func (c *Config) Visible(typ string) []Physical { return ofType(c.visible, typ) }

func ofType(list []Physical, typ string) []Physical {
	var out []Physical
	for _, p := range list {
		if typ == "" || p.Type == typ {
			out = append(out, p)
		}
	}
	return out
}

func (c *Config) check(setting string, p Physical) error {
	if slices.Contains(c.physical, p) {
		return nil
	}
	names := make([]string, len(c.physical))
	for i, q := range c.physical {
		names[i] = q.Name
	}
	return &Error{
		Kind: ValueError, Device: strconv.Quote(p.Name), Setting: setting, Cause: ErrUnknown,
		Message: "unrecognised device; there are " + strings.Join(names, ", "),
	}
}

// SetVisible lets the program see only these devices of a type, or with "" for
// the type only these devices at all, so that a list without the CPU hides it.
// ValueError: a device is unknown or of another type. RuntimeError: the
// devices are made and the list differs.
func (c *Config) SetVisible(typ string, devices ...Physical) error {
	const setting = "visible devices"
	for _, p := range devices {
		if err := c.check(setting, p); err != nil {
			return err
		}
		if typ != "" && p.Type != typ {
			return &Error{
				Kind: ValueError, Device: p.Name, Setting: setting, Cause: ErrUnknown,
				Message: "unrecognised device: its type is not " + typ,
			}
		}
	}
	var list []Physical
	if typ != "" {
		for _, p := range c.visible {
			if p.Type != typ {
				list = append(list, p)
			}
		}
	}
	list = append(list, devices...)
	if slices.Equal(list, c.visible) {
		return nil
	}
	if c.Initialized() {
		about := devices
		if len(about) == 0 {
			about = ofType(c.visible, typ)
		}
		return &Error{Kind: RuntimeError, Device: deviceNames(about), Setting: setting, Cause: ErrInitialized, Message: tooLate("visible devices cannot change")}
	}
	c.visible = list
	return nil
}

func deviceNames(devices []Physical) string {
	names := make([]string, len(devices))
	for i, p := range devices {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

func tooLate(what string) string {
	return what + " after initialisation: set it at the program's start, before the first op or list of logical devices"
}

// MemoryGrowth is the setting of a GPU. ValueError: unknown. KeyError: not a
// GPU.
func (c *Config) MemoryGrowth(p Physical) (Growth, error) {
	if err := c.check("memory growth", p); err != nil {
		return GrowthUnset, err
	}
	if p.Type != "GPU" {
		return GrowthUnset, &Error{Kind: KeyError, Device: p.Name, Setting: "memory growth", Message: "only GPUs have it"}
	}
	return c.growth[p], nil
}

// SetMemoryGrowth lets a GPU's pool grow as needed, or not. ValueError: the
// device is unknown, has logical devices, or is no GPU. RuntimeError: the
// devices are made and the value differs.
func (c *Config) SetMemoryGrowth(p Physical, on bool) error {
	const setting = "memory growth"
	if err := c.check(setting, p); err != nil {
		return err
	}
	value := GrowthOff
	if on {
		value = GrowthOn
	}
	_, cut := c.logical[p]
	switch {
	case cut:
		return &Error{
			Kind: ValueError, Device: p.Name, Setting: setting, Cause: ErrConflict,
			Message: "cannot be set when logical devices are configured: a limit and growth exclude each other",
		}
	case p.Type != "GPU":
		return &Error{Kind: ValueError, Device: p.Name, Setting: setting, Message: "can only be set for GPUs"}
	case c.growth[p] == value:
		return nil
	case c.Initialized():
		return &Error{Kind: RuntimeError, Device: p.Name, Setting: setting, Cause: ErrInitialized, Message: tooLate("physical devices cannot be modified")}
	}
	c.growth[p] = value
	return nil
}

// Logical is how a device is to be cut; ok is false when nothing was said.
// ValueError: unknown.
func (c *Config) Logical(p Physical) (list []LogicalConfig, ok bool, err error) {
	if err := c.check("logical devices", p); err != nil {
		return nil, false, err
	}
	list, ok = c.logical[p]
	return slices.Clone(list), ok, nil
}

// SetLogical cuts a device into logical ones. A growth set before is silently
// dropped, as TensorFlow does; an empty list for a GPU gives its default
// device. ValueError: the device is unknown or of a type that cannot be cut, a
// CPU is given more than its count, a GPU's entry lacks a limit.
// RuntimeError: the devices are made and the list differs.
func (c *Config) SetLogical(p Physical, list ...LogicalConfig) error {
	const setting = "logical devices"
	if err := c.check(setting, p); err != nil {
		return err
	}
	bad := func(message string) error {
		return &Error{Kind: ValueError, Device: p.Name, Setting: setting, Message: message}
	}
	for i, x := range list {
		switch {
		case p.Type == "CPU" && x.Limit != 0:
			return bad("a memory limit is not supported on CPUs")
		case p.Type == "CPU" && (x.Priority.Set || x.Ordinal.Set):
			return bad("priority and ordinal are not supported on CPUs")
		case p.Type == "GPU" && x.Limit == 0:
			return bad("entry " + strconv.Itoa(i) + " needs a memory limit")
		case p.Type == "GPU" && x.Limit < 0:
			return bad("entry " + strconv.Itoa(i) + ": a memory limit of " + decimal(x.Limit) + " bytes makes every allocation fail")
		}
	}
	old, ok := c.logical[p]
	switch {
	case p.Type != "CPU" && p.Type != "GPU":
		return bad("cannot be configured for " + p.Type + " devices")
	case ok && slices.Equal(old, list):
		return nil
	case c.Initialized():
		return &Error{Kind: RuntimeError, Device: p.Name, Setting: setting, Cause: ErrInitialized, Message: tooLate("virtual devices cannot be modified")}
	}
	c.logical[p] = slices.Clone(list)
	return nil
}

// SetLogicalCPUs cuts the CPU into n. RuntimeError: it is cut otherwise
// already, or the devices are made. ValueError: n is below 1.
func (c *Config) SetLogicalCPUs(n int) error {
	cpu := c.physical[0]
	if n < 1 {
		return &Error{Kind: ValueError, Device: cpu.Name, Setting: "logical CPUs", Message: strconv.Itoa(n) + " is less than 1"}
	}
	if old := len(c.logical[cpu]); old > 1 && old != n {
		return &Error{
			Kind: RuntimeError, Device: cpu.Name, Setting: "logical CPUs", Cause: ErrConflict,
			Message: fmt.Sprintf("are configured as %d already and cannot become %d", old, n),
		}
	}
	return c.SetLogical(cpu, make([]LogicalConfig, n)...)
}

// Details are what the driver says of a physical device; nothing for a CPU.
type Details struct {
	Name         string // device_name; "" for a CPU
	Major, Minor int    // compute capability of a GPU
}

// Details is get_device_details. ValueError: not a device of this machine.
func (c *Config) Details(p Physical) (Details, error) {
	if err := c.check("device details", p); err != nil {
		return Details{}, err
	}
	card := c.card(p)
	if card == nil {
		return Details{}, nil
	}
	return Details{card.Preset.Title, card.Preset.Major, card.Preset.Minor}, nil
}

// card is the card behind a physical device, nil for the CPU.
func (c *Config) card(p Physical) *Card {
	for i, q := range ofType(c.physical, p.Type) {
		switch {
		case q != p:
		case p.Type == "GPU":
			return c.hw.GPUs[i]
		case p.Type == "TPU":
			return c.hw.TPUs[i]
		}
	}
	return nil
}

// Threads are the numbers of threads; 0 is the system's choice.
func (c *Config) Threads() (intra, inter int) { return c.intra, c.inter }

// SetIntraOp sets the threads within an op. RuntimeError: the devices are made
// and the number differs.
func (c *Config) SetIntraOp(n int) error {
	return c.setThreads("intra-op parallelism threads", &c.intra, n)
}

// SetInterOp sets the threads between ops, as SetIntraOp.
func (c *Config) SetInterOp(n int) error {
	return c.setThreads("inter-op parallelism threads", &c.inter, n)
}

func (c *Config) setThreads(setting string, at *int, n int) error {
	switch {
	case n < 0:
		return &Error{Kind: ValueError, Setting: setting, Message: strconv.Itoa(n) + " is negative; 0 lets the system choose"}
	case *at == n:
		return nil
	case c.Initialized():
		return &Error{Kind: RuntimeError, Setting: setting, Cause: ErrInitialized, Message: tooLate("cannot be changed")}
	}
	*at = n
	return nil
}

// SoftPlacement says whether an op may run elsewhere than asked; v1 is a graph
// of TensorFlow 1, the only place where the default is off.
func (c *Config) SoftPlacement(v1 bool) bool {
	if c.soft.Set {
		return c.soft.Value != 0
	}
	return !v1
}

// SetSoftPlacement may be called at any time and counts for later ops.
func (c *Config) SetSoftPlacement(on bool) {
	c.soft = Some(0)
	if on {
		c.soft = Some(1)
	}
}

// optimizerKeys are the graph optimizer's switches.
var optimizerKeys = []string{
	"layout_optimizer", "constant_folding", "shape_optimization", "remapping", "arithmetic_optimization",
	"dependency_optimization", "loop_optimization", "function_optimization", "debug_stripper", "disable_model_pruning",
	"scoped_allocator_optimization", "pin_to_host_optimization", "implementation_selector", "auto_mixed_precision",
	"disable_meta_optimizer", "min_graph_nodes", "auto_parallel",
}

// SetOptimizer merges switches of the graph optimizer into those set; keys it
// does not know are ignored, as TensorFlow ignores them.
func (c *Config) SetOptimizer(options map[string]bool) {
	for _, k := range optimizerKeys {
		if v, ok := options[k]; ok {
			c.optimizer[k] = v
		}
	}
}

// Optimizer is a copy of the switches that were set.
func (c *Config) Optimizer() map[string]bool { return maps.Clone(c.optimizer) }

// SetOptimizerJIT switches clustering for XLA: "" is off. ValueError: another
// word.
func (c *Config) SetOptimizerJIT(mode string) error {
	switch mode {
	case "", "autoclustering":
		c.General.OptimizerJIT = mode
		return nil
	}
	return &Error{Kind: ValueError, Setting: "optimizer jit", Message: strconv.Quote(mode) + ` is neither "" nor "autoclustering"`}
}

// Import takes the settings of a ConfigProto that a program starts with:
// several CPUs become logical ones, the visible list and the count of GPUs the
// visible devices. Without GPUs the part about them is ignored. ValueError: an
// index names no GPU.
func (c *Config) Import(o Options) error {
	if o.CPUs > 1 {
		if err := c.SetLogicalCPUs(o.CPUs); err != nil {
			return err
		}
	}
	c.Options = o
	all := c.PhysicalDevices("GPU")
	if len(all) == 0 {
		return nil
	}
	gpus := all
	if o.VisibleDeviceList != "" {
		gpus = nil
		for part := range strings.SplitSeq(o.VisibleDeviceList, ",") {
			i, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || i < 0 || i >= len(all) {
				return &Error{
					Kind: ValueError, Device: strconv.Quote(part), Setting: "visible_device_list " + strconv.Quote(o.VisibleDeviceList), Cause: ErrUnknown,
					Message: fmt.Sprintf("names no GPU: there are %d, counted from 0", len(all)),
				}
			}
			gpus = append(gpus, all[i])
		}
	}
	if o.GPUs.Set && o.GPUs.Value < len(gpus) {
		gpus = gpus[:max(0, o.GPUs.Value)]
	}
	return c.SetVisible("GPU", gpus...)
}
