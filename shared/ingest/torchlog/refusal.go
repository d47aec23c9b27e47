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

// refused files it. One failure is printed in several words.
func (p *Parser) refused(num int, r Refusal) {
	for _, o := range p.report.Refusals {
		if o.By == r.By && (o.Bytes == r.Bytes || r.Bytes < 0) {
			o.Count++
			return
		}
	}
	if len(p.report.Refusals) < maxRefusals {
		r.Line = num
		p.report.Refusals = append(p.report.Refusals, &r)
	}
}
