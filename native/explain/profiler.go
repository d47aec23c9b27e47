package explain

import (
	"bufio"
	"fmt"
	"io"

	"tideline/shared/analysis/profiler"
)

// profilerText prints the memory page of TensorFlow's profiler for the events
// of a run or of a profile.
func profilerText(to io.Writer, events []profiler.Event) error {
	w := bufio.NewWriter(to)
	pages := profiler.Of(events)
	for i := range pages {
		p := &pages[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s\n", p.Memory)
		fmt.Fprintf(w, "  allocations %d, deallocations %d (of the points shown)\n", p.Allocs, p.Frees)
		fmt.Fprintf(w, "  memory capacity %s GiB, peak heap usage %s GiB over the whole life\n", profiler.GiB(p.Capacity), profiler.GiB(p.LifetimePeak))
		fmt.Fprintf(w, "  peak at %s ms: stack %s, heap %s, free %s GiB, fragmentation %s\n", profiler.Millis(p.PeakTime),
			profiler.GiB(p.Peak.Stack), profiler.GiB(p.Peak.Heap), profiler.GiB(p.Peak.Available), profiler.Percent(p.Peak.Fragmentation))
		hidden := 0
		for k := range p.Rows {
			r := &p.Rows[k]
			if r.Hidden() {
				hidden++
				continue
			}
			fmt.Fprintf(w, "  %9s %9s  %dx  %-15s %s\n", profiler.GiB(r.Allocated), profiler.GiB(r.Requested), r.Occurrences, r.Region, r.Op)
		}
		if hidden > 0 {
			fmt.Fprintf(w, "  %s below 0.001 GiB not shown, as on that page\n", plural(int64(hidden), "row"))
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the profiler's view: %w", err)
	}
	return nil
}
