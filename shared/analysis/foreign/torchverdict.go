package foreign

import (
	"fmt"
	"math"

	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/torchlog"
)

// nonsense is more than any device holds, in bytes.
var nonsense = math.Ldexp(1, 50)

// foreignMin is more than a driver's context takes, in bytes.
const foreignMin = 1.5 * gib

// verdict applies the rules of package cause to what a message tells; the first
// that holds decides. The figures have two decimals, so sums are only as good
// as that.
func (s *torchState) verdict() analysis.Verdict {
	m := s.m
	if m.Form == torchlog.Async {
		return s.asyncVerdict()
	}
	if v, ok := s.impossible(); ok {
		return v
	}
	switch {
	case m.Form == torchlog.MPS:
		return s.mpsVerdict()
	case m.Form == torchlog.Host:
		return analysis.UndeterminedNoState
	case m.Block.Known && m.Requested.Known && s.request > m.Block.Bytes():
		return analysis.LimitTooLow
	case m.Form == torchlog.Parenthesised && !m.Free.Known && !m.Cut:
		return s.withoutFree()
	}
	known := m.Capacity.Known && m.Free.Known && m.Allocated.Known && m.Requested.Known && s.reserved.Known
	if !known {
		if m.Cut || m.Form != torchlog.NoState {
			return analysis.UndeterminedTruncated
		}
		return analysis.UndeterminedNoState
	}
	limit := s.limit()
	if limit < s.capacity && (s.request > limit || s.used+s.request > limit && s.used+s.request <= s.reserved.Bytes()+s.free) {
		return analysis.LimitTooLow
	}
	switch {
	case s.heldByOthers(limit):
		return analysis.OtherProcess
	case s.free >= s.request && !s.mayNotGrow(limit):
		return analysis.DriverRefusedDespiteFree
	case s.fitsInPieces(limit) && !s.nearlyFull(limit):
		return analysis.Fragmented
	}
	return analysis.Full
}

// mpsVerdict is Apple's: the pool stops at a mark that it sets itself, and what
// else of the process is on the device counts too.
func (s *torchState) mpsVerdict() analysis.Verdict {
	m := s.m
	switch {
	case m.Cut || !m.Requested.Known:
		return analysis.UndeterminedTruncated
	case s.request > m.Allowed.Bytes():
		return analysis.LimitTooLow
	}
	return analysis.Full
}

// withoutFree is for messages that never tell what is free on the device: only
// what does not fit beside what is allocated is certain.
func (s *torchState) withoutFree() analysis.Verdict {
	if s.m.Requested.Known && s.used+s.request > s.capacity {
		return analysis.Full
	}
	return analysis.UndeterminedNoState
}

// limit is what the process may hold: the device, or a configured part of it.
func (s *torchState) limit() float64 {
	if a := s.m.Allowed; a.Known && !noLimit(a) && a.Bytes() < s.capacity {
		return a.Bytes()
	}
	return s.capacity
}

// mayNotGrow: a limit forbids to take the request from the driver, as far as
// figures of two decimals can tell. Without a limit the capacity bounds what all
// hold, and what is free is in it.
func (s *torchState) mayNotGrow(limit float64) bool {
	return limit < s.capacity && s.reserved.Bytes()+s.request > limit-printed(s.m.Allowed)
}

// printed is how far a figure may be from what it was before it was printed:
// half of its last digit.
func printed(f figure) float64 {
	if f.Unit == "bytes" {
		return 0
	}
	return torchlog.Figure{Value: 0.005, Unit: f.Unit, Known: true}.Bytes()
}

// fitsInPieces: what is idle and what is free would do if they were in one.
func (s *torchState) fitsInPieces(limit float64) bool {
	return s.used+s.request <= min(limit, s.reserved.Bytes()+s.free)
}

// nearlyFull: the idle memory would not do even in one piece, and little of the
// device is not allocated. That it lies in pieces is then the lesser matter.
func (s *torchState) nearlyFull(limit float64) bool {
	return s.idle.Known && s.idle.Bytes() < s.request && s.used >= 0.9*limit
}

// impossible: sizes that no state of the memory could serve.
func (s *torchState) impossible() (analysis.Verdict, bool) {
	m := s.m
	switch {
	case m.BeyondAll || s.request >= nonsense || m.Capacity.Known && s.capacity > 0 && s.request > 1000*s.capacity:
		return analysis.NotMemory, true
	case m.Capacity.Known && m.Requested.Known && s.request > s.capacity-s.own():
		return analysis.RequestExceedsDevice, true
	}
	return "", false
}

// own is what this process holds beside the allocator, as far as it is told.
func (s *torchState) own() float64 {
	x := minus(s.this, s.m.Allocated, s.idle)
	if !x.Known {
		return 0
	}
	return max(0, x.Bytes())
}

// heldByOthers: the allocator was still allowed to grow, and the driver could
// not, because somebody else has the memory.
func (s *torchState) heldByOthers(limit float64) bool {
	lack := s.request - s.free
	// Without a configured limit the capacity bounds what all may hold, so
	// that alone never forbids to grow.
	if lack <= 0 || limit < s.capacity && s.reserved.Bytes()+s.request > limit {
		return false
	}
	if s.others.Known {
		return s.others.Bytes() >= lack
	}
	if s.this.Known {
		return s.capacity-s.free-s.this.Bytes() > max(foreignMin, lack)
	}
	return !s.paged && s.capacity-s.free-s.reserved.Bytes() > max(foreignMin, lack)
}

// beside says what this process itself looks like where others are the cause:
// its own memory well used, or lying idle.
func (s *torchState) beside() string {
	reserved := s.reserved.Bytes()
	switch {
	case reserved < s.capacity/2:
		return ""
	case s.used >= 0.95*reserved:
		return string(analysis.Full)
	case s.idle.Known && s.idle.Bytes()+s.free >= s.request:
		return string(analysis.Fragmented)
	}
	return ""
}

func (s *torchState) asyncVerdict() analysis.Verdict {
	m := s.m
	if v, ok := s.impossible(); ok {
		return v
	}
	if !m.Requested.Known || !m.Capacity.Known || !m.Free.Known || !m.Allocated.Known {
		return analysis.UndeterminedTruncated
	}
	if m.Allowed.Known && !noLimit(m.Allowed) && m.Allowed.Bytes() < s.capacity && s.used+s.request > m.Allowed.Bytes() {
		return analysis.LimitTooLow
	}
	switch {
	case s.free >= s.request:
		return analysis.DriverRefusedDespiteFree
	case s.capacity-s.free-s.used >= s.request-s.free:
		return analysis.FragmentedPoolOrCached
	}
	return analysis.Full
}

// words puts the verdict into sentences.
func (s *torchState) words(r *reading.Reading) {
	m := s.m
	row := func(label string, f figure) {
		if f.Known {
			r.Row(label, show(f))
		}
	}
	row("asked for", m.Requested)
	row("free on the device", m.Free)
	row("device", m.Capacity)
	row("allocated by PyTorch", m.Allocated)
	row("  in private pools", m.Private)
	row("by others in this process", m.Other)
	if !noLimit(m.Allowed) {
		row("allowed", m.Allowed)
	}
	row("reserved, idle", s.idle)
	if s.others.Known {
		row("held by other processes", s.others)
	} else {
		row("held outside of PyTorch", s.outside)
	}
	for _, p := range s.named {
		row(fmt.Sprintf("  process %d", p.ID), p.Used)
	}
	if s.self >= 0 {
		row(fmt.Sprintf("process %d, this program", s.self), s.this)
	}
	r.Why, r.Next = s.why(r)
	r.Why += s.whoIsSelf()
	if m.Cut {
		r.Open = append(r.Open, "The message is cut.")
	}
	if m.Requested.Known && m.Form != torchlog.NoState {
		r.Open = append(r.Open, "The figures are printed with two decimals; sums of them can be off by a hundredth each.")
	}
	if over := minus(s.others, s.outside); over.Known && over.Bytes() > 0.02*gib {
		r.Open = append(r.Open, fmt.Sprintf("The other processes' figures come to %s more than capacity, less free and reserved, leaves (%s): they are rounded, or from slightly different moments.", show(over), show(s.outside)))
	}
	if r.Verdict == string(analysis.OtherProcess) && len(s.named) == 0 {
		r.Open = append(r.Open, "Who holds the memory is not in the message; nvidia-smi on the host tells.")
	}
	if m.Untold > 0 {
		r.Open = append(r.Open, "What a process has in use is printed as 17179869184.00 GiB, which is 2^64 bytes and stands for a figure that the driver does not tell, as on Windows and under WSL.")
	}
	if s.paged {
		r.Open = append(r.Open, "More is allocated than the card has: the driver moves device memory to the host's, as on Windows, so free and reserved figures do not add up.")
	}
}

// mostDigits is how much of a number is shown that no memory could have.
const mostDigits = 40

func show(f figure) string {
	switch b := f.Bytes(); {
	case len(f.Text) > mostDigits:
		return f.Text[:mostDigits] + "… " + f.Unit
	case f.Text != "":
		return f.Text + " " + f.Unit
	case math.Abs(b) >= gib:
		return fmt.Sprintf("%.2f GiB", f.In("GiB"))
	case math.Abs(b) >= mib:
		return fmt.Sprintf("%.2f MiB", f.In("MiB"))
	default:
		return fmt.Sprintf("%.0f bytes", b)
	}
}

func (s *torchState) why(r *reading.Reading) (string, []string) {
	m := s.m
	asked := show(m.Requested)
	switch analysis.Verdict(r.Verdict) {
	case analysis.NotMemory:
		if m.BeyondAll {
			return "The size asked for is beyond any memory. It comes from a shape gone wrong, not from a lack of memory.", []string{"Find the op in the traceback, and check the sizes that go into it."}
		}
		if m.Requested.Text == "" {
			asked += fmt.Sprintf(" (%.1f TiB)", s.request/(1024*gib))
		}
		return "A request of " + asked + " is no size that a device could have. It comes from a shape gone wrong, not from a lack of memory.",
			[]string{"Find the op in the traceback, and check the sizes that go into it."}
	case analysis.RequestExceedsDevice:
		times := fmt.Sprintf("is %.1f times the whole device (%s)", s.request/s.capacity, show(m.Capacity))
		if s.request < 1.05*s.capacity {
			times = fmt.Sprintf("is more than the device (%s) can give", show(m.Capacity))
		}
		return fmt.Sprintf("The request alone (%s) %s. No allocator setting can help.", asked, times),
			[]string{"Make this tensor smaller: a smaller batch or input, or the computation in pieces."}
	case analysis.LimitTooLow:
		switch {
		case m.Block.Known:
			return fmt.Sprintf("The platform gives no single block of more than %s, and %s were asked for, however much is free.", show(m.Block), asked),
				[]string{"Make this tensor smaller, or compute it in pieces."}
		case m.Form == torchlog.MPS:
			return fmt.Sprintf("%s were asked for, more than PyTorch lets itself use of this machine (%s) in all.", asked, show(m.Allowed)),
				[]string{"Make this tensor smaller. PYTORCH_MPS_HIGH_WATERMARK_RATIO raises the mark, as far as the machine has memory."}
		}
		beside := ""
		if m.Allocated.Known && s.request <= m.Allowed.Bytes() {
			beside = fmt.Sprintf(" beside the %s in use", show(m.Allocated))
		}
		return fmt.Sprintf("The process may only use %s of the device's %s, and the request of %s%s passes that.", show(m.Allowed), show(m.Capacity), asked, beside),
			[]string{"Raise the fraction given to set_per_process_memory_fraction, if the device has room."}
	case analysis.OtherProcess:
		held, by := s.outside, "something that is not this PyTorch allocator"
		if s.others.Known {
			held, by = s.others, "other processes"
		}
		return fmt.Sprintf("%s were asked for and %s are free, while %s are held by %s.", asked, show(m.Free), show(held), by),
			[]string{"Free the card: other processes, other frameworks in this process, or what an earlier run left behind."}
	case analysis.Fragmented:
		next := []string{"Free the cache between phases."}
		if m.Private.Known && m.Private.Bytes() > 0 {
			next[0] = "Free the cache between phases, and keep large temporary tensors out of private pools."
		}
		if !m.Expandable {
			next = append(next, "Expandable segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) avoid this where they are supported and not on already.")
		} else {
			next = append(next, "Expandable segments avoid this, if they are not on already: the message recommends them either way.")
		}
		if s.free >= s.request {
			next = append([]string{fmt.Sprintf("Raise the fraction given to set_per_process_memory_fraction: the device has %s free.", show(m.Free))}, next...)
			return fmt.Sprintf("The process may hold %s of the device and has reserved %s, so the request of %s must be served from what is reserved and idle (%s), which lies in pieces or in another pool.",
				show(m.Allowed), show(s.reserved), asked, show(s.idle)), next
		}
		return fmt.Sprintf("The request of %s misses the device's free %s by %s, while %s are reserved and idle: each idle segment still has something alive in it, so it cannot be given back.",
			asked, show(m.Free), show(minus(m.Requested, m.Free)), show(s.idle)), next
	case analysis.FragmentedPoolOrCached:
		return fmt.Sprintf("%s of the device are neither allocated by PyTorch nor free: cached in the driver's pool, or held by libraries or other processes.", show(minus(m.Capacity, m.Allocated, m.Free))),
			[]string{"Trim the pool before the request, and look with nvidia-smi at what others hold; the message cannot tell the two apart."}
	case analysis.DriverRefusedDespiteFree:
		return fmt.Sprintf("The driver refused %s although %s were free.", asked, show(m.Free)),
			[]string{"See what else starts or ends on the card at that moment, and what it really has free; a driver keeps some of it back, and on a display card or under WSL it is shared."}
	case analysis.Full:
		if r.Secondary == string(analysis.Fragmented) {
			return s.whyNearlyFull()
		}
		if m.Form == torchlog.MPS {
			return fmt.Sprintf("%s were asked for; PyTorch's pool holds %s and others in this process %s of the %s that PyTorch lets itself use.", asked, show(m.Allocated), show(m.Other), show(m.Allowed)),
				[]string{"Less must live at once. torch.mps.empty_cache() gives back what the pool keeps; PYTORCH_MPS_HIGH_WATERMARK_RATIO raises the mark, as far as the machine has memory."}
		}
		return fmt.Sprintf("%s were asked for; even with everything idle given back the device could not hold it beside the %s in use.", asked, show(m.Allocated)),
			[]string{"Less must live at once: a smaller batch, less kept for the backward pass, lower precision, or a larger device."}
	case analysis.UndeterminedTruncated:
		if !m.Requested.Known && m.Capacity.Known {
			return "The beginning of the message, which tells the request, is not in the text.", []string{"Look for the whole message: the request decides whether it could have been served."}
		}
		return "The message is cut where it would tell the state of the memory.", []string{"Look for the whole message: it names capacity, free, allocated and reserved."}
	default:
		switch m.Form {
		case torchlog.Host:
			return fmt.Sprintf("The host refused %s of its own memory, not the device's.", asked),
				[]string{"See how much memory the machine or the container has free, and the limit of the container, and whether the size is meant."}
		case torchlog.Parenthesised:
			return fmt.Sprintf("%s were asked for beside %s in use of %s. What was free on the device is not in messages of this kind.", asked, show(m.Allocated), show(m.Capacity)), nil
		default:
			return "The message names the request, but nothing about the state of the memory.", nil
		}
	}
}

// whyNearlyFull is of a device that is nearly full, and what is left of it in
// pieces.
func (s *torchState) whyNearlyFull() (string, []string) {
	m, rest := s.m, plus(s.idle, s.m.Free)
	return fmt.Sprintf("%.0f %% of what PyTorch may use is allocated. %s were asked for; %s are free and %s reserved and idle: each is too little, and together they would do only in one piece.",
			100*s.used/s.limit(), show(m.Requested), show(m.Free), show(s.idle)),
		[]string{
			"Less must live at once: a smaller batch, less kept for the backward pass, lower precision, or a larger device.",
			fmt.Sprintf("Expandable segments, if they are not on already, join such pieces: at best %s would remain after this request.", show(minus(rest, m.Requested))),
		}
}

// whoIsSelf says which of the named processes is the program that failed.
func (s *torchState) whoIsSelf() string {
	if s.self < 0 {
		return ""
	}
	t := fmt.Sprintf(" Process %d is most likely this program itself, seen from outside its container: it holds about what PyTorch has reserved (%s)", s.self, show(s.reserved))
	if more := minus(s.this, s.reserved); more.Bytes() > 0 {
		t += fmt.Sprintf(" and %s of context and libraries", show(more))
	}
	return t + "."
}
