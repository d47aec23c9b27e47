package rmmlog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// Refusal is an exception or a line of the text log that says why a request was
// refused. Sizes are bytes, -1 where the text lacks them; they were printed with
// six decimals of a unit.
type Refusal struct {
	Line  int
	Count int
	Pool  bool // the pool was not allowed to grow; else the driver refused

	Asked        int64
	Current, Max int64 // of the pool
	Source       int64 // line of the source file
}

const maxRefusals = 256

// The words of the versions, from 2019 on.
const (
	poolWords   = "aximum pool size exceeded"
	oldWords    = "RMM_ERROR_OUT_OF_MEMORY"
	growthWords = "current/max/try size = "
	askedWords  = "(failed to allocate "
)

// refusal reads such a line.
func (p *Parser) refusal(num int, s string) bool {
	x := Refusal{Line: num, Count: 1, Asked: -1, Current: -1, Max: -1, Source: -1}
	driver := strings.Contains(s, "cudaErrorMemoryAllocation") && (strings.Contains(s, "/rmm/") || strings.Contains(s, "out_of_memory: CUDA error"))
	switch {
	case strings.Contains(s, poolWords):
		x.Pool = !driver // a pool without a limit says so of the driver's refusal
	case driver, strings.Contains(s, oldWords):
	default:
		return false
	}
	if _, after, ok := strings.Cut(s, growthWords); ok {
		cells := strings.SplitN(after, ", ", 4)
		for i, to := range []*int64{&x.Current, &x.Max, &x.Asked} {
			if i < len(cells) {
				*to = amount(cells[i])
			}
		}
	}
	if _, after, ok := strings.Cut(s, askedWords); ok && x.Asked < 0 {
		x.Asked = amount(after)
	}
	if n, ok := lines.Int(lines.NumberAfter(s, "_resource.hpp:")); ok {
		x.Source = n
	}
	p.refused(&x)
	return true
}

// refused files it. The log's line and the exception are of one failure, and a
// traceback tells it several times.
func (p *Parser) refused(x *Refusal) {
	for _, o := range p.log.Refusals {
		if o.Pool == x.Pool && (o.Asked == x.Asked || o.Asked < 0 || x.Asked < 0) {
			o.Count++
			if o.Asked < 0 {
				o.Asked = x.Asked
			}
			if o.Max < 0 {
				o.Current, o.Max = x.Current, x.Max
			}
			if o.Source < 0 {
				o.Source = x.Source
			}
			return
		}
	}
	if len(p.log.Refusals) < maxRefusals {
		p.log.Refusals = append(p.log.Refusals, x)
	}
}

// amount reads "4.000000 KiB" as bytes; -1 for anything else.
func amount(s string) int64 {
	f, _, rest, ok := lines.Decimal(strings.TrimLeft(s, " "))
	if !ok || f < 0 {
		return -1
	}
	rest = strings.TrimLeft(rest, " ")
	scale := 1.0
	for _, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if after, ok := strings.CutPrefix(rest, unit); ok && (after == "" || !letter(after[0])) {
			if f *= scale; f >= 1<<62 {
				return 1 << 62 // as good as no limit
			}
			return int64(f + 0.5)
		}
		scale *= 1024
	}
	return -1
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
