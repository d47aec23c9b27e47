package foreign

import (
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/killlog"
)

// Killed judges how programs ended that told no figures: each of the kernel's
// kills, a shell's word where the kernel's is not there, and vLLM's message.
func Killed(rep *killlog.Report) (out []*reading.Reading) {
	for i := range rep.Kills {
		out = append(out, kernelKill(&rep.Kills[i]))
	}
	if rep.Cut {
		out[len(out)-1].Open = append(out[len(out)-1].Open, "More kills follow, which were left out.")
	}
	if rep.Shell > 0 && len(rep.Kills) == 0 {
		r := endReading(rep.Shell, "the shell", nil)
		r.Verdict = string(analysis.UndeterminedNoState)
		r.Why = "The program was killed from outside (signal 9). Mostly that is the kernel, for lack of the host's memory, not the device's."
		r.Next = []string{
			"Look at what the kernel says: dmesg -T | grep -i oom, or journalctl -k; in a container, whether its memory limit was met (exit code 137, OOMKilled).",
			"If it was: fewer or smaller batches in flight (workers, prefetch), data not read whole into memory, or more memory for the host or the container.",
		}
		out = append(out, r)
	}
	if rep.Cache > 0 {
		r := endReading(rep.Cache, "vLLM", nil)
		r.Verdict = "no_room_for_cache"
		r.Why = "vLLM found no room for its cache of keys and values: the weights, and what a trial step took, fill the share of the card that it may use. Nothing failed to be allocated; it refuses to begin."
		r.Next = []string{
			"Raise gpu_memory_utilization, if nobody else is on the card (nvidia-smi tells).",
			"Else take less: a shorter max_model_len or fewer max_num_seqs (the trial step is smaller), quantised weights, or tensor_parallel_size over more cards.",
		}
		r.Open = append(r.Open, "How much the weights and the trial step took is not in this message; vLLM logs it in lines before.")
		out = append(out, r)
	}
	return out
}

// endReading has the facts of every end; k is nil where the kernel says nothing.
func endReading(line int, name string, k *killlog.Kill) *reading.Reading {
	r := &reading.Reading{Kind: "process-end", Line: line, Name: name}
	if k == nil {
		k = &killlog.Kill{PID: -1, Bytes: -1}
	}
	r.Facts.IntIf("process_id", k.PID, k.PID >= 0)
	r.Facts.Text("process", k.Name)
	r.Facts.IntIf("resident_bytes", k.Bytes, k.Bytes >= 0)
	r.Facts.Bool("is_limit_of_group", k.Limited)
	return r
}

func kernelKill(k *killlog.Kill) *reading.Reading {
	r := endReading(k.Line, "the kernel", k)
	r.Verdict = "host_out_of_memory"
	what := "a process"
	if k.Name != "" {
		what = k.Name
	}
	if k.PID >= 0 {
		what += fmt.Sprintf(" (%d)", k.PID)
	}
	r.Why = "The kernel killed " + what
	if k.Bytes >= 0 {
		r.Why += fmt.Sprintf(", which had %s in memory", event.FormatBytes(k.Bytes))
		r.Row("in memory", event.FormatBytes(k.Bytes))
	}
	if k.Limited {
		r.Why += ": the memory limit of its group (a container, a job) was met. It is the host's memory, not the device's."
		r.Next = []string{"Raise the limit of the container or job, or take less: fewer loader workers, less prefetch, data not read whole into memory, no second copy of the weights while loading."}
	} else {
		r.Why += ": the host had no memory left. It is the host's memory, not the device's."
		r.Next = []string{"Take less: fewer loader workers, less prefetch, data not read whole into memory, no second copy of the weights while loading; or give the host memory or swap."}
	}
	r.Open = append(r.Open, "What held the memory within the process is not told by the kernel.")
	return r
}
