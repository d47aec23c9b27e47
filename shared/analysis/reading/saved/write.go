package saved

import (
	"tideline/protocol/block"
	"tideline/shared/analysis/reading"
)

// MaxValues bounds the values of one timeline's readings, which cost more in
// memory than in the file.
const MaxValues = 1 << 17

// Readings are what an input meant, as a timeline keeps it.
type Readings struct {
	Kind    string // of the input, such as "pytorch-snapshot"
	Moments bool   // it tells instants, whose distances in time are made up
	Cut     string // why not all of the input was read; "" if it was
	List    []*reading.Reading
	LeftOut int64 // readings that there was no room for
}

// Append appends the readings as JSON: as many as a block of readings holds.
func (s *Readings) Append(b []byte) []byte {
	at := len(b)
	var f reading.Facts
	f.Text("input_kind", s.Kind)
	f.Bool("moments", s.Moments)
	f.Text("cut", s.Cut)
	b = reading.Object(f).AppendJSON(b)
	b = append(b[:len(b)-1], `,"readings":[`...)
	const tail = len(`],"left_out":9223372036854775807}`)
	values, left := 0, s.LeftOut
	for i, r := range s.List {
		v, before := reading.Object(facts(r)), len(b)
		n := count(v)
		if values+n <= MaxValues {
			if b[len(b)-1] != '[' {
				b = append(b, ',')
			}
			b = v.AppendJSON(b)
		}
		if values+n > MaxValues || len(b)-at > block.MaxReadings-tail {
			b, left = b[:before], left+int64(len(s.List)-i)
			break
		}
		values += n
	}
	b = append(b, `],"left_out":`...)
	return append(reading.Int(left).AppendJSON(b), '}')
}

// count is how many values there are in one.
func count(v reading.Value) int {
	n := 1
	for i := range v.List {
		n += count(v.List[i])
	}
	for i := range v.Object {
		n += count(v.Object[i].Value)
	}
	return n
}

func facts(r *reading.Reading) (f reading.Facts) {
	f.Text("kind", r.Kind)
	f.Text("file", r.File)
	f.Int("line", int64(r.Line))
	f.Text("name", r.Name)
	f.Set("facts", reading.Object(r.Facts))
	f.Text("verdict", r.Verdict)
	f.Text("secondary", r.Secondary)
	f.Texts("flags", r.Flags)
	f.Text("likely_cause", r.Cause)
	f.Text("why", r.Why)
	f.Texts("not_concluded", r.Open)
	f.Texts("next", r.Next)
	f.Set("rows", list(r.Rows, func(x *reading.Row) reading.Value {
		return reading.List(reading.Text(x.Label), reading.Text(x.Value))
	}))
	f.Set("held", list(r.Held, held))
	f.Set("growth", list(r.Growth, growth))
	f.Null("copy_time")
	if r.Copies != nil {
		f.Set("copy_time", copies(r.Copies))
	}
	f.Set("trials", list(r.Trials, trial))
	f.Set("peaks", list(r.Peaks, trial))
	f.Text("replayed", r.Replayed)
	f.Int("least_reduction", r.Least)
	f.Int("short_bytes", r.Short)
	return f
}

func list[T any](in []T, one func(*T) reading.Value) reading.Value {
	out := make([]reading.Value, len(in))
	for i := range in {
		out[i] = one(&in[i])
	}
	return reading.List(out...)
}

func held(h *reading.Held) reading.Value {
	var f reading.Facts
	f.Text("allocator", h.Pool)
	f.Text("at", h.At)
	f.Int("time_ns", h.Time)
	f.Int("bytes", h.Bytes)
	f.Int("blocks", h.Blocks)
	f.Set("holders", list(h.Holders, func(x *reading.Holder) reading.Value {
		var f reading.Facts
		f.Text("name", x.Name)
		f.Text("caller", x.Caller)
		f.Int("bytes", x.Bytes)
		f.Int("blocks", x.Blocks)
		f.Bool("sized", x.Sized)
		f.Int("stacks", x.Stacks)
		return reading.Object(f)
	}))
	f.Int("more_holders", h.More)
	f.Int("more_bytes", h.MoreBytes)
	f.Int("unknown_bytes", h.Unknown)
	f.Int("unknown_blocks", h.UnknownBlocks)
	f.Int("unknown_before_bytes", h.UnknownBefore)
	return reading.Object(f)
}

func growth(g *reading.Growth) reading.Value {
	var f reading.Facts
	f.Text("allocator", g.Pool)
	f.Text("verdict", g.Verdict)
	f.Int("repeats", g.Repeats)
	f.Int("bytes_per_repeat", g.PerRepeat)
	f.Int("released_per_repeat", g.Released)
	f.Set("growing", list(g.Growing, func(x *reading.Grower) reading.Value {
		var f reading.Facts
		f.Text("name", x.Name)
		f.Text("caller", x.Caller)
		f.Bool("sized", x.Sized)
		f.Int("bytes_per_repeat", x.PerRepeat)
		f.Int("bytes", x.Bytes)
		f.Int("blocks", x.Blocks)
		f.Int("grew_until_repeat", x.Until)
		return reading.Object(f)
	}))
	f.Int("left_bytes", g.Left)
	f.Int("left_blocks", g.LeftBlocks)
	return reading.Object(f)
}

func copies(c *reading.Copies) reading.Value {
	var f reading.Facts
	f.Int("busy_ns", c.Busy)
	f.Int("of_ns", c.Of)
	f.Int("steps", c.Steps)
	f.Int("count", c.Count)
	f.Int("bytes", c.Bytes)
	f.Text("longest", c.Longest)
	f.Int("longest_bytes", c.LongestBytes)
	f.Int("longest_ns", c.LongestTime)
	f.Bool("longest_to_device", c.ToDevice)
	f.Bool("longest_pinned", c.Pinned)
	return reading.Object(f)
}

func trial(t *reading.Trial) reading.Value {
	var f reading.Facts
	f.Text("setting", t.Setting)
	f.Text("allocator", t.Allocator)
	f.Bool("own", t.Own)
	f.Bool("serves", t.Serves)
	f.Int("spare", t.Spare)
	f.Int("peak_reserved", t.Peak)
	f.Text("assumes", t.Assumes)
	return reading.Object(f)
}
