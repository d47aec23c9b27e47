package finding

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// ID names a sort of finding; it is the key of the JSON report.
type ID string

// The sorts of finding.
const (
	OutOfMemory   ID = "out_of_memory"
	Leak          ID = "leak"
	InputBound    ID = "input_bound"
	Copies        ID = "copies"
	WastefulDType ID = "wasteful_dtype"
	Fragmentation ID = "fragmentation"
	Peak          ID = "peak"
	Diverged      ID = "diverged" // a number of the training is not finite
)

// Severity orders findings.
type Severity uint8

// The severities.
const (
	Note    Severity = iota // worth knowing
	Warning                 // costs memory or time
	Serious                 // ends the run, or takes a fifth of its time
)

// String is the severity's word.
func (s Severity) String() string {
	switch s {
	case Serious:
		return "serious"
	case Warning:
		return "warning"
	default:
		return "note"
	}
}

// Unit says what a Number counts.
type Unit uint8

// The units. Names of numbers end in them, but for counts.
const (
	Count       Unit = iota
	Bytes            // …_bytes
	Nanos            // …_ns
	BasisPoints      // …_percent; hundredths of a percent
)

// Number is one figure behind a finding.
type Number struct {
	Name  string
	Value int64
	Unit  Unit
}

// Change is a setting that may help, as a field of the workload and its value.
type Change struct{ Field, Value string }

// String is the change as --set takes it.
func (c Change) String() string { return c.Field + "=" + c.Value }

// Finding is one thing that stands out.
type Finding struct {
	ID       ID
	Kind     string // of an OutOfMemory: model, batch, dtype, leak, fragmentation, limit, other; of an InputBound: the verdict's word
	Title    string // a few words
	Severity Severity
	Device   string // /GPU:0; "" where no single one is meant
	Culprit  string // the op, stage or rule to blame; "" for none
	Text     []string
	Numbers  []Number
	Holders  []Holder // what holds the memory, the largest first
	Try      []Change // the cheapest first
}

// Holder is memory under one name.
type Holder struct {
	Name     string
	Category event.Category
	Bytes    int64
	Blocks   int64
}

// Number returns a figure by name; 0 when the finding has none of it.
func (f *Finding) Number(name string) int64 {
	for i := range f.Numbers {
		if f.Numbers[i].Name == name {
			return f.Numbers[i].Value
		}
	}
	return 0
}

func (f *Finding) put(name string, value int64, unit Unit) {
	f.Numbers = append(f.Numbers, Number{name, value, unit})
}

func (f *Finding) say(sentence string) { f.Text = append(f.Text, sentence) }

func (f *Finding) try(field, value string) { f.Try = append(f.Try, Change{field, value}) }

// Of lists what stands out in a timeline, the weightiest first.
func Of(tl *store.Timeline) []Finding {
	leaks := Leaks(tl)
	var list []Finding
	if f, ok := Failed(tl, leaks); ok {
		list = append(list, f)
	}
	list = append(list, NotFinite(tl)...)
	list = append(list, leaks...)
	list = append(list, Inputs(tl)...)
	list = append(list, HostCopies(tl)...)
	list = append(list, DTypes(tl)...)
	list = append(list, Fragmented(tl)...)
	if f, ok := Highest(tl); ok {
		list = append(list, f)
	}
	var out []Finding
	for sev := int(Serious); sev >= 0; sev-- {
		for i := range list {
			if int(list[i].Severity) == sev {
				out = append(out, list[i])
			}
		}
	}
	return out
}

// order is the places of n things, the greatest first; equals stay as they are.
// Numbers of places are sorted, as package store does: each type that is sorted
// by itself would make the browser's module larger.
func order(n int, weight func(i int) int64) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	slices.SortFunc(out, func(a, b int32) int {
		return cmp.Or(cmp.Compare(weight(int(b)), weight(int(a))), cmp.Compare(a, b))
	})
	return out
}

// short is a device's name as people write it.
func short(tl *store.Timeline, id event.DeviceID) string {
	name := tl.Device(id).Name
	if i := strings.LastIndex(name, "/device:"); i >= 0 {
		return "/" + name[i+len("/device:"):]
	}
	return name
}

func isHost(tl *store.Timeline, id event.DeviceID) bool { return tl.Device(id).Kind == "cpu" }

func size(n int64) string { return event.FormatBytes(n) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if stem, ok := strings.CutSuffix(what, "y"); ok {
		return itoa(n) + " " + stem + "ies"
	}
	return itoa(n) + " " + what + "s"
}

// permyri is part of whole in hundredths of a percent.
func permyri(part, whole int64) int64 {
	if whole <= 0 {
		return 0
	}
	return int64(float64(part)/float64(whole)*10000 + 0.5)
}

// percent writes hundredths of a percent with one decimal.
func percent(p int64) string { return strconv.FormatFloat(float64(p)/100, 'f', 1, 64) + " %" }

// span is a time for people, in the unit that leaves it digits.
func span(ns int64) string {
	switch {
	case ns == 0:
		return "0 ms"
	case ns < 1e6:
		return strconv.FormatFloat(float64(ns)/1e3, 'f', 1, 64) + " µs"
	case ns < 1e10:
		return strconv.FormatFloat(float64(ns)/1e6, 'f', 1, 64) + " ms"
	}
	return strconv.FormatFloat(float64(ns)/1e9, 'f', 2, 64) + " s"
}

// pools of accelerators, without those that lie within another: their bytes
// are in the outer one already.
func acceleratorPools(tl *store.Timeline) (out []*store.Pool) {
	for _, p := range tl.Pools() {
		if p.Facts.Text("within") == "" && !isHost(tl, p.Device) && p.Allocs() > 0 {
			out = append(out, p)
		}
	}
	return out
}

// steps are those that ended, in order; a run's first is often unlike the rest.
func steps(tl *store.Timeline) (out []store.Span) {
	t := tl.Steps()
	if t == nil {
		return nil
	}
	for i := range t.Spans() {
		if s := t.Span(i); s.End != store.Alive {
			out = append(out, s)
		}
	}
	return out
}

// steadySteps bounds how many steps are looked at: enough for a mean, and few
// enough for a timeline of any length.
const steadySteps = 64

// steady are the last steps without the first of all, in which variables get
// their first values and buffers fill; all where there is no other.
func steady(all []store.Span) []store.Span {
	if len(all) > 1 {
		all = all[1:]
	}
	return all[max(0, len(all)-steadySteps):]
}

// window is the time of consecutive steps.
func window(list []store.Span) (t0, t1 int64) {
	if len(list) == 0 {
		return 0, 0
	}
	return list[0].Begin, list[len(list)-1].End
}
