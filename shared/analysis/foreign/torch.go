package foreign

import (
	"fmt"
	"math"
	"slices"

	"tideline/shared/analysis"
	"tideline/shared/analysis/cause"
	"tideline/shared/analysis/ledger"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/torchlog"
)

type figure = torchlog.Figure

// Torch judges everything that a text tells of PyTorch.
func Torch(rep *torchlog.Report) []*reading.Reading {
	var out []*reading.Reading
	for _, m := range rep.Messages {
		out = append(out, torchMessage(m))
	}
	out = append(out, torchTables(rep)...)
	if rep.Stats != nil && len(rep.Summaries) == 0 {
		out = append(out, torchStats(rep.Stats))
	}
	if len(out) == 0 {
		for _, x := range rep.Refusals {
			out = append(out, torchRefusal(x))
		}
	}
	return out
}

const (
	mib = float64(1 << 20)
	gib = float64(1 << 30)
)

// size adds a figure in GiB and in MiB: the printed unit as printed, the other
// to two decimals; null when it is not known.
func size(f *reading.Facts, name string, x figure) {
	f.FloatIf(name+"_gib", x.In("GiB"), x.Known)
	f.FloatIf(name+"_mib", x.In("MiB"), x.Known)
}

// torchState is a message with what follows from its figures, in bytes.
type torchState struct {
	m        *torchlog.Message
	request  float64
	capacity float64
	free     float64
	used     float64 // allocated by PyTorch
	idle     figure  // reserved, not allocated
	reserved figure
	outside  figure // capacity - free - reserved
	this     figure // all that this process holds, as told or by the accounts
	self     int64  // the process named that is this one, -1 when none is
	named    []torchlog.Process
	others   figure // held by named processes that are not this one
	paged    bool   // more allocated than the card has
}

func minus(a figure, b ...figure) figure {
	if !a.Known {
		return figure{}
	}
	n := a.Bytes()
	for _, x := range b {
		if !x.Known {
			return figure{}
		}
		n -= x.Bytes()
	}
	return torchlog.FromBytes(n)
}

func plus(a, b figure) figure {
	if !a.Known || !b.Known {
		return figure{}
	}
	return torchlog.FromBytes(a.Bytes() + b.Bytes())
}

func stateOf(m *torchlog.Message) *torchState {
	s := &torchState{
		m: m, request: m.Requested.Bytes(), capacity: m.Capacity.Bytes(), free: m.Free.Bytes(), used: m.Allocated.Bytes(),
		idle: m.Idle, reserved: m.Reserved, this: m.ThisProcess, self: -1, named: m.Processes,
	}
	if m.Reserved.Known {
		s.idle = minus(m.Reserved, m.Allocated)
	} else {
		s.reserved = plus(m.Allocated, m.Idle)
	}
	s.paged = m.Capacity.Known && m.Allocated.Known && s.used > s.capacity
	if !s.paged {
		s.outside = minus(m.Capacity, m.Free, s.reserved)
	}
	s.findSelf()
	if len(s.named) > 0 {
		s.others = torchlog.FromBytes(sumOf(s.named))
	}
	return s
}

func sumOf(list []torchlog.Process) (sum float64) {
	for _, p := range list {
		sum += p.Used.Bytes()
	}
	return sum
}

// findSelf looks for this process among the named ones. PyTorch tells its own
// by its number, which is another within a container than the one that the
// driver lists, so there the program itself is "Process 3021", and no sentence
// is of "this process". Two things show it: what is named and what PyTorch has
// reserved are together more than is taken on the device, so that one must be
// part of the other; and one figure is what is reserved and a context.
func (s *torchState) findSelf() {
	m := s.m
	if m.ThisProcess.Known || s.paged || !s.reserved.Known || !m.Capacity.Known || !m.Free.Known {
		return
	}
	reserved, taken := s.reserved.Bytes(), s.capacity-s.free
	if sumOf(m.Processes)+reserved <= taken*1.01+0.1*gib {
		return
	}
	best, least := -1, math.Inf(1)
	for i, p := range m.Processes {
		more := p.Used.Bytes() - reserved
		if more > -0.01*reserved && more < foreignMin && more < least {
			best, least = i, more
		}
	}
	if best < 0 {
		return
	}
	s.self, s.this = m.Processes[best].ID, m.Processes[best].Used
	s.named = slices.Delete(slices.Clone(m.Processes), best, best+1)
}

func torchMessage(m *torchlog.Message) *reading.Reading {
	s := stateOf(m)
	r := &reading.Reading{Kind: "pytorch-oom-message", Line: m.Line, Name: "PyTorch (" + m.Backend + ")"}
	f := &r.Facts
	f.Text("format_variant", torchVariant(m))
	f.Text("backend", m.Backend)
	f.IntIf("device", m.Device, m.Device >= 0)
	f.Int("repeated", int64(m.Count))
	size(f, "requested", m.Requested)
	size(f, "capacity", m.Capacity)
	size(f, "free", m.Free)
	size(f, "allocated", m.Allocated)
	size(f, "reserved", s.reserved)
	size(f, "reserved_unallocated", s.idle)
	size(f, "this_process", s.this)
	f.IntIf("this_process_id", s.self, s.self >= 0)
	size(f, "private_pools", m.Private)
	size(f, "other_allocations", m.Other)
	processFacts(f, s)
	s.derived(f)
	f.Set("ledger", reading.Ledger(s.ledger()))
	f.Bool("truncated", m.Cut)
	r.Verdict = string(s.verdict())
	if s.paged {
		r.Flags = append(r.Flags, "oversubscribed_by_driver")
	}
	switch {
	case r.Verdict == string(analysis.OtherProcess):
		r.Secondary = s.beside()
	case r.Verdict == string(analysis.Full) && s.fitsInPieces(s.limit()):
		r.Secondary = string(analysis.Fragmented)
	}
	s.words(r)
	return r
}

func processFacts(f *reading.Facts, s *torchState) {
	if len(s.named) == 0 {
		f.Null("other_processes_gib")
		f.Null("other_process_ids")
	} else {
		var list []float64
		var ids []int64
		for _, p := range s.named {
			list = append(list, p.Used.In("GiB"))
			ids = append(ids, p.ID)
		}
		f.Floats("other_processes_gib", list)
		f.Ints("other_process_ids", ids)
	}
	size(f, "other_processes_total", s.others)
}

// derived are the figures that follow from the printed ones.
func (s *torchState) derived(f *reading.Facts) {
	m := s.m
	size(f, "non_torch_this_process", minus(s.this, m.Allocated, s.idle))
	size(f, "held_outside_torch", s.outside)
	size(f, "outside", s.outside)
	size(f, "non_torch", s.outside)
	size(f, "shortfall", minus(m.Requested, m.Free))
	size(f, "idle_plus_free", plus(s.idle, m.Free))
	f.Bool("allocated_exceeds_capacity", s.paged)
	if m.Form == torchlog.Async {
		size(f, "device_limit", m.Capacity)
		size(f, "unaccounted", minus(m.Capacity, m.Allocated, m.Free))
		f.Bool("user_limit_is_none", noLimit(m.Allowed))
	}
	size(f, "user_limit", m.Allowed)
}

// ledger is where the device's memory is by the message; nil where the driver
// moved some of it to the host's.
func (s *torchState) ledger() *ledger.Ledger {
	if s.paged {
		return nil
	}
	of := func(x figure) cause.Amount {
		if !x.Known || x.Bytes() >= nonsense {
			return cause.Amount{}
		}
		return cause.Of(int64(math.Round(x.Bytes())))
	}
	l := ledger.Of(ledger.Inputs{
		Total: of(s.m.Capacity), Others: of(s.others), Outside: of(minus(s.this, s.m.Allocated, s.idle)),
		Reserved: of(s.reserved), InUse: of(s.m.Allocated), Limit: of(s.m.Allowed), DriverFree: of(s.m.Free),
	})
	if l != nil {
		l.Rounded = true
	}
	return l
}

// noLimit: 2^64 bytes stand for none.
func noLimit(f figure) bool { return f.Known && f.Bytes() >= math.Ldexp(1, 63) }

func torchVariant(m *torchlog.Message) string {
	var s string
	switch {
	case m.Form == torchlog.Async:
		return "cudaMallocAsync backend, multi-line table"
	case m.Form == torchlog.MPS:
		return "MPS backend"
	case m.Form == torchlog.Host:
		return "the host's allocator"
	case m.Form == torchlog.Parenthesised && !m.Free.Known && !m.Cut:
		s = "parenthesised, without what is free"
	case m.Form == torchlog.Parenthesised && m.Cached:
		s = "before 1.4 parenthesised"
	case m.Form == torchlog.Parenthesised && m.MaxSplit:
		s = "1.10-2.0 parenthesised"
	case m.Form == torchlog.Parenthesised:
		s = "1.4-1.9 parenthesised"
	case m.Form == torchlog.Sentences && m.Misspelt:
		s = "2.1 sentence form"
	case m.Form == torchlog.Sentences:
		s = "2.2+"
	default:
		s = "request only"
	}
	switch n := m.Sentences; {
	case n > 1 && m.Private.Known:
		s += fmt.Sprintf(" with %d process sentences and private pools", n)
	case n > 1:
		s += fmt.Sprintf(" with %d process sentences", n)
	case m.Private.Known:
		s += " with private pools"
	}
	if m.Wrapped {
		s += ", hard-wrapped"
	}
	return s
}
