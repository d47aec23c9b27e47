package saved

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tideline/protocol/block"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/jsontext"
)

// Parse reads what Append wrote. Fields that it does not know are passed over,
// and those that are not there are empty. Its errors say what is wrong with the
// JSON.
func Parse(b []byte) (*Readings, error) {
	if len(b) > block.MaxReadings {
		return nil, fmt.Errorf("readings of %d bytes, at most %d are allowed", len(b), block.MaxReadings)
	}
	p := parser{d: jsontext.New(bytes.NewReader(b)), left: MaxValues + 64} // beside those of the readings
	f, err := p.object()
	if err != nil {
		return nil, fmt.Errorf("the saved readings: %w", err)
	}
	s := &Readings{Kind: text(f, "input_kind"), Moments: truth(f, "moments"), Cut: text(f, "cut"), LeftOut: whole(f, "left_out")}
	s.List = each(f, "readings", one)
	return s, nil
}

func one(f reading.Facts) *reading.Reading {
	r := &reading.Reading{
		Kind: text(f, "kind"), File: text(f, "file"), Line: int(whole(f, "line")), Name: text(f, "name"),
		Verdict: text(f, "verdict"), Secondary: text(f, "secondary"), Flags: texts(f, "flags"), Cause: text(f, "likely_cause"),
		Why: text(f, "why"), Open: texts(f, "not_concluded"), Next: texts(f, "next"),
		Replayed: text(f, "replayed"), Least: whole(f, "least_reduction"), Short: whole(f, "short_bytes"),
	}
	r.Facts = object(f, "facts")
	rows, _ := f.Get("rows")
	for _, v := range rows.List {
		if len(v.List) == 2 {
			r.Rows = append(r.Rows, reading.Row{Label: v.List[0].Text, Value: v.List[1].Text})
		}
	}
	r.Held = each(f, "held", func(f reading.Facts) reading.Held {
		return reading.Held{
			Pool: text(f, "allocator"), At: text(f, "at"), Time: whole(f, "time_ns"), Bytes: whole(f, "bytes"), Blocks: whole(f, "blocks"),
			Holders: each(f, "holders", func(f reading.Facts) reading.Holder {
				return reading.Holder{
					Name: text(f, "name"), Caller: text(f, "caller"), Bytes: whole(f, "bytes"), Blocks: whole(f, "blocks"),
					Sized: truth(f, "sized"), Stacks: whole(f, "stacks"),
				}
			}),
			More: whole(f, "more_holders"), MoreBytes: whole(f, "more_bytes"),
			Unknown: whole(f, "unknown_bytes"), UnknownBlocks: whole(f, "unknown_blocks"), UnknownBefore: whole(f, "unknown_before_bytes"),
		}
	})
	r.Growth = each(f, "growth", func(f reading.Facts) reading.Growth {
		return reading.Growth{
			Pool: text(f, "allocator"), Verdict: text(f, "verdict"), Repeats: whole(f, "repeats"),
			PerRepeat: whole(f, "bytes_per_repeat"), Released: whole(f, "released_per_repeat"),
			Growing: each(f, "growing", func(f reading.Facts) reading.Grower {
				return reading.Grower{
					Name: text(f, "name"), Caller: text(f, "caller"), Sized: truth(f, "sized"), PerRepeat: whole(f, "bytes_per_repeat"),
					Bytes: whole(f, "bytes"), Blocks: whole(f, "blocks"), Until: whole(f, "grew_until_repeat"),
				}
			}),
			Left: whole(f, "left_bytes"), LeftBlocks: whole(f, "left_blocks"),
		}
	})
	if f := object(f, "copy_time"); f != nil {
		r.Copies = &reading.Copies{
			Busy: whole(f, "busy_ns"), Of: whole(f, "of_ns"), Steps: whole(f, "steps"), Count: whole(f, "count"), Bytes: whole(f, "bytes"),
			Longest: text(f, "longest"), LongestBytes: whole(f, "longest_bytes"), LongestTime: whole(f, "longest_ns"),
			ToDevice: truth(f, "longest_to_device"), Pinned: truth(f, "longest_pinned"),
		}
	}
	r.Trials, r.Peaks = each(f, "trials", trialOf), each(f, "peaks", trialOf)
	return r
}

func trialOf(f reading.Facts) reading.Trial {
	return reading.Trial{
		Setting: text(f, "setting"), Allocator: text(f, "allocator"), Own: truth(f, "own"), Serves: truth(f, "serves"),
		Spare: whole(f, "spare"), Peak: whole(f, "peak_reserved"), Assumes: text(f, "assumes"),
	}
}

func text(f reading.Facts, name string) string {
	v, _ := f.Get(name)
	return v.Text
}

func whole(f reading.Facts, name string) int64 {
	v, _ := f.Get(name)
	return v.Int
}

func truth(f reading.Facts, name string) bool {
	v, _ := f.Get(name)
	return v.Bool
}

func object(f reading.Facts, name string) reading.Facts {
	v, _ := f.Get(name)
	return v.Object
}

func texts(f reading.Facts, name string) (out []string) {
	v, _ := f.Get(name)
	for i := range v.List {
		out = append(out, v.List[i].Text)
	}
	return out
}

// each makes something of every object of a list.
func each[T any](f reading.Facts, name string, one func(reading.Facts) T) (out []T) {
	v, _ := f.Get(name)
	for i := range v.List {
		if v.List[i].Kind == reading.ObjectKind {
			out = append(out, one(v.List[i].Object))
		}
	}
	return out
}

// parser turns JSON into values, as many as there may be.
type parser struct {
	d    *jsontext.Reader
	left int
}

var errTooMany = fmt.Errorf("more than %d values", MaxValues)

// object is a whole document that is one object.
func (p *parser) object() (reading.Facts, error) {
	k, err := p.d.Next()
	if err != nil {
		return nil, err //nolint:wrapcheck // it says where
	}
	if k != jsontext.ObjectBegin {
		return nil, errors.New("expected a JSON object")
	}
	v, err := p.value(k)
	if err != nil {
		return nil, err
	}
	if _, err := p.d.Next(); err != nil { // nothing may follow
		return nil, err //nolint:wrapcheck // it says where
	}
	return v.Object, nil
}

// value is the one that begins with a token.
func (p *parser) value(k jsontext.Kind) (reading.Value, error) {
	if p.left--; p.left < 0 {
		return reading.Value{}, errTooMany
	}
	switch k {
	case jsontext.Text:
		return reading.Text(plain(string(p.d.Bytes()))), nil
	case jsontext.Number:
		return number(string(p.d.Bytes())), nil
	case jsontext.True, jsontext.False:
		return reading.Bool(k == jsontext.True), nil
	case jsontext.ArrayBegin, jsontext.ObjectBegin:
		return p.several(k)
	default:
		return reading.Null(), nil
	}
}

// several are the values of a list or an object.
func (p *parser) several(open jsontext.Kind) (reading.Value, error) {
	v := reading.List()
	if open == jsontext.ObjectBegin {
		v = reading.Object(reading.Facts{})
	}
	for {
		k, err := p.d.Next()
		if err != nil {
			return v, err //nolint:wrapcheck // it says where
		}
		name := ""
		switch k {
		case jsontext.ArrayEnd, jsontext.ObjectEnd:
			return v, nil
		case jsontext.Key:
			name = plain(string(p.d.Bytes()))
			if k, err = p.d.Next(); err != nil {
				return v, err //nolint:wrapcheck // it says where
			}
		default: // an element of a list
		}
		x, err := p.value(k)
		if err != nil {
			return v, err
		}
		if open == jsontext.ObjectBegin {
			v.Object = append(v.Object, reading.Fact{Name: name, Value: x})
		} else {
			v.List = append(v.List, x)
		}
	}
}

func number(s string) reading.Value {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return reading.Int(n)
	}
	if n, err := strconv.ParseUint(s, 10, 64); err == nil {
		return reading.Uint(n)
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return reading.Null()
	}
	return reading.Float(x)
}

// plain is a text without what could steer a terminal.
func plain(s string) string {
	steers := func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c == 0x7f }
	if strings.IndexFunc(s, steers) < 0 {
		return s
	}
	return strings.Map(func(c rune) rune {
		if steers(c) {
			return -1
		}
		return c
	}, s)
}
