package saved

import "tideline/shared/analysis/reading"

// fields takes the members of one object one after the other, in both directions,
// so that what is written and what is read is said once.
type fields struct {
	f     reading.Facts
	write bool
}

func (x *fields) text(name string, s *string) {
	if x.write {
		x.f = append(x.f, reading.Fact{Name: name, Value: reading.Text(*s)})
		return
	}
	v, _ := x.f.Get(name)
	*s = v.Text
}

func (x *fields) whole(name string, n *int64) {
	if x.write {
		x.f = append(x.f, reading.Fact{Name: name, Value: reading.Int(*n)})
		return
	}
	v, _ := x.f.Get(name)
	*n = v.Int
}

func (x *fields) truth(name string, b *bool) {
	if x.write {
		x.f = append(x.f, reading.Fact{Name: name, Value: reading.Bool(*b)})
		return
	}
	v, _ := x.f.Get(name)
	*b = v.Bool
}

func (x *fields) texts(name string, list *[]string) {
	if x.write {
		x.f.Texts(name, *list)
		return
	}
	v, _ := x.f.Get(name)
	for i := range v.List {
		*list = append(*list, v.List[i].Text)
	}
}

func (x *fields) facts(name string, f *reading.Facts) {
	if x.write {
		x.f = append(x.f, reading.Fact{Name: name, Value: reading.Object(*f)})
		return
	}
	v, _ := x.f.Get(name)
	*f = v.Object
}

func (x *fields) rows(name string, rows *[]reading.Row) {
	if x.write {
		list := make([]reading.Value, len(*rows))
		for i, r := range *rows {
			list[i] = reading.List(reading.Text(r.Label), reading.Text(r.Value))
		}
		x.f = append(x.f, reading.Fact{Name: name, Value: reading.List(list...)})
		return
	}
	v, _ := x.f.Get(name)
	for _, r := range v.List {
		if len(r.List) == 2 {
			*rows = append(*rows, reading.Row{Label: r.List[0].Text, Value: r.List[1].Text})
		}
	}
}

// objects is how many objects a list has, given how many are to be written, and
// what takes the members of each.
func (x *fields) objects(name string, n int) (count int, of func(i int, members func(*fields))) {
	if x.write {
		list := make([]reading.Value, n)
		x.f = append(x.f, reading.Fact{Name: name, Value: reading.List(list...)})
		return n, func(i int, members func(*fields)) {
			o := fields{write: true}
			members(&o)
			list[i] = reading.Object(o.f)
		}
	}
	v, _ := x.f.Get(name)
	var list []reading.Facts
	for i := range v.List {
		if v.List[i].Kind == reading.ObjectKind {
			list = append(list, v.List[i].Object)
		}
	}
	return len(list), func(i int, members func(*fields)) { members(&fields{f: list[i]}) }
}

// each takes the objects of a list.
func each[T any](x *fields, name string, list *[]T, members func(*fields, *T)) {
	n, of := x.objects(name, len(*list))
	if n > len(*list) {
		*list = make([]T, n)
	}
	for i := range n {
		of(i, func(o *fields) { members(o, &(*list)[i]) })
	}
}

func one(x *fields, r *reading.Reading) {
	line := int64(r.Line)
	x.text("kind", &r.Kind)
	x.text("file", &r.File)
	x.whole("line", &line)
	r.Line = int(line)
	x.text("name", &r.Name)
	x.facts("facts", &r.Facts)
	x.text("verdict", &r.Verdict)
	x.text("secondary", &r.Secondary)
	x.texts("flags", &r.Flags)
	x.text("likely_cause", &r.Cause)
	x.text("why", &r.Why)
	x.texts("not_concluded", &r.Open)
	x.texts("next", &r.Next)
	x.rows("rows", &r.Rows)
	each(x, "held", &r.Held, held)
	each(x, "growth", &r.Growth, growth)
	copies(x, r)
	each(x, "trials", &r.Trials, trial)
	each(x, "peaks", &r.Peaks, trial)
	x.text("replayed", &r.Replayed)
	x.whole("least_reduction", &r.Least)
	x.whole("short_bytes", &r.Short)
}

func held(x *fields, h *reading.Held) {
	x.text("allocator", &h.Pool)
	x.text("at", &h.At)
	x.whole("time_ns", &h.Time)
	x.whole("bytes", &h.Bytes)
	x.whole("blocks", &h.Blocks)
	each(x, "holders", &h.Holders, holder)
	x.whole("more_holders", &h.More)
	x.whole("more_bytes", &h.MoreBytes)
	x.whole("unknown_bytes", &h.Unknown)
	x.whole("unknown_blocks", &h.UnknownBlocks)
	x.whole("unknown_before_bytes", &h.UnknownBefore)
}

func holder(x *fields, h *reading.Holder) {
	x.text("name", &h.Name)
	x.text("caller", &h.Caller)
	x.whole("bytes", &h.Bytes)
	x.whole("blocks", &h.Blocks)
	x.truth("sized", &h.Sized)
	x.whole("stacks", &h.Stacks)
}

func growth(x *fields, g *reading.Growth) {
	x.text("allocator", &g.Pool)
	x.text("verdict", &g.Verdict)
	x.whole("repeats", &g.Repeats)
	x.whole("bytes_per_repeat", &g.PerRepeat)
	x.whole("released_per_repeat", &g.Released)
	each(x, "growing", &g.Growing, grower)
	x.whole("left_bytes", &g.Left)
	x.whole("left_blocks", &g.LeftBlocks)
}

func grower(x *fields, g *reading.Grower) {
	x.text("name", &g.Name)
	x.text("caller", &g.Caller)
	x.truth("sized", &g.Sized)
	x.whole("bytes_per_repeat", &g.PerRepeat)
	x.whole("bytes", &g.Bytes)
	x.whole("blocks", &g.Blocks)
	x.whole("grew_until_repeat", &g.Until)
}

func trial(x *fields, t *reading.Trial) {
	x.text("setting", &t.Setting)
	x.text("allocator", &t.Allocator)
	x.truth("own", &t.Own)
	x.truth("serves", &t.Serves)
	x.whole("spare", &t.Spare)
	x.whole("peak_reserved", &t.Peak)
	x.text("assumes", &t.Assumes)
}

// copies takes an object that may be absent.
func copies(x *fields, r *reading.Reading) {
	const name = "copy_time"
	o := fields{write: x.write}
	if !x.write {
		if x.facts(name, &o.f); o.f == nil {
			return
		}
	}
	c := r.Copies
	if c == nil {
		c = new(reading.Copies)
	}
	o.whole("busy_ns", &c.Busy)
	o.whole("of_ns", &c.Of)
	o.whole("steps", &c.Steps)
	o.whole("count", &c.Count)
	o.whole("bytes", &c.Bytes)
	o.text("longest", &c.Longest)
	o.whole("longest_bytes", &c.LongestBytes)
	o.whole("longest_ns", &c.LongestTime)
	o.truth("longest_to_device", &c.ToDevice)
	o.truth("longest_pinned", &c.Pinned)
	switch {
	case !x.write:
		r.Copies = c
	case r.Copies == nil:
		x.f.Null(name)
	default:
		x.facts(name, &o.f)
	}
}
