package api

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/protocol/nearest"
)

// field is one named value of a T. Its get returns "" for a value that means
// the default.
type field[T any] struct {
	name string
	get  func(*T) string
	set  func(*T, string) error
}

// text is a field that is a string as it stands.
func text[T any](name string, at func(*T) *string) field[T] {
	return field[T]{
		name, func(t *T) string { return *at(t) },
		func(t *T, v string) error { *at(t) = v; return nil },
	}
}

// count is a whole number of at least least, of which zero is the default.
func count[T any](name string, least int, at func(*T) *int) field[T] {
	return field[T]{
		name, func(t *T) string { return formatInt(*at(t)) },
		func(t *T, v string) (err error) { return assign(at(t))(parseCount(v, least)) },
	}
}

// size is a number of bytes of at least least, of which zero is the default.
func size[T any](name string, least int64, at func(*T) *int64) field[T] {
	return field[T]{
		name, func(t *T) string { return formatSize(*at(t)) },
		func(t *T, v string) error { return assign(at(t))(parseSize(v, least)) },
	}
}

// sides is a list of whole numbers of at least 1; an empty one is refused.
func sides[T any](name, what string, at func(*T) *[]int) field[T] {
	return field[T]{
		name, func(t *T) string { return formatList(*at(t), strconv.Itoa) },
		func(t *T, v string) error {
			list, err := parseList(v, func(s string) (int, error) { return parseCount(s, 1) })
			if err == nil && len(list) == 0 {
				err = errors.New("an empty list: write the " + what)
			}
			return assign(at(t))(list, err)
		},
	}
}

// words is a list of words.
func words[T any](name string, at func(*T) *[]string) field[T] {
	return field[T]{
		name, func(t *T) string { return strings.Join(*at(t), " ") },
		func(t *T, v string) error { return assign(at(t))(parseWords(v, false)) },
	}
}

// settings is a list of name=value, in whose values brackets may stand.
func settings[T any](name string, at func(*T) *[]string) field[T] {
	f := words(name, at)
	f.set = func(t *T, v string) error { return assign(at(t))(parseWords(v, true)) }
	return f
}

// duration is a time in nanoseconds, written with its unit.
func duration[T any](name string, at func(*T) *int64) field[T] {
	return field[T]{
		name, func(t *T) string { return formatDuration(*at(t)) },
		func(t *T, v string) error { return assign(at(t))(parseDuration(v)) },
	}
}

// flag is true or false, of which false is the default.
func flag[T any](name string, at func(*T) *bool) field[T] {
	return field[T]{
		name, func(t *T) string { return formatBool(*at(t)) },
		func(t *T, v string) error { return assign(at(t))(parseBool(v)) },
	}
}

// choice3 is true, false or not said.
func choice3[T any](name string, at func(*T) **bool) field[T] {
	return field[T]{
		name, func(t *T) string {
			if *at(t) == nil {
				return ""
			}
			return strconv.FormatBool(**at(t))
		},
		func(t *T, v string) error {
			on, err := parseBool(v)
			if err == nil {
				*at(t) = &on
			}
			return err
		},
	}
}

// number is a number above 0, of which zero is the default.
func number[T any](name string, at func(*T) *float64) field[T] {
	return field[T]{
		name, func(t *T) string { return formatFloat(*at(t)) },
		func(t *T, v string) error { return assign(at(t))(parseRate(v)) },
	}
}

// automatic is a count of at least least, or "auto".
func automatic[T any](name, what string, least int, at func(*T) *int) field[T] {
	return field[T]{
		name, func(t *T) string { return formatAuto(*at(t)) },
		func(t *T, v string) error { return assign(at(t))(parseAuto(v, what, least)) },
	}
}

// assign stores what was read unless reading failed.
func assign[V any](to *V) func(V, error) error {
	return func(v V, err error) error {
		if err == nil {
			*to = v
		}
		return err
	}
}

// plainFields are the fields of a workload with one value each. Their order is
// the order of the flat form and of problems.
var plainFields = []field[Workload]{
	text("name", func(w *Workload) *string { return &w.Name }),
	text("model", func(w *Workload) *string { return &w.Model }),
	{"mode", func(w *Workload) string { return string(w.Mode) }, func(w *Workload, v string) error { w.Mode = Mode(v); return nil }},
	{"train", func(w *Workload) string { return onlyOn(w.Train != nil) }, setTrain},
	text("precision", func(w *Workload) *string { return &w.Precision }),
	sides("batch", "samples per step, such as 32 or [32, 48]", func(w *Workload) *[]int { return &w.Batch }),
	sides("image", "side of the images in pixels, such as 224 or [512, 572]", func(w *Workload) *[]int { return &w.Image }),
	sides("sequence", "tokens per sample, such as 128 or [64, 128]", func(w *Workload) *[]int { return &w.Sequence }),
	count("steps", 1, func(w *Workload) *int { return &w.Steps }),
	{"seed", func(w *Workload) string { return formatSeed(w.Seed) }, func(w *Workload, v string) error { return assign(&w.Seed)(parseSeed(v)) }},
	choice3("optimize", func(w *Workload) **bool { return &w.Optimize }),
	flag("check_numerics", func(w *Workload) *bool { return &w.CheckNumerics }),
	words("keep", func(w *Workload) *[]string { return &w.Keep }),
	{"copy_policy", func(w *Workload) string { return string(w.CopyPolicy) }, func(w *Workload, v string) error { w.CopyPolicy = CopyPolicy(v); return nil }},
	words("env", func(w *Workload) *[]string { return &w.Env }),
	flag("runtime.async", func(w *Workload) *bool { return &w.Runtime.Async }),
	flag("runtime.free_tape_gradually", func(w *Workload) *bool { return &w.Runtime.FreeTapeGradually }),
	size("runtime.deferred_deletion", 1, func(w *Workload) *int64 { return &w.Runtime.DeferredDeletion }),
	flag("runtime.timestamped_allocator", func(w *Workload) *bool { return &w.Runtime.TimestampedAllocator }),
	flag("runtime.autotune", func(w *Workload) *bool { return &w.Runtime.Autotune }),
	size("runtime.workspace_limit", 1, func(w *Workload) *int64 { return &w.Runtime.WorkspaceLimit }),
	flag("runtime.force_gpu_compatible", func(w *Workload) *bool { return &w.Runtime.ForceGPUCompatible }),
	text("input.source", func(w *Workload) *string { return &w.Input.Source }),
	duration("input.open_cost", func(w *Workload) *int64 { return &w.Input.OpenCost }),
	duration("input.fetch_cost", func(w *Workload) *int64 { return &w.Input.FetchCost }),
	count("input.skip", 0, func(w *Workload) *int { return &w.Input.Skip }),
	count("input.take", 1, func(w *Workload) *int { return &w.Input.Take }),
	count("input.interleave.cycle", 1, func(w *Workload) *int { return &w.Input.Interleave.Cycle }),
	count("input.interleave.block", 1, func(w *Workload) *int { return &w.Input.Interleave.Block }),
	count("input.interleave.parallel", 1, func(w *Workload) *int { return &w.Input.Interleave.Parallel }),
	flag("input.cache", func(w *Workload) *bool { return &w.Input.Cache }),
	automatic("input.map.parallel", "calls", 1, func(w *Workload) *int { return &w.Input.Map.Parallel }),
	duration("input.map.cost", func(w *Workload) *int64 { return &w.Input.Map.Cost }),
	count("input.shuffle", 0, func(w *Workload) *int { return &w.Input.Shuffle }),
	count("input.repeat", 1, func(w *Workload) *int { return &w.Input.Repeat }),
	flag("input.drop_remainder", func(w *Workload) *bool { return &w.Input.DropRemainder }),
	automatic("input.prefetch", "batches", 0, func(w *Workload) *int { return &w.Input.Prefetch }),
	count("input.prefetch_to_device", 0, func(w *Workload) *int { return &w.Input.PrefetchToDevice }),
	size("input.ram_budget", 1, func(w *Workload) *int64 { return &w.Input.RAMBudget }),
	choice3("placement.soft", func(w *Workload) **bool { return &w.Placement.Soft }),
	flag("placement.log", func(w *Workload) *bool { return &w.Placement.Log }),
}

var trainFields = []field[Train]{
	text("optimizer", func(t *Train) *string { return &t.Optimizer }),
	number("learning_rate", func(t *Train) *float64 { return &t.LearningRate }),
	text("precision", func(t *Train) *string { return &t.Precision }),
	number("momentum", func(t *Train) *float64 { return &t.Momentum }),
	flag("nesterov", func(t *Train) *bool { return &t.Nesterov }),
	flag("centered", func(t *Train) *bool { return &t.Centered }),
	text("checkpoint", func(t *Train) *string { return &t.Checkpoint }),
	text("swap", func(t *Train) *string { return &t.Swap }),
	count("microbatches", 1, func(t *Train) *int { return &t.Microbatches }),
	number("clip", func(t *Train) *float64 { return &t.Clip }),
}

var deviceFields = []field[Device]{
	text("kind", func(d *Device) *string { return &d.Kind }),
	text("preset", func(d *Device) *string { return &d.Preset }),
	text("card", func(d *Device) *string { return &d.Card }),
	flag("hidden", func(d *Device) *bool { return &d.Hidden }),
	flag("growth", func(d *Device) *bool { return &d.Growth }),
	size("memory_limit", 1, func(d *Device) *int64 { return &d.MemoryLimit }),
	{
		"logical",
		func(d *Device) string { return formatList(d.Logical, formatBytes) },
		func(d *Device, v string) error {
			return assign(&d.Logical)(parseList(v, func(s string) (int64, error) { return parseSize(s, 1) }))
		},
	},
	count("virtual", 1, func(d *Device) *int { return &d.Virtual }),
	number("fraction", func(d *Device) *float64 { return &d.Fraction }),
	flag("unified", func(d *Device) *bool { return &d.Unified }),
	text("reserve_rule", func(d *Device) *string { return &d.ReserveRule }),
	text("peer", func(d *Device) *string { return &d.Peer }),
	size("held", 0, func(d *Device) *int64 { return &d.Held }),
	text("allocator", func(d *Device) *string { return &d.Allocator }),
	settings("allocator_options", func(d *Device) *[]string { return &d.AllocatorOptions }),
}

var ruleFields = []field[Rule]{
	text("match", func(r *Rule) *string { return &r.Match }),
	text("device", func(r *Rule) *string { return &r.Device }),
}

func onlyOn(b bool) string {
	if b {
		return "on"
	}
	return ""
}

// setTrain switches between training and inference as a whole.
func setTrain(w *Workload, v string) error {
	on, err := parseBool(v)
	switch {
	case err != nil:
		return errors.New(quote(v) + ` is neither on nor off: training has fields, such as {optimizer: adam}; leave it out for inference`)
	case !on:
		w.Train = nil
	case w.Train == nil:
		w.Train = new(Train)
	}
	return nil
}

func formatSeed(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func parseSeed(s string) (uint64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	if err != nil || n == 0 {
		return 0, errors.New(quote(s) + " is not a whole number of at least 1")
	}
	return n, nil
}

// Auto is the value of a count that the runtime chooses by itself.
const Auto = -1

func formatAuto(n int) string {
	if n == Auto {
		return "auto"
	}
	return formatInt(n)
}

func parseAuto(s, what string, least int) (int, error) {
	if strings.TrimSpace(s) == "auto" {
		return Auto, nil
	}
	n, err := parseCount(s, least)
	if err != nil {
		return 0, errors.New(quote(s) + " is neither a number of " + what + ` nor "auto"`)
	}
	return n, nil
}

// Fields is the flat form: one value per dotted path, in a fixed order,
// without the fields that mean their default. "train" is "on" when the
// workload trains.
func (w *Workload) Fields() event.Fields {
	var f event.Fields
	put := func(key, value string) {
		if value != "" {
			f = append(f, event.Field{Key: key, Value: value})
		}
	}
	// The order of plainFields, with the parts that repeat where YAML has them.
	for _, x := range plainFields {
		if x.name == "placement.soft" {
			w.putDevices(&f)
		}
		put(x.name, x.get(w))
		if x.name == "train" && w.Train != nil {
			for _, t := range trainFields {
				put("train."+t.name, t.get(w.Train))
			}
		}
	}
	for i := range w.Placement.Rules {
		for _, x := range ruleFields { // both, even empty: the rule must not vanish
			f = append(f, event.Field{Key: "placement.rules." + itoa(i) + "." + x.name, Value: x.get(&w.Placement.Rules[i])})
		}
	}
	return f
}

func (w *Workload) putDevices(f *event.Fields) {
	for i := range w.Devices {
		for k, x := range deviceFields {
			// The first field stands for the device itself.
			if v := x.get(&w.Devices[i]); v != "" || k == 0 {
				*f = append(*f, event.Field{Key: "devices." + itoa(i) + "." + x.name, Value: v})
			}
		}
	}
}

// FromFields reads a flat form. It is strict: a key that names no field, one
// that comes twice and a value that cannot be read are problems, returned
// together; it does not Validate.
func FromFields(f event.Fields) (*Workload, Problems) {
	w := new(Workload)
	var problems Problems
	seen := make(map[string]bool, len(f))
	for _, x := range f {
		if seen[x.Key] {
			problems.add(x.Key, "given twice: keep one")
			continue
		}
		seen[x.Key] = true
		if err := w.Set(x.Key, x.Value); err != nil {
			problems = append(problems, asProblem(x.Key, err))
		}
	}
	return w, problems
}

func asProblem(path string, err error) Problem {
	var p Problem
	if errors.As(err, (*problemError)(&p)) {
		return p
	}
	return Problem{Path: path, Message: err.Error()}
}

// problemError lets a Problem travel as an error.
type problemError Problem

func (p problemError) Error() string { return Problem(p).String() }

// Set changes one field by its dotted path, "devices.0.growth", from text as
// in the workload file. A path one past the last device or rule adds one;
// the value "none" removes what a path to a whole device or rule, or to all of
// them, names. The error says what would have been right; the workload is then
// unchanged.
func (w *Workload) Set(path, value string) error {
	if err := w.set(path, value); err != nil {
		return problemError{Path: path, Message: err.Error()}
	}
	return nil
}

func (w *Workload) set(path, value string) error {
	switch head, rest, _ := strings.Cut(path, "."); {
	case head == "devices":
		return w.setDevice(rest, value)
	case strings.HasPrefix(path, "placement.rules"):
		rest = strings.TrimPrefix(strings.TrimPrefix(path, "placement.rules"), ".")
		return setListed(&w.Placement.Rules, "rule", rest, value, ruleFields)
	case head == "train" && rest != "":
		t := new(Train)
		if w.Train != nil {
			*t = *w.Train
		}
		if err := setNamed(t, rest, value, trainFields); err != nil {
			return err
		}
		w.Train = t
		return nil
	}
	return setNamed(w, path, value, plainFields)
}

// setDevice sets one field of one device.
func (w *Workload) setDevice(path, value string) error {
	was := w.Devices
	if err := setListed(&w.Devices, "device", path, value, deviceFields); err != nil {
		return err
	}
	if number, name, _ := strings.Cut(path, "."); name == "preset" {
		if n, err := strconv.Atoi(number); err == nil && n < len(was) {
			w.Devices[n].follow(was[n])
		}
	}
	return nil
}

// setListed sets one field of one entry of a list.
func setListed[T any](list *[]T, what, path, value string, fields []field[T]) error {
	if path == "" {
		if value == "none" {
			*list = nil
			return nil
		}
		return errors.New("expected a list of " + what + `s, or "none"`)
	}
	number, name, whole := strings.Cut(path, ".")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return errors.New(quote(number) + " is not the number of a " + what + ": the first is 0")
	}
	if !whole && value == "none" && n < len(*list) {
		*list = slices.Delete(slices.Clone(*list), n, n+1)
		return nil
	}
	switch {
	case n > len(*list):
		return errors.New("there is no " + what + " " + itoa(n) + ": the next one would be number " + itoa(len(*list)))
	case n >= MaxListed:
		return errors.New("more than " + itoa(MaxListed) + " " + what + "s")
	case name == "":
		return errors.New("expected a " + what + " with fields: " + strings.Join(names(fields), ", "))
	}
	var entry T
	if n < len(*list) {
		entry = (*list)[n]
	}
	if err := setNamed(&entry, name, value, fields); err != nil {
		return err
	}
	// A copy, so that a workload cloned by value does not change with us.
	grown := append(slices.Clone((*list)[:n]), entry)
	if n+1 < len(*list) {
		grown = append(grown, (*list)[n+1:]...)
	}
	*list = grown
	return nil
}

func setNamed[T any](t *T, name, value string, fields []field[T]) error {
	for _, f := range fields {
		if f.name == name {
			return f.set(t, value)
		}
	}
	known := names(fields)
	if _, top := any(t).(*Workload); top {
		known = Paths()
	}
	return errors.New(unknownField(name, known))
}

func unknownField(name string, known []string) string {
	msg := "no field of this name"
	// A leaf that lives elsewhere ("optimizer") is the likeliest mistake.
	for _, k := range known {
		if strings.HasSuffix(k, "."+name) {
			return msg + ": did you mean " + quote(k) + "?"
		}
	}
	if n := nearest.Word(name, known); n != "" {
		return msg + ": did you mean " + quote(n) + "?"
	}
	return msg + ". Known: " + strings.Join(known, ", ")
}

func names[T any](fields []field[T]) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

// Paths lists every path that Set knows, with N for the number of a device or
// rule.
func Paths() []string {
	var out []string
	for _, f := range plainFields {
		if f.name == "placement.soft" {
			for _, d := range deviceFields {
				out = append(out, "devices.N."+d.name)
			}
		}
		out = append(out, f.name)
		if f.name == "train" {
			for _, t := range trainFields {
				out = append(out, "train."+t.name)
			}
		}
	}
	for _, r := range ruleFields {
		out = append(out, "placement.rules.N."+r.name)
	}
	return out
}
