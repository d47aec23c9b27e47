package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/ingest/bfclog"
	"tideline/shared/launch"
)

// runSummary is what a run came to, for people and as JSON. Sizes are bytes,
// times nanoseconds.
type runSummary struct {
	Workload  string             `json:"workload"`
	Name      string             `json:"name"`
	State     string             `json:"state"`
	Message   string             `json:"message,omitempty"`
	Steps     int                `json:"steps"`
	OfSteps   int                `json:"of_steps"`
	Nanos     int64              `json:"nanos"`                  // on the run's clock
	Clock     string             `json:"clock"`                  // modelled, or measured: the CPU's own time
	Waited    int64              `json:"waited_nanos,omitempty"` // of Nanos: for memory, before a request failed
	Took      int64              `json:"took_nanos"`
	Events    uint64             `json:"events"`
	Memory    []allocatorSummary `json:"memory"`
	Transfers []transferSummary  `json:"transfers"`
	Stalls    stallSummary       `json:"stalls"`
	Metrics   map[string]float64 `json:"metrics,omitempty"`
	OOM       *oomSummary        `json:"out_of_memory,omitempty"`
	File      string             `json:"file,omitempty"`
	FileBytes int64              `json:"file_bytes,omitempty"`
	Error     string             `json:"error,omitempty"` // of the recording
	Warnings  []string           `json:"warnings,omitempty"`

	label   string // the name, numbered where several runs have it
	metrics []launch.Metric
	devices []launch.DeviceResult
}

type allocatorSummary struct {
	Device       string           `json:"device"`
	Allocator    string           `json:"allocator"`
	PeakInUse    int64            `json:"peak_in_use"`
	PeakReserved int64            `json:"peak_reserved"`
	Limit        int64            `json:"limit,omitempty"`
	Allocs       int64            `json:"allocations"`
	ByCategory   map[string]int64 `json:"peak_by_category"`
}

type transferSummary struct {
	Cause string `json:"cause"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
}

type stallSummary struct {
	Count int64 `json:"count"`
	Nanos int64 `json:"nanos"`
}

type oomSummary struct {
	Device      string `json:"device"`
	Allocator   string `json:"allocator"`
	Op          string `json:"op"`
	Requested   int64  `json:"requested"`
	Cause       string `json:"cause"`
	Free        int64  `json:"free"`
	LargestFree int64  `json:"largest_free"`
	Explanation string `json:"explanation"`
}

func summarise(g *going, took time.Duration) *runSummary {
	res := &g.result
	s := &runSummary{
		Workload: g.file, Name: g.w.Name, State: res.Reason.String(), Message: res.Message, Steps: res.Steps, OfSteps: g.w.Steps,
		Nanos: res.Nanos, Clock: g.clock(), Took: int64(took), Events: res.Events, File: g.output, Transfers: []transferSummary{},
	}
	sum := g.timeline.Summary()
	s.Memory = allocatorSummaries(sum)
	for _, t := range sum.Transfers {
		s.Transfers = append(s.Transfers, transferSummary{t.Cause.String(), t.Count, t.Bytes})
	}
	s.Stalls = stallSummary{sum.Stalls.Count, sum.Stalls.Nanos}
	s.Warnings = res.Warnings
	s.label, s.metrics, s.devices = s.Name, res.Metrics, res.Devices
	for _, m := range res.Metrics {
		if s.Metrics == nil {
			s.Metrics = make(map[string]float64)
		}
		if !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) { // a loss that ran away; JSON has no word for it
			s.Metrics[m.Name] = m.Value
		}
	}
	if res.OOM != nil {
		s.OOM = explainOOM(res, sum)
		if n := len(sum.Failures); n > 0 && sum.Failures[n-1].Waited > int64(time.Second) {
			s.Waited = sum.Failures[n-1].Waited
		}
	}
	if g.output != "" {
		if st, err := os.Stat(g.output); err == nil {
			s.FileBytes = st.Size()
		}
	}
	return s
}

func allocatorSummaries(sum *analysis.Summary) []allocatorSummary {
	out := make([]allocatorSummary, 0, len(sum.Allocators))
	for i := range sum.Allocators {
		a := &sum.Allocators[i]
		x := allocatorSummary{
			Device: a.Device, Allocator: a.Name, PeakInUse: a.PeakInUse, PeakReserved: a.PeakReserved, Limit: a.Limit.N, Allocs: a.Allocs,
			ByCategory: make(map[string]int64),
		}
		for cat, bytes := range a.PeakByCategory {
			if bytes != 0 {
				x.ByCategory[event.Category(cat).String()] = bytes
			}
		}
		out = append(out, x)
	}
	return out
}

// print writes the summary for people.
func (s *runSummary) print(c *console) {
	waited := ""
	if s.Waited > 0 {
		waited = ", of which " + span(s.Waited) + " waiting for memory"
	}
	c.say("%s: %s, %d of %s, %s %s%s, %s here\n", s.label, s.State, s.Steps, count(s.OfSteps, "step"), span(s.Nanos), s.Clock, waited, span(s.Took))
	for _, w := range s.Warnings {
		c.say("  warning: %s\n", w)
	}
	if s.Message != "" && s.OOM == nil {
		c.say("  %s\n", s.Message)
	}
	if len(s.Memory) > 0 {
		var t table
		t.row("  device", "allocator", "peak in use", "peak reserved", "limit", "at the peak")
		for _, m := range s.Memory {
			limit := "none"
			if m.Limit > 0 {
				limit = size(m.Limit)
			}
			t.row("  "+m.Device, m.Allocator, size(m.PeakInUse), size(m.PeakReserved), limit, largestCategories(m.ByCategory))
		}
		t.print(c)
	}
	for i := range s.devices {
		if d := &s.devices[i]; d.Total > 0 {
			c.say("  %s may take %s of its card's %s: %s\n", d.Name, size(d.Limit), size(d.Total), whyLess(d.Context, d.Held, d.Reserve))
		}
	}
	for _, x := range s.Transfers {
		c.say("  transfers: %s in %d, %s\n", size(x.Bytes), x.Count, x.Cause)
	}
	if s.Stalls.Count > 0 {
		c.say("  stalls: waited for input %s, %s in all\n", count(s.Stalls.Count, "time"), span(s.Stalls.Nanos))
	}
	for _, m := range s.metrics {
		c.say("  %s: %.4g\n", m.Name, m.Value)
	}
	if s.OOM != nil {
		c.say("\n%s\n", wrap(s.OOM.Explanation, 78))
	}
	switch {
	case s.Error != "":
		c.note("tideline: %s\n", s.Error)
	case s.File != "" && s.Events == 0:
		c.say("  wrote %s: why it failed, and its settings; tideline replay %s --set FIELD=VALUE tries others\n", s.File, s.File)
	case s.File != "":
		c.say("  wrote %s: %s, %s\n", s.File, count(s.Events, "event"), size(s.FileBytes))
	}
}

// largestCategories names the two that hold most.
func largestCategories(by map[string]int64) string {
	var parts []string
	for range 2 {
		best := ""
		for cat := range event.NumCategories { // in a fixed order, not the map's
			name := event.Category(cat).String()
			if by[name] > 0 && (best == "" || by[name] > by[best]) && !contains(parts, name) {
				best = name
			}
		}
		if best == "" {
			break
		}
		parts = append(parts, best+" "+size(by[best]))
	}
	return strings.Join(parts, ", ")
}

// whyLess says what a card's memory goes to before a program's allocator gets
// the rest.
func whyLess(context, held, reserve int64) string {
	parts := []string{size(context) + " are the driver's context"}
	if held > 0 {
		parts = append(parts, size(held)+" are held by others")
	}
	if reserve > 0 {
		parts = append(parts, size(reserve)+" are left to libraries")
	}
	return strings.Join(parts, ", ")
}

// number tells runs of one name apart.
func number(sums []*runSummary) {
	seen := make(map[string]int)
	for _, s := range sums {
		seen[s.Name]++
	}
	next := make(map[string]int)
	for _, s := range sums {
		if next[s.Name]++; seen[s.Name] > 1 {
			s.label = fmt.Sprintf("%s #%d", s.Name, next[s.Name])
		}
	}
}

func contains(parts []string, name string) bool {
	for _, p := range parts {
		if strings.HasPrefix(p, name+" ") {
			return true
		}
	}
	return false
}

// explainOOM says in a paragraph what happened, why, and what to try.
func explainOOM(res *launch.Result, sum *analysis.Summary) *oomSummary {
	o := res.OOM
	x := &oomSummary{
		Allocator: o.Allocator, Op: o.Op, Requested: o.Requested, Cause: o.Cause.String(), Free: o.Free, LargestFree: o.Largest,
	}
	limit := int64(0)
	for _, d := range res.Devices {
		if d.ID == o.Device {
			x.Device, limit = d.Name, d.Limit
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Out of memory on %s in step %d (%d done): op %s asked allocator %s for %s", x.Device, res.Steps+1, res.Steps, o.Op, o.Allocator, size(o.Requested))
	if limit > 0 {
		fmt.Fprintf(&b, " of its %s", size(limit))
	}
	fmt.Fprintf(&b, ". Of the pool %s are free, the largest hole is %s. %s", size(o.Free), size(o.Largest), causeWords(o, limit, growing(sum)))
	if n := len(sum.Failures); n > 0 && sum.Failures[n-1].Reading != nil && sum.Failures[n-1].Reading.Waste.Known && sum.Failures[n-1].Reading.TailsHoldIt() {
		fmt.Fprintf(&b, " %s of what is in use are unused tails of chunks; without them the request would fit.", size(sum.Failures[n-1].Reading.Waste.N))
	}
	if n := len(sum.Failures); n > 0 && len(sum.Failures[n-1].ByKind) > 0 {
		h := sum.Failures[n-1].ByKind[0]
		fmt.Fprintf(&b, " Most memory is held by %s: %s in %s.", h.Name, size(h.Bytes), count(h.Blocks, "block"))
	}
	x.Explanation = b.String()
	return x
}

// growing says whether the pool that failed grows on demand.
func growing(sum *analysis.Summary) bool {
	n := len(sum.Failures)
	return n > 0 && sum.Failures[n-1].Reading != nil && sum.Failures[n-1].Reading.Growth == bfclog.Yes
}

// causeWords says what a verdict means and which settings bear on it. Whether
// one of them helps is for a rerun to show.
func causeWords(o *launch.OOM, limit int64, growth bool) string {
	switch o.Cause {
	case event.OOMFull:
		return "The memory is full: moving the blocks together would not make room. A smaller batch needs less; \"tideline replay FILE --set batch=N\" tries one."
	case event.OOMFragmented:
		s := "It is fragmented: enough bytes are free, but not in one piece. Fixed batch sizes leave fewer holes"
		if growth {
			s += ", and one region (growth off) keeps free memory together; \"tideline replay FILE --set devices.0.growth=false\" tries it"
		}
		return s + "."
	case event.OOMLimitTooLow:
		if o.Requested > limit {
			return "This one request is more than the allocator may have. The card has more: raise memory_limit or logical, or make the batch smaller."
		}
		return "What is in use and this request come to more than the allocator may have, and the card has more: raise memory_limit or logical, or make the batch smaller."
	case event.OOMOtherProcess:
		return "Another program holds the card's memory. With growth on in both, each takes only what it needs."
	case event.OOMRequestExceedsDevice:
		return "This one request is larger than what the card can give: no setting but a smaller batch or another device helps."
	case event.OOMHostPinnedLimit:
		return "It is the pool of pinned host memory that is exhausted, not the device."
	case event.OOMRetryable:
		return "Memory on its way back would have sufficed: the request came too early."
	case event.OOMNotMemory:
		return "The size makes no sense: this is a mistake in the program, not a lack of memory."
	case event.OOMUndetermined:
	}
	return "Why is not certain from what is known."
}

// wrap breaks a paragraph into lines of at most width characters.
func wrap(s string, width int) string {
	var b strings.Builder
	n := 0
	for i, word := range strings.Fields(s) {
		if i > 0 {
			if n+1+len(word) > width {
				b.WriteByte('\n')
				n = 0
			} else {
				b.WriteByte(' ')
				n++
			}
		}
		b.WriteString(word)
		n += len(word)
	}
	return b.String()
}
