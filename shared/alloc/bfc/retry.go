package bfc

import (
	"strconv"

	"tideline/shared/alloc"
)

// failed goes on after the first attempt for w found nothing: it retries,
// waits, and says so in the log, as r and the options allow. It returns the
// chunk that a later attempt got, or none.
func (a *Allocator) failed(w *want, r *alloc.Request) uint32 {
	if a.o.NoRetry || r.NoRetry {
		a.logFailure(w, r)
		return none
	}
	if r.Bytes == 0 {
		return none
	}
	left, first := int64(0), true
	for {
		if h := a.again(w, r); h != none {
			return h
		}
		if first {
			left, first = RetryNanos, false
		}
		if left <= 0 {
			break
		}
		waited := a.obs.Wait(left)
		if waited < 1 || waited > left {
			waited = left
		}
		a.waited += waited
		left -= waited
	}
	h := a.again(w, r)
	if h == none {
		a.dump(w)
	}
	return h
}

func (a *Allocator) again(w *want, r *alloc.Request) uint32 {
	if r.FreedBy != nil {
		w.freedBy = r.FreedBy()
	}
	return a.attempt(w)
}

// logFailure writes about the failure of a request that is not retried, for
// the first few of the process.
func (a *Allocator) logFailure(w *want, r *alloc.Request) {
	if !a.failures.Open() {
		return
	}
	if !r.NoRetry && r.Bytes != 0 {
		a.dump(w)
	}
	a.failures.Count()
	var b []byte
	b = append(b, "Allocator ("...)
	b = append(b, a.o.Name...)
	b = append(b, ") ran out of memory trying to allocate "...)
	b = append(b, a.human(w.requested)...)
	if a.o.Profile == Current {
		b = append(b, " from the "...)
		b = append(b, tagNames[w.end]...)
		b = append(b, " end"...)
	}
	b = append(b, " with freed_by_count="...)
	b = strconv.AppendUint(b, w.freedBy, 10)
	switch {
	case r.NoRetry:
		b = append(b, ". The caller indicates that this is not a failure, but this may mean that "+
			"there could be performance gains if more memory were available."...)
	default:
		b = append(b, '.')
	}
	a.obs.Log(alloc.Warning, string(b))
}
