package redact

import (
	"slices"
	"strconv"
	"strings"

	"tideline/shared/analysis/reading"
	"tideline/shared/analysis/reading/saved"
)

// Reading is a reading without what says whose it is.
func (r *Redactor) Reading(in *reading.Reading) *reading.Reading {
	out := *in
	out.Facts = r.factList(in.Facts) // first: it learns the process numbers
	out.Name = r.Foreign(in.Name)
	out.Why = r.Text(in.Why)
	out.Secondary, out.Cause = r.Text(in.Secondary), r.Text(in.Cause)
	out.Flags, out.Open, out.Next = r.Texts(in.Flags), r.Texts(in.Open), r.Texts(in.Next)
	out.Rows = make([]reading.Row, len(in.Rows))
	for i, row := range in.Rows {
		out.Rows[i] = reading.Row{Label: r.Foreign(row.Label), Value: r.Sized(row.Value)}
	}
	out.Trials, out.Peaks = r.trials(in.Trials), r.trials(in.Peaks)
	out.Replayed = r.Text(in.Replayed)
	r.holders(in, &out)
	return &out
}

// Readings are what a timeline keeps of its input, without what says whose it is.
func (r *Redactor) Readings(in *saved.Readings) *saved.Readings {
	out := *in
	if !r.ours(in.Kind) {
		out.Kind = "text"
	}
	out.Cut = r.Foreign(in.Cut)
	out.List = make([]*reading.Reading, len(in.List))
	for i, x := range in.List {
		x = r.Reading(x)
		x.File = r.Name(File, x.File)
		if !r.ours(x.Kind) || !r.ours(x.Verdict) { // it is from a file, which may say anything
			x.Kind, x.Verdict = "text", ""
		}
		out.List[i] = x
	}
	return &out
}

// holders redacts who holds what: frames and ops are names.
func (r *Redactor) holders(in, out *reading.Reading) {
	out.Held = slices.Clone(in.Held)
	for i := range out.Held {
		h := &out.Held[i]
		h.Pool = r.Name(Allocator, h.Pool)
		h.Holders = slices.Clone(h.Holders)
		for k := range h.Holders {
			x := &h.Holders[k]
			if !x.Sized {
				x.Name, x.Caller = r.Name(Op, x.Name), r.Name(Op, x.Caller)
			}
		}
	}
	out.Growth = slices.Clone(in.Growth)
	for i := range out.Growth {
		g := &out.Growth[i]
		g.Pool = r.Name(Allocator, g.Pool)
		g.Growing = slices.Clone(g.Growing)
		for k := range g.Growing {
			x := &g.Growing[k]
			if !x.Sized {
				x.Name, x.Caller = r.Name(Op, x.Name), r.Name(Op, x.Caller)
			}
		}
	}
	if in.Copies != nil {
		c := *in.Copies
		c.Longest = r.Name(Op, c.Longest)
		out.Copies = &c
	}
}

func (r *Redactor) trials(in []reading.Trial) []reading.Trial {
	out := slices.Clone(in)
	for i := range out {
		t := &out[i]
		t.Setting, t.Assumes = r.Text(t.Setting), r.Text(t.Assumes)
	}
	return out
}

// Texts goes through sentences of ours.
func (r *Redactor) Texts(list []string) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = r.Text(s)
	}
	return out
}

func (r *Redactor) factList(in reading.Facts) reading.Facts {
	out := make(reading.Facts, 0, len(in))
	for _, f := range in {
		name := f.Name
		if !r.ownName(name) {
			name = r.pseudonym(Name, name)
		}
		out = append(out, reading.Fact{Name: name, Value: r.value(f.Name, f.Value)})
	}
	return out
}

// ownName says whether a fact's name is one of ours: as a whole, or each of its
// parts, as those with a unit or a number are put together (requested_gib).
func (r *Redactor) ownName(name string) bool {
	if r.safe(name) {
		return true
	}
	if strings.Count(name, "_") > 12 {
		return false // none of ours is that long, and the ways to cut it are many
	}
	for i := 1; i < len(name); i++ {
		if name[i] == '_' && (r.safe(name[:i]) || r.safe(name[:i+1])) && r.ownName(name[i+1:]) {
			return true
		}
	}
	return false
}

func (r *Redactor) value(name string, v reading.Value) reading.Value {
	switch v.Kind {
	case reading.TextKind:
		v.Text = r.Foreign(v.Text)
	case reading.IntKind:
		if name == "pid" || strings.HasSuffix(name, "_pid") || strings.HasSuffix(name, "pids") || strings.Contains(name, "process_id") {
			p := r.pseudonym(Process, strconv.FormatInt(v.Int, 10))
			n, _ := strconv.ParseInt(strings.TrimPrefix(p, string(Process)+"-"), 10, 64)
			v.Int = n
		}
	case reading.ListKind:
		list := make([]reading.Value, len(v.List))
		for i := range v.List {
			list[i] = r.value(name, v.List[i])
		}
		v.List = list
	case reading.ObjectKind:
		v.Object = r.factList(v.Object)
	default:
	}
	return v
}
