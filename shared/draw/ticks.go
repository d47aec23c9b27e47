package draw

import (
	"math"
	"strconv"

	"tideline/protocol/event"
)

// Tick is a mark on an axis.
type Tick struct {
	At    int64  // nanoseconds or bytes
	Pixel int    // from the axis' start
	Label string // "1.2 s", "4 GiB"
}

// TimeTicks are round times in [t0,t1) on an axis of w pixels, about one for
// each every pixels.
func TimeTicks(t0, t1 int64, w, every int) []Tick {
	if t1 <= t0 || w <= 0 || every <= 0 {
		return nil
	}
	step := timeStep(t0, t1, w, every)
	var out []Tick
	for at := ceilTo(t0, step); at < t1; at += step {
		px := int(float64(at-t0) * float64(w) / float64(t1-t0))
		out = append(out, Tick{at, px, FormatTime(at, step)})
	}
	return out
}

// timeStep is 1, 2 or 5 times a power of ten; above a minute, what clocks
// count by.
func timeStep(t0, t1 int64, w, every int) int64 {
	want := float64(t1-t0) * float64(every) / float64(w)
	if want > 20e9 {
		for _, s := range [...]int64{30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400} {
			if n := s * 1e9; float64(n) >= want {
				return n
			}
		}
		days := int64(math.Ceil(want / 86400e9))
		return days * 86400e9
	}
	n := int64(1)
	for {
		for _, m := range [...]int64{1, 2, 5} {
			if float64(n*m) >= want {
				return n * m
			}
		}
		n *= 10
	}
}

func ceilTo(v, step int64) int64 {
	q := v / step * step
	if q < v {
		q += step
	}
	return q
}

// ByteTicks are round sizes from 0 to top on an axis of h pixels, counted from
// its lower end, about one for each every pixels.
func ByteTicks(top int64, h, every int) []Tick {
	if top <= 0 || h <= 0 || every <= 0 {
		return nil
	}
	step := byteStep(top, h, every)
	var out []Tick
	for at := int64(0); at <= top; at += step {
		out = append(out, Tick{at, int(float64(at) * float64(h) / float64(top)), shortBytes(at)})
		if at > math.MaxInt64-step {
			break
		}
	}
	return out
}

// byteStep is a power of two: with sizes told in KiB, MiB and GiB these are
// the round ones.
func byteStep(top int64, h, every int) int64 {
	want := float64(top) * float64(every) / float64(h)
	step := int64(1)
	for float64(step) < want && step < 1<<61 {
		step *= 2
	}
	return step
}

// shortBytes is event.FormatBytes without decimals that say nothing.
func shortBytes(n int64) string {
	unit := 0
	for n != 0 && n%1024 == 0 && unit < 6 {
		n /= 1024
		unit++
	}
	if n >= 10240 {
		return event.FormatBytes(n << (10 * unit))
	}
	if n >= 1024 { // 1.5 GiB rather than 1536 MiB
		return strconv.FormatFloat(float64(n)/1024, 'f', -1, 64) + " " + iec[unit+1]
	}
	return strconv.FormatInt(n, 10) + " " + iec[unit]
}

var iec = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"}

// FormatTime writes a time or duration in nanoseconds for people, in the unit
// that fits it, as exactly as step asks for: 0 gives three digits.
func FormatTime(ns, step int64) string {
	if ns < 0 {
		return "-" + FormatTime(-ns, step)
	}
	if ns >= 60e9 {
		return clock(ns, step)
	}
	unit, name := int64(1), "ns"
	switch ref := max(ns, step); {
	case ref >= 1e9:
		unit, name = 1e9, "s"
	case ref >= 1e6:
		unit, name = 1e6, "ms"
	case ref >= 1e3:
		unit, name = 1e3, "µs"
	}
	v := float64(ns) / float64(unit)
	decimals := 0
	if step > 0 {
		for s := step; s < unit && decimals < 9; s *= 10 {
			decimals++
		}
	} else if unit > 1 {
		switch {
		case v < 10:
			decimals = 2
		case v < 100:
			decimals = 1
		}
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " " + name
}

// clock writes minutes and hours: 1:02:03, 12:34.5.
func clock(ns, step int64) string {
	s := ns / 1e9
	h, m, sec := s/3600, s/60%60, s%60
	var b []byte
	if h > 0 {
		b = strconv.AppendInt(b, h, 10)
		b = append(b, ':')
		if m < 10 {
			b = append(b, '0')
		}
	}
	b = strconv.AppendInt(b, m, 10)
	b = append(b, ':')
	if sec < 10 {
		b = append(b, '0')
	}
	b = strconv.AppendInt(b, sec, 10)
	decimals := 0
	for x := step; x > 0 && x < 1e9 && decimals < 9; x *= 10 {
		decimals++
	}
	if decimals > 0 {
		frac := strconv.FormatFloat(float64(ns%1e9)/1e9, 'f', decimals, 64)
		if len(frac) > 1 && frac[0] == '0' { // a fraction that rounds up to 1 stays below it
			b = append(b, frac[1:]...)
		}
	}
	return string(b)
}
