package torchlog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// Refusal is what is printed where the driver refused memory and only that is
// told: by PyTorch before 0.4, by libraries that ask the driver themselves, and
// by PyTorch where a kernel, a graph or a context wanted memory.
type Refusal struct {
	Line  int
	Count int
	By    string // CUDA, HIP or NCCL
	Bytes int64  // asked for; -1 where not told

	// Preempted: PyTorch itself refused, by throw_on_cudamalloc_oom, and did not ask
	// the driver. The figures are of such a one.
	Preempted                         bool
	Requested                         Figure
	Segment, Reserved, Allowed, Total Figure // of the warning before it
}

const maxRefusals = 64

// refusals are the words, and whose they are. Those of ONNX Runtime and of RMM
// are read by their own packages.
var refusals = []struct{ words, by string }{
	{"CUDA error: out of memory", "CUDA"},
	{"CUDA driver error: out of memory", "CUDA"},
	{"HIP error: out of memory", "HIP"},
	{"cuda runtime error (2) : out of memory", "CUDA"}, // to 0.3, and Torch 7
	{"hip runtime error (2) : out of memory", "HIP"},
	{"error=2 : out of memory", "CUDA"}, // THCudaCheck FAIL
	{"cuda failed with error 2 out of memory", "CUDA"},
	{"Cuda Error in allocate: 2 (out of memory)", "CUDA"},
	{"std::bad_alloc: cudaErrorMemoryAllocation: out of memory", "CUDA"},
	{"rror: CUDA out of memory", "CUDA"},
	{"Cuda failure 2 'out of memory'", "NCCL"},
	{"Cuda failure 'out of memory'", "NCCL"},
	{"Failed to CUDA calloc", "NCCL"},
	{"Failed to CUDA host alloc", "NCCL"},
}

// refusal recognises such a line.
func refusal(s string) (r Refusal, ok bool) {
	if head, after, ok := strings.Cut(s, "Allocation on device"); ok && head != "" && strings.TrimSpace(after) == "" {
		return Refusal{Count: 1, By: "CUDA", Bytes: -1}, true // the async backend's, without its table
	}
	if r, ok := preempted(s); ok {
		return r, true
	}
	if !strings.Contains(s, "out of memory") && !strings.Contains(s, "Failed to CUDA ") {
		return r, false
	}
	for _, k := range refusals {
		_, after, found := strings.Cut(s, k.words)
		if !found {
			continue
		}
		r = Refusal{Count: 1, By: k.by, Bytes: -1}
		after = strings.TrimPrefix(after, " async")
		if n, rest, ok := lines.Digits(strings.TrimLeft(after, " ")); ok && n <= 1<<62 && strings.HasPrefix(rest, " bytes") {
			r.Bytes = int64(n)
		}
		return r, true
	}
	return r, false
}

// preempted reads "Allocation was preemptively rejected because it would exceed
// per_process_memory_fraction limit. Requested size: 20.00 GiB", or the warning
// before it, which has the state.
func preempted(s string) (r Refusal, ok bool) {
	r = Refusal{Count: 1, By: "CUDA", Bytes: -1, Preempted: true}
	if _, after, found := strings.Cut(s, "Allocation was preemptively rejected"); found {
		r.Requested = figureAfter(after, "Requested size: ")
		return r, true
	}
	if _, after, found := strings.Cut(s, "Preemptively rejecting allocation: "); found {
		r.Count = 0 // the error that follows counts
		r.Segment = figureAfter(after, "requested ")
		r.Reserved = figureAfter(after, "total_allocated_memory (")
		r.Allowed = figureAfter(after, "memory limit (")
		r.Total = figureAfter(after, "% of ")
		return r, true
	}
	return r, false
}

// refused files it. One failure is printed in several words.
func (p *Parser) refused(num int, r Refusal) {
	if n := len(p.report.Refusals); r.Preempted && n > 0 && p.report.Refusals[n-1].Preempted {
		o := p.report.Refusals[n-1]
		switch {
		case !o.Requested.Known && r.Requested.Known: // the error after its warning
			o.Requested, o.Count = r.Requested, o.Count+1
			return
		case o.Requested == r.Requested:
			o.Count++
			return
		}
	}
	for _, o := range p.report.Refusals {
		if !r.Preempted && !o.Preempted && o.By == r.By && (o.Bytes == r.Bytes || r.Bytes < 0) {
			o.Count++
			return
		}
	}
	if len(p.report.Refusals) < maxRefusals {
		r.Line = num
		p.report.Refusals = append(p.report.Refusals, &r)
	}
}
