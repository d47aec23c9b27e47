package input

import (
	"sort"
	"strings"
)

// SlowCall is how long a call of a pipeline's last iterator may take before it
// counts as slow, in nanoseconds.
const SlowCall = 50_000

// Call is one GetNext of an iterator with the calls that it, or a thread of
// its own, made of the iterators before it. Times are nanoseconds.
type Call struct {
	Iterator   string // Iterator::Batch::ParallelMapV2 or a name of ours
	Begin, End int64
	Thread     int
	Inputs     []Call
}

// async are the iterators with threads of their own.
var async = []string{
	"Prefetch", "ParallelInterleave", "ParallelMap", "ParseExample", "MapAndBatch", "DataService", "LegacyParallelInterleave", "ParallelBatch",
}

// IsAsync says whether an iterator has threads of its own, by the last part of
// its name and whatever its version.
func IsAsync(name string) bool {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	plain := strings.ReplaceAll(name, "_", "")
	if i := strings.IndexAny(plain, "[#("); i >= 0 {
		plain = plain[:i]
	}
	plain = strings.TrimRight(plain, "0123456789")
	plain = strings.TrimSuffix(plain, "V")
	for _, a := range async {
		if strings.EqualFold(plain, a) {
			return true
		}
	}
	return false
}

// Finding is what a pipeline's calls say.
type Finding struct {
	Pipeline   string
	Calls      int   // of its last iterator
	Slow       int   // of them
	Latency    int64 // nanoseconds of the slowest
	Bottleneck string
	Self       int64 // nanoseconds of the bottleneck's own in the slowest call
	Advice     []string
}

// Analyse finds each pipeline's bottleneck: in its slowest call the iterator
// that had the consumer wait for longest, by its own work. Pipelines are keyed
// by name, slowest first; one without a slow call has no bottleneck.
func Analyse(pipelines map[string][]Call) []Finding {
	var out []Finding
	for name, calls := range pipelines {
		f := Finding{Pipeline: name, Calls: len(calls)}
		worst := -1
		for i := range calls {
			took := calls[i].End - calls[i].Begin
			if took > SlowCall {
				f.Slow++
			}
			if worst < 0 || took > f.Latency {
				worst, f.Latency = i, took
			}
		}
		if f.Slow > 0 {
			f.Bottleneck, f.Self = Blocking(&calls[worst])
			f.Advice = Advice(f.Bottleneck)
		}
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		if a.Latency != b.Latency {
			return a.Latency > b.Latency
		}
		return a.Pipeline < b.Pipeline
	})
	return out
}

// Blocking is the iterator with the largest self time in a call, and that
// time. What happens on other threads counts for as long as the consumer
// waited for it.
func Blocking(c *Call) (name string, self int64) {
	own := map[string]int64{}
	var order []string
	block(c, c.Begin, c.End, own, &order)
	for _, n := range order {
		if own[n] > self || name == "" {
			name, self = n, own[n]
		}
	}
	return name, self
}

// block adds up self times within a window; order is outermost first.
func block(c *Call, begin, end int64, own map[string]int64, order *[]string) {
	begin, end = max(begin, c.Begin), min(end, c.End)
	if _, ok := own[c.Iterator]; !ok {
		*order = append(*order, c.Iterator)
	}
	if end <= begin {
		own[c.Iterator] += 0 // it is there, and nobody waited for it
		return
	}
	spans := make([]Span, 0, len(c.Inputs))
	for i := range c.Inputs {
		in := &c.Inputs[i]
		block(in, begin, end, own, order)
		spans = append(spans, Span{in.Begin, in.End, HostCompute})
	}
	covered := StepOf(begin, end, spans)
	own[c.Iterator] += covered.ByClass[Unknown]
}

// Advice is what usually helps against a bottleneck in an iterator.
func Advice(name string) []string {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		name = name[i+2:]
	}
	n := strings.ReplaceAll(strings.ToLower(name), "_", "")
	is := func(part string) bool { return strings.Contains(n, part) }
	switch {
	case is("mapandbatch"), is("parallelmap"):
		return []string{"raise the number of parallel calls", "vectorize the function: batch first and map whole batches", "cache what the function makes, if it is the same in every epoch"}
	case is("map"), is("filter"):
		return []string{"map in parallel: num_parallel_calls=AUTOTUNE", "vectorize the function: batch first and map whole batches", "cache what the function makes, if it is the same in every epoch", "prefetch, so that it runs beside the step"}
	case is("interleave"):
		return []string{"read more files at a time: raise cycle_length and num_parallel_calls", "cache what was read, if it fits in memory"}
	case is("slices"), is("files"), contains(n, readers), is("range"), is("generator"):
		return []string{"interleave several files in parallel", "cache what was read, if it fits in memory", "prefetch, so that reading runs beside the step"}
	case is("shuffle"):
		return []string{"a smaller shuffle buffer is filled sooner; it is filled once, before the first batch", "what comes before is read in vain if it is dropped: shuffle names of files instead"}
	case is("batch"):
		return []string{"batch in parallel, or fuse map and batch", "prefetch, so that copying runs beside the step"}
	case is("prefetch"):
		return []string{"a larger prefetch buffer evens out what comes unevenly; the stage before it sets the pace"}
	}
	return []string{"prefetch at the end of the pipeline, so that it runs beside the step"}
}
