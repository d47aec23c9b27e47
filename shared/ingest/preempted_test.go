package ingest

import (
	"strings"
	"testing"
)

// What PyTorch refuses by itself, by throw_on_cudamalloc_oom, is no refusal by the
// driver; the warning before the error has the state.
func TestPyTorchRefusesByItself(t *testing.T) {
	const (
		warning = "[W1130 16:11:36.088568307 CUDACachingAllocator.cpp:4040] Preemptively rejecting allocation: requested 1.12 GiB but total_allocated_memory (56.00 MiB) + requested size would exceed memory limit (1.00 GiB = 100% of 2.00 GiB). Set throw_on_cudamalloc_oom:false to disable.\n"
		message = "torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: 1.10 GiB\n"
	)
	for _, c := range []struct {
		name, text string
		facts      map[string]string
	}{
		{"both", warning + message, map[string]string{"requested_gib": "1.1", "reserved_mib": "56", "user_limit_gib": "1", "capacity_gib": "2", "repeated": "1"}},
		{"the error alone", message, map[string]string{"requested_gib": "1.1", "reserved_mib": "null", "user_limit_gib": "null", "repeated": "1"}},
		{"twice", message + message, map[string]string{"requested_gib": "1.1", "repeated": "2"}},
		{"the warning alone", warning, map[string]string{"requested_gib": "null", "reserved_mib": "56", "repeated": "1"}},
	} {
		text, err := ReadText("x", strings.NewReader(c.text))
		if err != nil || len(text.All()) != 1 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		r := text.All()[0]
		checkReading(t, r, "pytorch-oom-message", "limit_too_low", c.facts)
		if strings.Contains(r.Why, "driver refused") || !strings.Contains(r.Next[0], "throw_on_cudamalloc_oom") {
			t.Errorf("%s: %s %q", c.name, r.Why, r.Next)
		}
	}
}
