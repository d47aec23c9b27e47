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
)

// Known is what the program that runs a workload offers: names that this
// package cannot know. An empty list is not checked against.
type Known struct {
	Presets []string // of accelerators
	Models  []string
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
	choice(p, "mode", string(w.Mode), string(Eager), string(Graph))
	if t := w.Train; t != nil {
		choice(p, "train.optimizer", t.Optimizer, "sgd", "adam")
		if t.LearningRate < 0 || math.IsNaN(t.LearningRate) || math.IsInf(t.LearningRate, 0) {
			p.add("train.learning_rate", formatFloat(t.LearningRate), " is impossible: expected a number above 0, such as 0.01")
		}
		choice(p, "train.precision", t.Precision, "float32")
	}
	for _, b := range w.Batch {
		if b < 1 || b > MaxBatch {
			p.add("batch", itoa(b), " samples are impossible: expected 1 to ", itoa(MaxBatch))
		}
	}
	within(p, "steps", w.Steps, 0, MaxSteps)
}

func (w *Workload) validateInput(p *Problems) {
	in := &w.Input
	choice(p, "input.source", in.Source, "digits", "synthetic")
	within(p, "input.map.parallel", in.Map.Parallel, 0, MaxParallel)
	if in.Map.Cost < 0 {
		p.add("input.map.cost", strconv.FormatInt(in.Map.Cost, 10), " ns is impossible: a duration is at least 0s")
	}
	within(p, "input.shuffle", in.Shuffle, 0, MaxShuffle)
	within(p, "input.prefetch", in.Prefetch, Auto, MaxPrefetch)
}

func (d *Device) validate(p *Problems, path string, known Known) {
	at := func(name string) string { return path + "." + name }
	choice(p, at("kind"), d.Kind, "gpu")
	switch {
	case d.Preset == "":
		p.add(at("preset"), "missing: say which device, one of ", strings.Join(known.Presets, ", "))
	case len(known.Presets) > 0 && !slices.Contains(known.Presets, d.Preset):
		p.add(at("preset"), unknown("device preset", d.Preset, known.Presets))
	}
	validateName(p, at("card"), d.Card)
	choice(p, at("allocator"), d.Allocator, "bfc")
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
	d.validateConflicts(p, at)
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
	logicalAt := -1
	for i := range w.Devices {
		d := &w.Devices[i]
		if d.MemoryLimit != 0 || len(d.Logical) > 0 {
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
		path := "devices." + itoa(i) + ".growth"
		switch {
		case logicalAt >= 0 && logicalAt != i && d.Growth && d.MemoryLimit == 0 && len(d.Logical) == 0:
			p.add(path, "growth has no effect: TensorFlow sets it for no device once one of them (device ", itoa(logicalAt), ") has memory_limit or logical. Remove growth here, or the limit there")
		case logicalAt < 0 && d.Growth != w.Devices[0].Growth:
			p.add(path, "growth cannot differ between devices: TensorFlow answers \"Memory growth cannot differ between GPU devices\" (ValueError). Set it on all or on none")
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
	case kind == "CPU" && id <= 0, kind == "GPU" && id < w.Accelerators() && w.Accelerators() > 0, kind == "":
	default:
		p.add(path+".device", quote(r.Device), " does not exist here: this workload has ", w.deviceList())
	}
}

// deviceList names the devices that a rule can name.
func (w *Workload) deviceList() string {
	list := []string{"/CPU:0"}
	for i := range w.Accelerators() {
		list = append(list, "/GPU:"+itoa(i))
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
		if kind != "CPU" && kind != "GPU" {
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
