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
	x, s := fields{f: f}, new(Readings)
	x.input(s)
	x.whole("left_out", &s.LeftOut)
	each(&x, "readings", &s.List, func(x *fields, r **reading.Reading) {
		*r = new(reading.Reading)
		one(x, *r)
	})
	return s, nil
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
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && s != "-0" { // which is a float
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
	steers := func(c rune) bool { return c < ' ' && c != '\n' && c != '\t' || c >= 0x7f && c < 0xa0 }
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
