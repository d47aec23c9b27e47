package ingest

import (
	"fmt"
	"strings"
	"testing"
)

// summary is a table of memory_summary() with these figures in MiB.
func summary(ooms, retries, allocated, reserved, kept int) string {
	rows := ""
	for _, r := range []struct {
		name string
		mib  int
	}{{"Allocated memory", allocated}, {"Active memory", allocated}, {"Requested memory", allocated - 1}, {"GPU reserved memory", reserved}, {"Non-releasable memory", kept}} {
		rows += "|---------------------------------------------------------------------------|\n"
		rows += fmt.Sprintf("| %-21s | %6d MiB | %6d MiB |  45674 MiB |  35330 MiB |\n", r.name, r.mib, r.mib)
	}
	for _, name := range []string{"Allocations", "Active allocs", "GPU reserved segments", "Non-releasable allocs", "Oversize allocations", "Oversize GPU segments"} {
		rows += "|---------------------------------------------------------------------------|\n"
		rows += fmt.Sprintf("| %-21s |     200    |     300    |    1000    |     800    |\n", name)
	}
	return "|===========================================================================|\n" +
		"|                  PyTorch CUDA memory summary, device ID 0                 |\n" +
		"|---------------------------------------------------------------------------|\n" +
		fmt.Sprintf("|            CUDA OOMs: %-12d |        cudaMalloc retries: %-8d  |\n", ooms, retries) +
		"|===========================================================================|\n" +
		"|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n" +
		rows +
		"|===========================================================================|\n"
}

// A whole table tells what of the idle memory can be given back, and with the
// message of the failure beside it, what could have been done.
func TestSummaries(t *testing.T) {
	const message = "RuntimeError: CUDA out of memory. Tried to allocate %s (GPU 0; 15.90 GiB total capacity; 10.10 GiB already allocated; 400.00 MiB free; 15.15 GiB reserved in total by PyTorch)\n"
	for name, c := range map[string]struct{ text, verdict, has string }{
		"rests":                 {summary(1, 6, 10344, 15510, 5165), "fragmented_segment_tails", "5.04 GiB of 15.15 GiB reserved are idle (33 %), and 5.04 GiB of that are the rest"},
		"rests, retried":        {summary(0, 1, 10344, 15510, 5100), "fragmented_segment_tails", "4.98 GiB of that"},
		"some rests":            {summary(1, 6, 10344, 15510, 3500), "fragmented", "(33 %)"},
		"after it was given up": {summary(1, 6, 1034, 15510, 200), "undetermined_no_state", "not the state in which one did"},
		"hardly idle":           {summary(1, 6, 15000, 15510, 500), "full", "hardly anything idle"},
		"no failure":            {summary(0, 0, 10344, 15510, 5165), "parse_only", "No request has failed"},
		"with a message, rests": {
			fmt.Sprintf(message, "2.00 GiB") + summary(1, 6, 10344, 15510, 5165), "fragmented_segment_tails", "2.00 GiB were asked for",
		},
		"with a message, too much": {
			fmt.Sprintf(message, "6.00 GiB") + summary(1, 6, 10344, 15510, 5165), "full_for_this_request", "would not do",
		},
		"with a message of another moment": {
			fmt.Sprintf(message, "6.00 GiB") + summary(1, 6, 12344, 15510, 3165), "undetermined_no_state", "whether the failed request would have fitted",
		},
		"with a message, more than there is": {
			fmt.Sprintf(message, "26.00 GiB") + summary(1, 6, 10344, 15510, 5165), "request_exceeds_device", "times the whole device",
		},
	} {
		text, err := ReadText(name, strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		all := text.All()
		r := all[len(all)-1]
		if r.Kind != "pytorch-memory-summary" || r.Verdict != c.verdict || !strings.Contains(r.Why, c.has) {
			t.Errorf("%s: %s, %s: %s", name, r.Kind, r.Verdict, r.Why)
		}
		sensible(t, r)
	}
}
