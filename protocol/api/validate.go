package api

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on a workload. They keep a mistyped number from asking for hours of
// work or for all memory of the machine that models it.
const (
	MaxBatch    = 1 << 16
	MaxSteps    = 10_000_000
	MaxListed   = 256 // devices, rules, entries of a list
	MaxShuffle  = 1 << 24
	MaxPrefetch = 4096
	MaxParallel = 1024
	MaxName     = 200 // bytes
	MaxImage    = 4096
	MaxSequence = 1 << 16
	MaxVirtual  = 16
	MaxElements = 1 << 30 // that take and skip name
	MaxFraction = 64
	// MaxMicrobatches keeps the step's program, which has each part, small.
	MaxMicrobatches = 64
)

// Known is what the program that runs a workload offers: names that this
// package cannot know. An empty list is not checked against.
type Known struct {
	Presets []string // of accelerators
	Models  []string
	// Allocators are the names that devices' allocators have.
	Allocators []string
	// Unlisted are presets that may be asked for, but that complaints do not
	// list: cards that may or may not be there when the workload runs.
	Unlisted []string
	// More finds what only that program can tell, such as an image of a size
	// that the model does not take; nil finds nothing.
	More func(w *Workload) Problems
}

// Validate returns everything wrong with a workload that can be told before it
// runs. Fields left out are well: they mean their default.
func (w *Workload) Validate(known Known) Problems {
	var p Problems
	w.validateRun(&p, known)
	w.validateInput(&p)
	for i := range w.Devices {
		w.Devices[i].validate(&p, "devices."+itoa(i), known)
	}
	w.validateTogether(&p)
	for i := range w.Placement.Rules {
		w.validateRule(&p, i)
	}
	if known.More != nil {
		p = append(p, known.More(w)...)
	}
	return p
}

func (w *Workload) validateRun(p *Problems, known Known) {
	validateName(p, "name", w.Name)
	switch {
	case w.Model == "":
		p.add("model", "missing: say what to run, one of ", strings.Join(known.Models, ", "))
	case len(known.Models) > 0 && !slices.Contains(known.Models, w.Model):
		p.add("model", unknown("model", w.Model, known.Models))
	}
	choice(p, "mode", string(w.Mode), string(Eager), string(Graph), string(Planned))
	if t := w.Train; t != nil {
		t.validate(p)
		if w.Precision != "" {
			p.add("precision", "precision is that of inference: with train, write train: {precision: float32}")
		}
	}
	choice(p, "precision", w.Precision, "float32", "float64", "float16", "bfloat16")
	allWithin(p, "batch", " samples are impossible: expected 1 to ", w.Batch, MaxBatch)
	w.validateMicrobatches(p)
	allWithin(p, "image", " pixels are impossible: expected 1 to ", w.Image, MaxImage)
	allWithin(p, "sequence", " tokens are impossible: expected 1 to ", w.Sequence, MaxSequence)
	within(p, "steps", w.Steps, 0, MaxSteps)
	w.validateExecution(p)
}

// validateExecution checks what only some modes know.
func (w *Workload) validateExecution(p *Problems) {
	if w.Optimize != nil && *w.Optimize && w.Mode == Eager {
		p.add("optimize", "eager execution has no graph to rewrite: write mode: graph, or remove optimize")
	}
	for _, k := range w.Keep {
		if k == "" || strings.ContainsAny(k, " \t\n\r[]") {
			p.add("keep", quote(k), ` is no pattern of op names: write one such as "*/Relu"`)
		}
	}
	choice(p, "copy_policy", string(w.CopyPolicy), string(CopySilent), string(CopySilentForInt32), string(CopyWarn), string(CopyExplicit))
	if w.CopyPolicy != "" && w.CopyPolicy != CopySilent && (w.Mode == Graph || w.Mode == Planned || w.Mode == "") {
		p.add("copy_policy", "only eager execution has a copy policy: a graph copies by send and receive. Write mode: eager, or remove copy_policy")
	}
	w.validateEnv(p)
	w.validateRuntime(p)
}

// validateMicrobatches checks that every batch can be cut.
func (w *Workload) validateMicrobatches(p *Problems) {
	if w.Train == nil || w.Train.Microbatches == 0 {
		return
	}
	k := w.Train.Microbatches
	within(p, "train.microbatches", k, 0, MaxMicrobatches)
	batches := w.Batch
	if len(batches) == 0 {
		batches = []int{DefaultBatch}
	}
	for _, b := range batches {
		if k > 0 && b%k != 0 {
			p.add("train.microbatches", "a batch of ", itoa(b), " cannot be cut in ", itoa(k), " equal parts: choose a batch that is a multiple of it")
			return
		}
	}
}

// EnvNames are the environment variables that a workload can set.
var EnvNames = []string{
	"CUDA_VISIBLE_DEVICES", "TF_CUDNN_USE_AUTOTUNE", "TF_CUDNN_WORKSPACE_LIMIT_IN_MB", "TF_DEVICE_MIN_SYS_MEMORY_IN_MB", "TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING",
	"TF_ENABLE_GPU_GARBAGE_COLLECTION", "TF_FORCE_GPU_ALLOW_GROWTH", "TF_FORCE_UNIFIED_MEMORY", "TF_GPU_HOST_MEM_LIMIT_IN_MB",
	"XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE",
}

func (w *Workload) validateEnv(p *Problems) {
	seen := make(map[string]bool, len(w.Env))
	for _, e := range w.Env {
		name, value, ok := strings.Cut(e, "=")
		switch {
		case !ok || name == "":
			p.add("env", quote(e), " is not NAME=VALUE")
		case !slices.Contains(EnvNames, name):
			p.add("env", unknown("environment variable", name, EnvNames))
		case seen[name]:
			p.add("env", name, " is set twice: keep one")
		case strings.ContainsAny(value, " \t\n\r[]"):
			p.add("env", quote(e), " has a value with blanks or brackets, which none of these variables takes")
		}
		seen[name] = true
	}
}

func (t *Train) validate(p *Problems) {
	choice(p, "train.optimizer", t.Optimizer, "sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw", "amsgrad")
	positive(p, "train.learning_rate", t.LearningRate, "0.01")
	choice(p, "train.precision", t.Precision, "float32", "float64", "mixed_float16", "mixed_bfloat16")
	t.validateOptimizer(p)
	if _, _, err := t.Kept(); err != nil {
		choice(p, "train.checkpoint", t.Checkpoint, "none", "sqrt", "selective", "or a number k: every k-th block", "or a size that the modelled peak stays within, such as 4GiB")
	}
	choice(p, "train.swap", t.Swap, "none", "activations", "auto")
	positive(p, "train.clip", t.Clip, "1.0")
}

// validateOptimizer checks what only some optimizers have.
func (t *Train) validateOptimizer(p *Problems) {
	is := func(names ...string) bool { return slices.Contains(names, t.Optimizer) }
	positive(p, "train.momentum", t.Momentum, "0.9")
	if t.Momentum > 1 {
		p.add("train.momentum", formatFloat(t.Momentum), " is impossible: expected a number above 0 and at most 1, such as 0.9")
	}
	if t.Momentum != 0 && !is("momentum", "rmsprop") {
		p.add("train.momentum", "only momentum and rmsprop have it: write optimizer: momentum, or remove momentum")
	}
	if t.Nesterov && !is("momentum") {
		p.add("train.nesterov", "only momentum looks ahead: write optimizer: momentum, or remove nesterov")
	}
	if t.Centered && !is("rmsprop") {
		p.add("train.centered", "only rmsprop keeps the mean gradient: write optimizer: rmsprop, or remove centered")
	}
}

// Kept is what Checkpoint says where it is no word: every k-th block is kept, or
// what keeps the modelled peak within so many bytes. A size has a unit.
func (t *Train) Kept() (every int, within int64, err error) {
	switch t.Checkpoint {
	case "", "none", "sqrt", "selective":
		return 0, 0, nil
	}
	if strings.ContainsFunc(t.Checkpoint, unicode.IsLetter) {
		within, err = parseSize(t.Checkpoint, 1)
		return 0, within, err
	}
	every, err = parseCount(t.Checkpoint, 1)
	return every, 0, err
}

// validateRuntime checks the switches that only some runs know.
func (w *Workload) validateRuntime(p *Problems) {
	r := &w.Runtime
	for _, x := range []struct {
		name string
		on   bool
	}{{"async", r.Async}, {"free_tape_gradually", r.FreeTapeGradually}} {
		if x.on && w.Mode != Eager {
			p.add("runtime."+x.name, "only eager execution has it: write mode: eager, or remove ", x.name)
		}
	}
	for _, x := range []struct {
		name  string
		bytes int64
	}{{"deferred_deletion", r.DeferredDeletion}, {"workspace_limit", r.WorkspaceLimit}} {
		if x.bytes < 0 {
			p.add("runtime."+x.name, strconv.FormatInt(x.bytes, 10), " bytes are impossible: leave it out for TensorFlow's way")
		}
	}
	const limit, tune = "TF_CUDNN_WORKSPACE_LIMIT_IN_MB", "TF_CUDNN_USE_AUTOTUNE"
	if _, set := w.Variable(limit); set && r.WorkspaceLimit != 0 {
		p.add("runtime.workspace_limit", "the environment variable ", limit, " says it already: keep one of the two")
	}
	if v, set := w.Variable(tune); set && v == "0" && r.Autotune {
		p.add("runtime.autotune", "the environment variable ", tune, "=0 says the opposite: keep one of the two")
	}
	for i := range w.Devices {
		if d := &w.Devices[i]; r.TimestampedAllocator && !d.Hidden && (d.Type() != "GPU" || d.Allocator != "" && d.Allocator != DefaultAllocator) {
			p.add("runtime.timestamped_allocator", "only bfc knows timestamps, and device ", itoa(i), " has another allocator: remove one of the two")
		}
	}
}

func positive(p *Problems, path string, f float64, example string) {
	if f < 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		p.add(path, formatFloat(f), " is impossible: expected a number above 0, such as ", example)
	}
}

func allWithin(p *Problems, path, message string, list []int, most int) {
	for _, n := range list {
		if n < 1 || n > most {
			p.add(path, itoa(n), message, itoa(most))
		}
	}
}

func (w *Workload) validateInput(p *Problems) {
	in := &w.Input
	choice(p, "input.source", in.Source, "digits", "text", "synthetic")
	notNegative(p, "input.open_cost", in.OpenCost)
	notNegative(p, "input.fetch_cost", in.FetchCost)
	within(p, "input.skip", in.Skip, 0, MaxElements)
	within(p, "input.take", in.Take, 0, MaxElements)
	within(p, "input.interleave.cycle", in.Interleave.Cycle, 0, MaxParallel)
	within(p, "input.interleave.block", in.Interleave.Block, 0, MaxShuffle)
	within(p, "input.interleave.parallel", in.Interleave.Parallel, 0, MaxParallel)
	switch i := in.Interleave; {
	case i.Cycle == 0 && (i.Block != 0 || i.Parallel != 0):
		p.add("input.interleave.cycle", "missing: say how many files are open at a time")
	case i.Parallel > i.Cycle:
		p.add("input.interleave.parallel", itoa(i.Parallel), " calls are more than the ", itoa(i.Cycle), " files of the cycle: TensorFlow answers InvalidArgument")
	}
	within(p, "input.map.parallel", in.Map.Parallel, Auto, MaxParallel)
	notNegative(p, "input.map.cost", in.Map.Cost)
	within(p, "input.shuffle", in.Shuffle, 0, MaxShuffle)
	within(p, "input.repeat", in.Repeat, 0, MaxSteps)
	within(p, "input.prefetch", in.Prefetch, Auto, MaxPrefetch)
	within(p, "input.prefetch_to_device", in.PrefetchToDevice, 0, MaxPrefetch)
	if in.PrefetchToDevice > 0 && w.Accelerators() == 0 {
		p.add("input.prefetch_to_device", "there is no accelerator to prefetch to: add a device, or remove it")
	}
	if in.RAMBudget < 0 {
		p.add("input.ram_budget", strconv.FormatInt(in.RAMBudget, 10), " bytes are impossible: leave it out for no limit")
	}
}

func notNegative(p *Problems, path string, nanos int64) {
	if nanos < 0 {
		p.add(path, strconv.FormatInt(nanos, 10), " ns is impossible: a duration is at least 0s")
	}
}

func (d *Device) validate(p *Problems, path string, known Known) {
	at := func(name string) string { return path + "." + name }
	choice(p, at("kind"), d.Kind, "gpu", "tpu")
	switch {
	case d.Preset == "":
		p.add(at("preset"), "missing: say which device, one of ", strings.Join(known.Presets, ", "))
	case len(known.Presets) > 0 && !slices.Contains(known.Presets, d.Preset) && !slices.Contains(known.Unlisted, d.Preset):
		p.add(at("preset"), unknown("device preset", d.Preset, known.Presets))
	}
	d.validateKind(p, at("kind"), known)
	validateName(p, at("card"), d.Card)
	if len(known.Allocators) > 0 {
		choice(p, at("allocator"), d.Allocator, known.Allocators...)
	}
	for _, o := range d.AllocatorOptions {
		if len(known.Allocators) > 0 && known.More != nil {
			break // which knows the options, and says more
		}
		if name, _, ok := strings.Cut(o, "="); !ok || name == "" || strings.ContainsAny(o, " \t\r\n") {
			p.add(at("allocator_options"), quote(o), " is not NAME=VALUE without blanks")
		}
	}
	if d.Held < 0 {
		p.add(at("held"), strconv.FormatInt(d.Held, 10), " bytes are impossible: other processes hold 0 or more")
	}
	if d.MemoryLimit < 0 {
		p.add(at("memory_limit"), strconv.FormatInt(d.MemoryLimit, 10), " bytes are impossible: leave it out for no limit")
	}
	for _, l := range d.Logical {
		if l <= 0 {
			p.add(at("logical"), strconv.FormatInt(l, 10), " bytes are impossible: each logical device needs a size, such as 1GiB")
		}
	}
	within(p, at("virtual"), d.Virtual, 0, MaxVirtual)
	if d.Fraction < 0 || d.Fraction > MaxFraction || math.IsNaN(d.Fraction) {
		p.add(at("fraction"), formatFloat(d.Fraction), " is impossible: expected a part of the card's memory, such as 0.5")
	}
	choice(p, at("reserve_rule"), d.ReserveRule, "current", "tf2.1")
	choice(p, at("peer"), d.Peer, "nvlink", "pcie")
	d.validateConflicts(p, at)
	d.validateParts(p, at)
}

// validateKind holds a kind that is given to the preset's.
func (d *Device) validateKind(p *Problems, path string, known Known) {
	if d.Kind != "gpu" && d.Kind != "tpu" || d.Kind == kindOf(d.Preset) || !slices.Contains(known.Presets, d.Preset) {
		return
	}
	p.add(path, d.Preset, " is a ", strings.ToUpper(kindOf(d.Preset)), ": set kind to ", kindOf(d.Preset), ", or leave it out")
}

// validateParts checks the ways to share a card out against each other.
func (d *Device) validateParts(p *Problems, at func(string) string) {
	limited := ""
	switch {
	case len(d.Logical) > 0:
		limited = "logical"
	case d.MemoryLimit != 0:
		limited = "memory_limit"
	}
	if limited != "" && d.Fraction != 0 {
		p.add(at("fraction"), "fraction and ", limited, " exclude each other: TensorFlow answers InvalidArgument to a fraction together with virtual devices. Remove one of the two")
	}
	if limited != "" && d.Virtual > 1 {
		p.add(at("virtual"), "virtual and ", limited, " exclude each other: write the sizes as logical: [1GiB, 1GiB], or virtual: 2 for equal parts")
	}
	if d.Type() != "TPU" {
		return
	}
	for _, x := range []struct {
		name string
		set  bool
	}{
		{"growth", d.Growth},
		{"memory_limit", d.MemoryLimit != 0},
		{"logical", len(d.Logical) > 0},
		{"virtual", d.Virtual > 1},
		{"fraction", d.Fraction != 0},
		{"unified", d.Unified},
		{"reserve_rule", d.ReserveRule != "" && d.ReserveRule != DefaultReserve},
		{"allocator", d.Allocator != ""},
		{"allocator_options", len(d.AllocatorOptions) > 0 && d.Allocator == ""}, // one mistake, told once
	} {
		switch {
		case !x.set:
		case strings.HasPrefix(x.name, "allocator"):
			p.add(at(x.name), x.name, " is for GPUs: a TPU's memory has an allocator of its own. Remove it")
		default:
			p.add(at(x.name), x.name, " is for GPUs: TensorFlow answers ValueError for another kind of device. Remove it")
		}
	}
}

func (d *Device) validateConflicts(p *Problems, at func(string) string) {
	switch {
	case d.Growth && len(d.Logical) > 0:
		p.add(at("growth"), "growth and logical exclude each other: TensorFlow refuses memory growth on a device with logical devices (ValueError) and drops it silently when logical devices come later. Remove one of the two")
	case d.Growth && d.MemoryLimit != 0:
		p.add(at("growth"), "growth and memory_limit exclude each other: a limit makes one logical device in TensorFlow, which refuses memory growth then (ValueError) or drops it silently when the limit comes later. Remove one of the two")
	}
	if d.MemoryLimit != 0 && len(d.Logical) > 0 {
		p.add(at("memory_limit"), "memory_limit and logical exclude each other: a limit is a single logical device. Keep logical: [", formatBytes(d.MemoryLimit), "] or the list")
	}
}

// validateTogether checks what TensorFlow checks across devices when it
// initialises.
func (w *Workload) validateTogether(p *Problems) {
	cards := make(map[string]int, len(w.Devices))
	logicalAt, first := -1, -1
	for i := range w.Devices {
		d := &w.Devices[i]
		if first < 0 && d.Type() == "GPU" && !d.Hidden {
			first = i
		}
		if d.Hidden {
			// Set, but never looked at; the card is still a card.
		} else if d.MemoryLimit != 0 || len(d.Logical) > 0 {
			logicalAt = i
		}
		if d.Card == "" {
			continue
		}
		if j, taken := cards[d.Card]; taken {
			p.add("devices."+itoa(i)+".card", "card ", quote(d.Card), " is device ", itoa(j), " already: one program sees a card once. For several devices on one card write logical: [1GiB, 1GiB]")
		}
		cards[d.Card] = i
	}
	for i := range w.Devices {
		d := &w.Devices[i]
		if d.Hidden || d.Type() != "GPU" {
			continue // growth is compared among visible GPUs only
		}
		path := "devices." + itoa(i)
		switch {
		case logicalAt >= 0 && logicalAt != i && d.Growth && d.MemoryLimit == 0 && len(d.Logical) == 0:
			p.add(path+".growth", "growth has no effect: TensorFlow sets it for no device once one of them (device ", itoa(logicalAt), ") has memory_limit or logical. Remove growth here, or the limit there")
		case logicalAt < 0 && d.Growth != w.Devices[first].Growth:
			p.add(path+".growth", "growth cannot differ between devices: TensorFlow answers \"Memory growth cannot differ between GPU devices\" (ValueError). Set it on all or on none")
		}
		w.Devices[first].sameProcess(p, d, path)
	}
}

// sameProcess checks what TensorFlow has once for a process.
func (d *Device) sameProcess(p *Problems, other *Device, path string) {
	rule := func(d *Device) string {
		if d.ReserveRule == "" {
			return DefaultReserve
		}
		return d.ReserveRule
	}
	for _, x := range []struct {
		name string
		same bool
	}{
		{"fraction", d.Fraction == other.Fraction},
		{"unified", d.Unified == other.Unified},
		{"virtual", max(1, d.Virtual) == max(1, other.Virtual)},
		{"reserve_rule", rule(d) == rule(other)},
		{"peer", d.Peer == other.Peer},
	} {
		if !x.same {
			p.add(path+"."+x.name, x.name, " cannot differ between devices: TensorFlow has one for the process. Write the same on all")
		}
	}
}

func (w *Workload) validateRule(p *Problems, i int) {
	r, path := &w.Placement.Rules[i], "placement.rules."+itoa(i)
	if r.Match == "" {
		p.add(path+".match", `missing: a pattern of op names, such as "conv2/*"`)
	}
	if r.Device == "" {
		p.add(path+".device", "missing: expected one of ", w.deviceList())
		return
	}
	kind, id, ok := parseDevice(r.Device)
	switch {
	case !ok:
		p.add(path+".device", quote(r.Device), " is not a device name: expected one of ", w.deviceList())
	case kind == "CPU" && id <= 0, kind == "":
	case kind != "CPU" && id < w.accelerators(kind) && w.accelerators(kind) > 0:
	default:
		p.add(path+".device", quote(r.Device), " does not exist here: this workload has ", w.deviceList())
	}
	for j := range i {
		// The later rule would never be looked at.
		if o := &w.Placement.Rules[j]; o.Match == r.Match && r.Match != "" && o.Device != r.Device {
			p.add(path+".match", quote(r.Match), " is on ", quote(o.Device), " by rule ", itoa(j), " already: two rules for the same ops disagree. Remove one of the two")
			break
		}
	}
}

// deviceList names the devices that a rule can name.
func (w *Workload) deviceList() string {
	list := []string{"/CPU:0"}
	for _, typ := range []string{"GPU", "TPU"} {
		for i := range w.accelerators(typ) {
			list = append(list, "/"+typ+":"+itoa(i))
		}
	}
	return strings.Join(list, ", ")
}

// parseDevice reads the kind and number out of a device name or part of one:
// "/GPU:1", "/device:GPU:1", "/job:localhost/replica:0/task:0/device:CPU:0". A
// number left out or given as * is -1; so is the kind left out "".
func parseDevice(name string) (kind string, id int, ok bool) {
	id = -1
	for part := range strings.SplitSeq(strings.TrimPrefix(name, "/"), "/") {
		f := strings.Split(part, ":")
		if strings.EqualFold(f[0], "device") {
			f = f[1:]
		}
		switch {
		case len(f) == 2 && (f[0] == "replica" || f[0] == "task"):
			if f[1] != "0" && f[1] != "*" {
				return "", 0, false
			}
			continue
		case len(f) == 2 && f[0] == "job":
			if f[1] != "localhost" && f[1] != "*" {
				return "", 0, false
			}
			continue
		case len(f) == 0 || len(f) > 2 || kind != "":
			return "", 0, false
		}
		kind = strings.ToUpper(f[0])
		if kind != "CPU" && kind != "GPU" && kind != "TPU" {
			return "", 0, false
		}
		if len(f) == 2 && f[1] != "*" {
			n, err := strconv.ParseUint(f[1], 10, 16)
			if err != nil {
				return "", 0, false
			}
			id = int(n)
		}
	}
	return kind, id, true
}

func choice(p *Problems, path, got string, known ...string) {
	if got != "" && !slices.Contains(known, got) {
		_, name, nested := cutLast(path)
		if !nested {
			name = path
		}
		p.add(path, unknown(name, got, known))
	}
}

func cutLast(path string) (before, after string, found bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return path, "", false
	}
	return path[:i], path[i+1:], true
}

func within(p *Problems, path string, n, least, most int) {
	if n < least || n > most {
		p.add(path, itoa(n), " is impossible: expected ", itoa(max(0, least)), " to ", itoa(most))
	}
}

// validateName keeps what people see and what goes into files printable.
func validateName(p *Problems, path, name string) {
	if len(name) > MaxName {
		p.add(path, itoa(len(name)), " bytes are too long: expected at most ", itoa(MaxName))
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		p.add(path, quote(name), " has characters that cannot be printed")
	}
}
