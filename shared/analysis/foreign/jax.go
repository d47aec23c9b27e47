package foreign

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/device/jax"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/ingest/driverlog"
	"tideline/shared/ingest/xlalog"
)

// xlaPool is what the client said of the failure's pool when it began; nil where
// the text has no such line. The dump gets the limit, which its short form lacks.
func xlaPool(x *xlalog.Failure, d *bfclog.Dump, card *driverlog.Report) *driverlog.Pool {
	n, ok := deviceOf(d.Allocator)
	if x.Device >= 0 {
		n, ok = x.Device, true
	}
	if !ok || x.Platform || d.HostPinned() {
		return nil
	}
	pool := card.Pool(n, x.Line)
	if pool != nil && !d.Limit.Or(d.PoolLimit).Known {
		d.PoolLimit = bfclog.ExactSize(pool.Limit)
	}
	return pool
}

// tensorFlows says that the request is of a program of TensorFlow's, which names
// its op; there the limit has other rules and other settings.
func tensorFlows(a *analysis.Reading) bool { return a.Op != "" || a.ByOp != "" }

// jaxWhy says where the pool's limit comes from, as far as that can be told.
func jaxWhy(a *analysis.Reading, pool *driverlog.Pool) string {
	if !a.Limit.Known || a.HostPinned || tensorFlows(a) {
		return ""
	}
	s := fmt.Sprintf(" JAX's limit is %.0f %% of all memory of the card unless %s says otherwise; %s would be that of a card of %s.",
		100*jax.Part, jax.Fraction, event.FormatBytes(a.Limit.N), event.FormatBytes(int64(float64(a.Limit.N)/jax.Part)))
	switch {
	case pool == nil:
	case pool.Whole:
		s += " It was taken at once."
	default:
		s += fmt.Sprintf(" It was not taken at once (%s=false).", jax.Preallocate)
	}
	return s
}

// jaxNext names the variable that would change the outcome, with its value where
// that follows.
func jaxNext(r *reading.Reading, a *analysis.Reading, pool *driverlog.Pool) []string {
	if a.HostPinned || tensorFlows(a) {
		return nil
	}
	switch analysis.Verdict(r.Verdict) {
	case analysis.LimitTooLow, analysis.Full, analysis.UndeterminedNoState, analysis.FullOrFragmentedByBar:
		if s := jaxRaise(a); s != "" {
			return []string{s}
		}
		return []string{fmt.Sprintf("See with nvidia-smi what else holds the card, and which %s is set (%s in older releases): the pool is %.0f %% of all memory of the card by default.",
			jax.Fraction, jax.OldFraction, 100*jax.Part)}
	case analysis.OtherProcess:
		return []string{fmt.Sprintf("Give each process of the card its part: %s=.40 for each of two. %s=false alone lets them grow into each other.", jax.Fraction, jax.Preallocate)}
	case analysis.Fragmented:
		if pool != nil && !pool.Whole {
			return []string{fmt.Sprintf("Leave %s on: one region of the whole limit has no borders that free memory cannot join across.", jax.Preallocate)}
		}
		return []string{fmt.Sprintf("%s=cuda_async (CUDA 11.2 or newer) maps memory in pages and has no such holes.", jax.Allocator)}
	default:
		return nil
	}
}

// jaxRaise is the part of the card that makes room for what is in use and the
// request; "" where neither the limit nor the request is told.
func jaxRaise(a *analysis.Reading) string {
	if !a.Limit.Known || !a.Requested.Known {
		return ""
	}
	want, what := a.Requested.N, "the request alone"
	if a.InUse.Known {
		want, what = want+a.InUse.N, "what is in use and the request"
	} else if want <= a.Limit.N {
		return ""
	}
	hundredths, ok := jax.Raise(a.Limit.N, want)
	if !ok {
		return fmt.Sprintf("No %s gives as much: %s is more than 95 %% of the card if the pool has the default part of it now.", jax.Fraction, what)
	}
	return fmt.Sprintf("%s=%.2f (%s in older releases) makes room for %s, %s in all, if the pool has the default part of the card now and nothing else holds the rest.",
		jax.Fraction, float64(hundredths)/100, jax.OldFraction, what, event.FormatBytes(want))
}
