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
	x := fields{write: true}
	x.input(s)
	b = reading.Object(x.f).AppendJSON(b)
	b = append(b[:len(b)-1], `,"readings":[`...)
	const tail = len(`],"left_out":9223372036854775807}`)
	values, left := 0, s.LeftOut
	for i, r := range s.List {
		x := fields{write: true}
		one(&x, r)
		v, before := reading.Object(x.f), len(b)
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

// input takes what the readings are of.
func (x *fields) input(s *Readings) {
	x.text("input_kind", &s.Kind)
	x.truth("moments", &s.Moments)
	x.text("cut", &s.Cut)
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
