package analysis

import (
	"fmt"

	"tideline/shared/ingest/bfclog"
)

// The origins of a small limit, as likely causes.
const (
	othersBefore = "other_process_before_start" // it is what others had left
	limitSet     = "limit_set"                  // it was set while more was free
)

// keptBack is the most that TensorFlow leaves of what is free when it takes all
// else, bytes; on large cards a tenth of the card.
const keptBack = int64(1700) << 20

// origin tells where the limit came from, by what was free at the start. It is
// "" where the text does not tell that, or where the limit is that of a whole
// card.
func (r *Reading) origin() string {
	s := &r.Start
	if !s.Free.Known || !r.Limit.Known || r.HostPinned {
		return ""
	}
	kept := keptBack
	if s.Total.Known {
		kept = max(kept, s.Total.N/10)
		if s.Free.N > s.Total.N-s.Total.N/10 && s.Free.N-r.Limit.N <= kept {
			return "" // nearly all was free, and nearly all was taken
		}
	}
	if s.Free.N-r.Limit.N > kept {
		return limitSet
	}
	if s.Total.Known && s.Free.N < s.Total.N/2 {
		return othersBefore
	}
	return ""
}

// startWhy says in a sentence where the limit came from; "" where that is not
// known.
func (r *Reading) startWhy() string {
	of := "the device"
	if r.Start.Total.Known {
		of = "the device's " + bfclog.Spaced(r.Start.Total.Text)
	}
	switch r.origin() {
	case limitSet:
		return fmt.Sprintf(" When the program began, %s of %s were free, so the limit was set by the program and not by what others had left.", bfclog.Spaced(r.Start.Free.Text), of)
	case othersBefore:
		return fmt.Sprintf(" When the program began, only %s of %s were free: others held the rest, and the limit is what they had left.", bfclog.Spaced(r.Start.Free.Text), of)
	default:
		return ""
	}
}

// startAdvice is what to do about such a limit; "" where that is not known.
func (r *Reading) startAdvice() string {
	switch r.origin() {
	case limitSet:
		return "Raise the limit of the program: memory_limit of set_logical_device_configuration, or per_process_gpu_memory_fraction."
	case othersBefore:
		return "See with nvidia-smi what holds the card before the program starts, and end it; the limit then grows by itself."
	default:
		return ""
	}
}
