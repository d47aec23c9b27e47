package foreign

import (
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/torchlog"
)

// torchRefusal is of a refusal by the driver that tells no state.
func torchRefusal(x *torchlog.Refusal) *reading.Reading {
	r := &reading.Reading{Kind: "pytorch-oom-message", Line: x.Line, Name: x.By, Verdict: string(analysis.UndeterminedNoState)}
	f := &r.Facts
	f.Text("format_variant", "the driver's error alone")
	f.Text("backend", x.By)
	f.Int("repeated", int64(x.Count))
	asked := torchlog.Figure{}
	if x.Bytes >= 0 {
		asked = torchlog.FromBytes(float64(x.Bytes))
	}
	f.IntIf("requested_bytes", x.Bytes, x.Bytes >= 0)
	size(f, "requested", asked)
	for _, name := range []string{"capacity", "free", "allocated", "reserved"} {
		size(f, name, figure{})
	}
	f.Bool("truncated", false)
	r.Why = "The driver refused memory. Neither the request nor the state of the memory is in the text."
	r.Next = []string{"See what holds the card (nvidia-smi); such an error at the start of a program means that the card was full already."}
	if x.By == "NCCL" {
		amount := "memory"
		if x.Bytes >= 0 {
			amount = event.FormatBytes(x.Bytes)
		}
		r.Why = "NCCL asked the driver for " + amount + " beside PyTorch's pool, for its buffers, and was refused. What the device had free is not in the text."
		r.Next = []string{"Leave some of the card to NCCL: a smaller share for the pool, fewer channels (NCCL_MAX_NCHANNELS), and only one process on each card."}
	}
	return r
}
