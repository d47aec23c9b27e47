package foreign

import (
	"fmt"

	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/xlalog"
)

// tpuRows adds the sizes that are told: label, size, label, size.
func tpuRows(r *reading.Reading, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			r.Row(pairs[i], spelt(pairs[i+1]))
		}
	}
}

// tpuRequest tells what the runtime was asked for and what it had, and what an
// instruction or the kinds of cores take; null where the text is of another sort.
func tpuRequest(f *reading.Facts, c *xlalog.Compile) {
	q := c.Refused
	if q == nil {
		q = &xlalog.Refusal{Bytes: -1, InUseBytes: -1}
	}
	texts(f, "instruction", c.Instruction, "tensor_core_text", c.TensorCore, "sparse_core_text", c.SparseCore,
		"requested_text", q.Requested, "free_text", q.Free, "reservable_text", q.Reservable, "largest_free_text", q.Largest,
		"in_use_text", q.InUse, "device", q.Device, "executable", q.Program)
	f.IntIf("requested_bytes", q.Bytes, q.Bytes >= 0)
	f.IntIf("in_use_bytes", q.InUseBytes, q.InUseBytes >= 0)
}

// texts adds facts: name, text, name, text.
func texts(f *reading.Facts, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Text(pairs[i], pairs[i+1])
	}
}

// tpuRefused judges a request of the runtime. The figures are rounded, so what
// differs by less than their last digit is not told apart.
func tpuRefused(r *reading.Reading, c *xlalog.Compile) {
	q := c.Refused
	what := "The request"
	if q.Reserve || q.Program != "" {
		what = "The compiled program"
	}
	tpuRows(r, "asked for", q.Requested, "free", q.Free, "free in one piece", q.Largest, "reservable", q.Reservable,
		"in use", q.InUse, "capacity", c.Capacity)
	need, ok1 := unitText(q.Requested)
	free, ok2 := unitText(q.Free)
	capacity, ok3 := unitText(c.Capacity)
	largest, ok4 := unitText(q.Largest)
	if reservable, ok := unitText(q.Reservable); q.Reserve && ok && (!ok4 || reservable < largest) {
		largest, ok4 = reservable, true
	}
	const smaller = "A smaller batch or model, 16-bit types, or a split over more devices."
	switch {
	case !ok1 || !ok2:
		r.Verdict = "undetermined_truncated"
		r.Why = "The sentence with what was asked for and what was free is cut."
	case ok3 && need > capacity:
		r.Verdict = "program_exceeds_device"
		r.Why = fmt.Sprintf("%s needs %s of a memory of %s.", what, spelt(q.Requested), spelt(c.Capacity))
		r.Next = []string{smaller}
	case need > free:
		r.Verdict = "full"
		r.Why = fmt.Sprintf("%s needs %s, and %s of the device's memory is free.", what, spelt(q.Requested), spelt(q.Free))
		r.Next = []string{"Let go of arrays that are kept longer than they are needed, and donate the inputs of a program to its results.", smaller}
	case ok4 && need > largest:
		r.Verdict = "fragmented"
		where := "in one piece"
		if q.Reserve {
			where = "at the bottom of memory, where a program must lie"
		}
		r.Why = fmt.Sprintf("%s needs %s, and %s is free, but no more than %s %s.", what, spelt(q.Requested), spelt(q.Free), spelt(unitAs(largest)), where)
		r.Next = []string{"Make the large arrays first and keep them; let go of small ones that lie between."}
	default:
		r.Verdict = "fragmented"
		r.Why = fmt.Sprintf("%s needs %s, and %s is free, so it can only be that it is not free in one piece.", what, spelt(q.Requested), spelt(q.Free))
		r.Next = []string{"Make the large arrays first and keep them; let go of small ones that lie between."}
	}
	if c.Capacity == "" {
		r.Open = append(r.Open, "The size of the device's memory is not in the text, nor what holds the rest of it.")
	}
}

// tpuScoped judges the memory that one instruction takes for itself, mostly a
// hand-written kernel. Its limit is a setting of the compiler, not the chip's.
func tpuScoped(r *reading.Reading, c *xlalog.Compile) {
	tpuRows(r, "asked for", c.Used, "limit", c.Capacity, "over it by", c.Exceeded)
	r.Next = []string{"Make the blocks of the kernel smaller, or raise the limit for one instruction (xla_tpu_scoped_vmem_limit_kib)."}
	if c.Used == "" || c.Capacity == "" {
		r.Verdict = "undetermined_truncated"
		r.Why = "One instruction takes more of the space than it may; how much, and what its limit is, is not in the text."
		return
	}
	r.Verdict = "limit_too_low"
	r.Why = fmt.Sprintf("One instruction takes %s for itself, and its limit is %s. The limit is a setting of the compiler, below what the chip has.", spelt(c.Used), spelt(c.Capacity))
}

// tpuCores judges a program of both kinds of cores.
func tpuCores(r *reading.Reading, c *xlalog.Compile) {
	f := &r.Facts
	tpuRows(r, "TensorCore", c.TensorCore, "SparseCore", c.SparseCore, "available", c.Capacity)
	tensor, ok1 := unitText(c.TensorCore)
	sparse, ok2 := unitText(c.SparseCore)
	if !ok1 || !ok2 || c.Capacity == "" {
		r.Verdict = "undetermined_truncated"
		r.Why = "The sentence with use and capacity is cut."
		return
	}
	f.Text("used_text", unitAs(tensor+sparse))
	most := "SparseCore"
	r.Next = []string{"Make the embedding's share smaller: fewer rows a step and narrower features, tables worked on one after the other, less prefetching."}
	if tensor > sparse {
		most = "TensorCore"
		r.Next = []string{"A smaller batch, rematerialisation, 16-bit types, or more devices."}
	}
	r.Verdict = "program_exceeds_device"
	r.Why = fmt.Sprintf("The program needs %s of %s, most of it for the %s.", spelt(unitAs(tensor+sparse)), spelt(c.Capacity), most)
}
