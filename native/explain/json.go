package explain

import (
	"bufio"
	"encoding/json"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	common "tideline/shared/analysis/reading"
)

// object writes one JSON object with its members in the order of the calls.
type object struct {
	w     *bufio.Writer
	depth int
	any   bool
}

func (o *object) key(name string) {
	if o.any {
		o.w.WriteByte(',')
	}
	o.any = true
	o.line()
	o.w.WriteString(quote(name) + ": ")
}

func (o *object) line() {
	o.w.WriteByte('\n')
	for range o.depth {
		o.w.WriteByte(' ')
	}
}

func (o *object) member(name, raw string) {
	o.key(name)
	o.w.WriteString(raw)
}

func (o *object) text(name, s string)          { o.member(name, quote(s)) }
func (o *object) integer(name string, n int64) { o.member(name, strconv.FormatInt(n, 10)) }

// object writes a member that is an object itself.
func (o *object) object(name string, f func(*object)) {
	o.key(name)
	writeObject(o.w, o.depth, f)
}

// array writes n objects.
func (o *object) array(name string, n int, f func(i int, o *object)) {
	o.key(name)
	o.w.WriteByte('[')
	for i := range n {
		if i > 0 {
			o.w.WriteByte(',')
		}
		o.depth++
		o.line()
		writeObject(o.w, o.depth, func(x *object) { f(i, x) })
		o.depth--
	}
	if n > 0 {
		o.line()
	}
	o.w.WriteByte(']')
}

func writeObject(w *bufio.Writer, depth int, f func(*object)) {
	w.WriteByte('{')
	x := object{w: w, depth: depth + 1}
	f(&x)
	if x.any {
		x.depth--
		x.line()
	}
	w.WriteByte('}')
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // cannot happen: any string is valid input
		return `""`
	}
	return string(b)
}

func (rep *report) json(w *bufio.Writer) {
	writeObject(w, 0, func(o *object) {
		o.text("file", rep.name)
		o.text("kind", rep.kind)
		if rep.cut != "" {
			o.text("damage", rep.cut)
		}
		o.array("failures", len(rep.failures), func(i int, o *object) { rep.failures[i].json(o) })
		if len(rep.readings) > 0 {
			rep.readingsJSON(o)
		}
		if len(rep.notices) > 0 {
			o.array("notices", len(rep.notices), func(i int, o *object) {
				n := rep.notices[i]
				o.text("allocator", n.Allocator)
				o.text("requested_text", n.Requested.Text)
				o.member("caller_can_do_without", strconv.FormatBool(n.NotFailure))
				o.integer("count", int64(n.Count))
			})
		}
		if rep.run != nil {
			o.object("run", rep.runJSON)
		}
		if rep.found != nil {
			rep.findingsJSON(o)
		}
		if rep.reruns != nil {
			rep.reruns.json(o)
		}
	})
	w.WriteByte('\n')
}

func (f *failure) json(o *object) {
	if f.Reading == nil {
		o.text("problem", f.recorded.Problem)
		return
	}
	if f.file != "" {
		o.text("file", f.file)
	}
	if f.Line > 0 {
		o.integer("line", int64(f.Line))
	}
	if r := f.recorded; r != nil {
		o.integer("time_ns", r.Time)
		o.integer("step", int64(r.Step))
		o.array("holders_by_category", len(r.ByKind), held(r.ByKind))
		o.array("holders_by_op", len(r.ByOp), held(r.ByOp))
		o.member("ledger", string(common.Ledger(r.Ledger).AppendJSON(nil)))
	}
	if len(f.Holders) > 0 {
		o.array("holders_by_op", len(f.Holders), held(f.Holders))
	}
	for _, v := range f.Values() {
		o.member(v.Name, rawValue(v))
	}
	o.member("pinned", string(common.Pins(f.pins()).AppendJSON(nil)))
	why, open, next := f.words()
	o.text("why", why)
	o.member("not_concluded", rawTexts(open))
	o.member("next", rawTexts(next))
	o.member("next_verified", "false")
	f.replaysJSON(o)
}

func held(list []analysis.Held) func(int, *object) {
	return func(i int, o *object) {
		o.text("name", list[i].Name)
		o.integer("bytes", list[i].Bytes)
		o.integer("blocks", list[i].Blocks)
	}
}

func rawValue(v analysis.Value) string {
	switch v.Type {
	case analysis.IntValue:
		return strconv.FormatInt(v.Int, 10)
	case analysis.FloatValue:
		return strconv.FormatFloat(v.Float, 'f', -1, 64)
	case analysis.TextValue:
		return quote(v.Text)
	case analysis.BoolValue:
		return strconv.FormatBool(v.Bool)
	case analysis.IntsValue:
		b := []byte{'['}
		for i, n := range v.Ints {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = strconv.AppendInt(b, n, 10)
		}
		return string(append(b, ']'))
	case analysis.TextsValue:
		return rawTexts(v.Texts)
	default:
		return "null"
	}
}

func rawTexts(list []string) string {
	b := []byte{'['}
	for i, s := range list {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, quote(s)...)
	}
	return string(append(b, ']'))
}

func (rep *report) runJSON(o *object) {
	s := rep.run
	o.integer("events", s.Events)
	o.integer("duration_ns", s.Nanos)
	o.integer("steps", s.Steps)
	o.integer("lost_events", s.Lost)
	if s.Ended {
		o.text("end", s.End.String())
		if s.EndText != "" {
			o.text("end_text", s.EndText)
		}
	} else {
		o.member("end", "null")
	}
	o.array("allocators", len(s.Allocators), func(i int, o *object) {
		a := &s.Allocators[i]
		o.member("ledger", string(common.Ledger(rep.ledgers[a.ID]).AppendJSON(nil)))
		o.text("name", a.Name)
		o.text("device", a.Device)
		if a.Limit.Known {
			o.integer("limit_bytes", a.Limit.N)
		} else {
			o.member("limit_bytes", "null")
		}
		o.integer("in_use_bytes", a.InUse)
		o.integer("reserved_bytes", a.Reserved)
		o.integer("peak_in_use_bytes", a.PeakInUse)
		o.integer("peak_at_ns", a.PeakAt)
		o.integer("peak_reserved_bytes", a.PeakReserved)
		o.integer("peak_reserved_at_ns", a.PeakReservedAt)
		o.member("peak_utilisation", strconv.FormatFloat(a.Utilisation(), 'f', 4, 64))
		o.integer("floor_bytes", a.Floor)
		o.integer("allocators_cost_bytes", a.Cost())
		o.integer("driver_calls", a.DriverCalls)
		o.integer("num_allocs", a.Allocs)
		o.integer("num_frees", a.Frees)
		if a.Within != "" {
			o.text("within", a.Within)
		}
		if a.ArenaUnused > 0 {
			o.integer("peak_arena_unused_bytes", a.ArenaUnused)
		}
		o.object("peak_by_category", func(o *object) {
			for c, n := range a.PeakByCategory {
				if n > 0 {
					o.integer(event.Category(c).String(), n)
				}
			}
		})
	})
	o.array("transfers", len(s.Transfers), func(i int, o *object) {
		o.text("cause", s.Transfers[i].Cause.String())
		o.integer("count", s.Transfers[i].Count)
		o.integer("bytes", s.Transfers[i].Bytes)
	})
	o.object("stalls", func(o *object) {
		o.integer("count", s.Stalls.Count)
		o.integer("duration_ns", s.Stalls.Nanos)
	})
}
