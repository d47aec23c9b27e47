package foreign

import (
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/torchlog"
)

// torchRefusal is of a refusal by the driver that tells no state.
func torchRefusal(x *torchlog.Refusal) *reading.Reading {
	if x.Preempted {
		return torchPreempted(x)
	}
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

// torchPreempted is of a request that PyTorch refused by itself.
func torchPreempted(x *torchlog.Refusal) *reading.Reading {
	r := &reading.Reading{Kind: "pytorch-oom-message", Line: x.Line, Name: "PyTorch (" + x.By + ")", Verdict: string(analysis.LimitTooLow)}
	f := &r.Facts
	f.Text("format_variant", "refused by throw_on_cudamalloc_oom")
	f.Text("backend", x.By)
	f.Int("repeated", int64(max(1, x.Count)))
	size(f, "requested", x.Requested)
	size(f, "capacity", x.Total)
	size(f, "free", figure{})
	size(f, "allocated", figure{})
	size(f, "reserved", x.Reserved)
	size(f, "user_limit", x.Allowed)
	f.Bool("truncated", false)
	for _, p := range []struct {
		label string
		figure
	}{{"asked for", x.Requested}, {"segment for it", x.Segment}, {"reserved", x.Reserved}, {"allowed", x.Allowed}, {"of the device's", x.Total}} {
		if p.Known {
			r.Row(p.label, event.FormatBytes(int64(p.Bytes())))
		}
	}
	r.Why = "PyTorch refused by itself, as throw_on_cudamalloc_oom has it: what is reserved and a new segment would pass the part of the device that per_process_memory_fraction allows, or the device. Idle memory counts as reserved, and none was given back for the request."
	r.Next = []string{
		"Without throw_on_cudamalloc_oom PyTorch gives idle memory back and tries again; or call torch.cuda.empty_cache() before the large request.",
		"Raise per_process_memory_fraction if it is below 1 and the card has more.",
	}
	if !x.Reserved.Known {
		r.Open = append(r.Open, "How much was reserved, and how much of it idle, is not in the text; the warning \"Preemptively rejecting allocation\" before the error tells the first.")
	} else {
		r.Open = append(r.Open, "How much of what was reserved was idle is not in the text.")
	}
	return r
}
