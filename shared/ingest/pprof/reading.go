package pprof

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis/reading"
)

// Total is what all samples of one kind on one device hold.
type Total struct {
	Kind, Device string // "" where the file has no such label
	Bytes, Count int64
	Samples      int
}

// Totals sums the samples by kind and device, the largest first.
func (p *Profile) Totals() []Total {
	bytes, count := p.column("bytes"), p.column("count")
	var out []Total
	for i := range p.Samples {
		s := &p.Samples[i]
		kind, device := s.Label("kind"), s.Label("device")
		k := slices.IndexFunc(out, func(t Total) bool { return t.Kind == kind && t.Device == device })
		if k < 0 {
			k = len(out)
			out = append(out, Total{Kind: kind, Device: device})
		}
		out[k].Samples++
		out[k].Bytes += value(s, bytes)
		out[k].Count += value(s, count)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	return out
}

func value(s *Sample, column int) int64 {
	if column < 0 {
		return 0
	}
	return s.Values[column]
}

// Leaf is what the samples with one innermost function hold.
type Leaf struct {
	Kind, Function string
	Bytes          int64
}

// Leaves sums the samples by kind and innermost function, the largest first.
func (p *Profile) Leaves() []Leaf {
	bytes := p.column("bytes")
	at := map[Leaf]int{}
	var out []Leaf
	for i := range p.Samples {
		s := &p.Samples[i]
		key := Leaf{Kind: s.Label("kind"), Function: p.Leaf(s)}
		k, ok := at[key]
		if !ok {
			k = len(out)
			at[key] = k
			out = append(out, key)
		}
		out[k].Bytes += value(s, bytes)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Bytes > out[j].Bytes })
	return out
}

// OfMemory says whether any value of the samples is in bytes.
func (p *Profile) OfMemory() bool { return p.column("bytes") >= 0 }

// Measures are the values of the samples with their units, in words.
func (p *Profile) Measures() string {
	list := make([]string, len(p.Types))
	for i, t := range p.Types {
		list[i] = t.Type + " (" + t.Unit + ")"
	}
	return strings.Join(list, ", ")
}

// ofTimeline is the name of a profile that package export/pprof wrote.
const ofTimeline = "pprof profile of a timeline"

// name says who wrote the profile, as far as it shows.
func (p *Profile) name() string {
	if slices.ContainsFunc(p.Comments, func(s string) bool { return strings.HasPrefix(s, "Written by Tideline") }) {
		return ofTimeline // also where nothing is in it
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		switch {
		case s.Label("allocator") != "":
			return ofTimeline
		case s.Label("kind") != "":
			return "JAX device memory"
		}
	}
	if len(p.Samples) == 0 {
		return "JAX device memory"
	}
	return "pprof heap profile"
}

// Reading is what the profile says is alive, and where it was made.
func (p *Profile) Reading() reading.Reading {
	r := reading.Reading{Kind: "jax-pprof", Name: p.name(), Verdict: "timeline"}
	f := &r.Facts
	f.Bool("gzip", p.Zipped)
	types := make([]reading.Value, len(p.Types))
	for i, t := range p.Types {
		types[i] = reading.List(reading.Text(t.Type), reading.Text(t.Unit))
	}
	f.Set("sample_types", reading.List(types...))
	f.Int("samples", int64(len(p.Samples)))
	f.Int("functions", int64(p.Functions))
	f.Int("locations", int64(p.Locations))
	f.Int("strings", int64(p.Strings))
	p.totalFacts(&r)
	p.leafFacts(&r)
	if p.column("bytes") < 0 {
		r.Open = append(r.Open, "No value of the samples is in bytes: this is no memory profile.")
	}
	r.Open = append(r.Open, "The profile is an instant: what is alive when it was saved, not at the peak.")
	return r
}

func (p *Profile) totalFacts(r *reading.Reading) {
	var list []reading.Value
	for _, t := range p.Totals() {
		var f reading.Facts
		f.Text("kind", t.Kind)
		f.Text("device", t.Device)
		f.Int("bytes", t.Bytes)
		f.Int("allocations", t.Count)
		f.Int("samples", int64(t.Samples))
		list = append(list, reading.Object(f))
		name := t.Kind
		if t.Device != "" {
			name += " on " + t.Device
		}
		if name == "" {
			name = "in use"
		}
		r.Row(name, fmt.Sprintf("%s in %d allocations", event.FormatBytes(t.Bytes), t.Count))
		switch {
		case t.Kind == "buffer" && r.Name == ofTimeline:
			r.Why += fmt.Sprintf("%s live on %s. ", event.FormatBytes(t.Bytes), cmp.Or(t.Device, "a device without a name"))
		case t.Kind == "buffer":
			r.Why += fmt.Sprintf("Live arrays hold %s on %s. ", event.FormatBytes(t.Bytes), t.Device)
		case t.Kind == "executable":
			r.Why += fmt.Sprintf("Compiled programs take %s. ", event.FormatBytes(t.Bytes))
		}
	}
	r.Facts.Set("totals", reading.List(list...))
}

const topLeaves = 5

func (p *Profile) leafFacts(r *reading.Reading) {
	bytes, largest := p.column("bytes"), -1
	for i := range p.Samples {
		if largest < 0 || value(&p.Samples[i], bytes) > value(&p.Samples[largest], bytes) {
			largest = i
		}
	}
	f := &r.Facts
	if largest < 0 {
		f.Null("largest_sample_bytes")
		f.Null("largest_sample_kind")
		f.Null("largest_sample_leaf")
	} else {
		s := &p.Samples[largest]
		f.Int("largest_sample_bytes", value(s, bytes))
		f.Text("largest_sample_kind", s.Label("kind"))
		f.Text("largest_sample_leaf", p.Leaf(s))
	}
	var list []reading.Value
	for i, l := range p.Leaves() {
		if i == topLeaves {
			break
		}
		var g reading.Facts
		g.Text("kind", l.Kind)
		g.Text("function", l.Function)
		g.Int("bytes", l.Bytes)
		list = append(list, reading.Object(g))
	}
	f.Set("top_leaves", reading.List(list...))
}
