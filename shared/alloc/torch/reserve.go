package torch

import (
	"math"
	"strconv"
	"strings"
)

// Reserve is how many addresses an expandable segment sets aside: a part of the
// device's memory, or so many GiB. The zero value is PyTorch's 9/8 of the device,
// which is also the most.
type Reserve struct {
	Value float64
	GiB   bool
}

const wantReserve = "a part of the device's memory such as 0.5, or GiB such as 40G"

func (r Reserve) valid() bool { return r.Value >= 0 && !math.IsInf(r.Value, 0) }

// String is the value as a settings string has it.
func (r Reserve) String() string {
	s := strconv.FormatFloat(r.Value, 'g', -1, 64)
	if r.GiB {
		s += "G"
	}
	return s
}

// bytes is what is set aside where most is what would be without the setting.
func (r Reserve) bytes(total, most int64) int64 {
	of := float64(total)
	switch {
	case r.Value == 0 || !r.GiB && total == 0:
		return most
	case r.GiB:
		of = 1 << 30
	}
	if b := r.Value * of; b < float64(most) {
		return int64(b)
	}
	return most
}

// reserve reads one value. PyTorch ignores a wrong one with a warning.
func (p *parser) reserve(to *Reserve) error {
	t := p.next()
	num := strings.TrimRight(t, "Gg")
	x, err := strconv.ParseFloat(num, 64)
	if err != nil || len(t)-len(num) > 1 || !(x > 0) || math.IsInf(x, 0) {
		return p.wrong(t, wantReserve)
	}
	*to = Reserve{x, len(num) < len(t)}
	return nil
}

// parseReserves reads [NAME:VALUE,…] and keeps it as text.
func parseReserves(s *Settings, p *parser) error {
	if err := p.expect("["); err != nil {
		return err
	}
	var list []string
	for p.peek() != "]" {
		name := p.next()
		if strings.ContainsAny(name, ",:[") || name == "" {
			return p.wrong(name, "a class's name and its value, such as [serving:0.25,cache:8G]")
		}
		if err := p.expect(":"); err != nil {
			return err
		}
		var r Reserve
		if err := p.reserve(&r); err != nil {
			return err
		}
		list = append(list, name+":"+r.String())
		if t := p.peek(); t == "," {
			p.next()
		} else if t != "]" {
			return p.wrong(t, "a comma or ] after "+name+":"+r.String())
		}
	}
	p.next()
	s.ReserveByClass = "[" + strings.Join(list, ",") + "]"
	return nil
}
