package ingest

import (
	"strings"
	"testing"
)

// jaxLog is a program whose client says of its pool what line is given, and
// which then fails to allocate so many bytes with a bar of 100 cells.
func jaxLog(pool, size, bytes, bar string) string {
	return pool + "\n" +
		"2025-05-28 07:02:44.349554: W external/xla/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate " + size + " (rounded to " + bytes + ")requested by op \n" +
		"2025-05-28 07:02:44.350162: W external/xla/xla/tsl/framework/bfc_allocator.cc:512] " + bar + "\n" +
		"E0528 07:02:44.350251   00000 pjrt_stream_executor_client.cc:2826] Execution of replica 0 failed: RESOURCE_EXHAUSTED: Out of memory while trying to allocate " + bytes + " bytes.\n"
}

// A failure under JAX says where the pool's limit comes from and which variable
// changes it, with the value where it follows from the text.
func TestJAXsLimitAndItsVariables(t *testing.T) {
	const (
		whole = "I0000 00:00:1744072952.016749  920194 gpu_helpers.cc:136] XLA backend allocating 12884901888 bytes on device 0 for BFCAllocator.\n" +
			"I0000 00:00:1744072952.017087  920194 gpu_helpers.cc:177] XLA backend will use up to 4294967296 bytes on device 0 for CollectiveBFCAllocator."
		grows = "I0000 00:00:1744072952.016749  920194 gpu_helpers.cc:141] XLA backend will use up to 12884901888 bytes on device 0 for BFCAllocator."
		other = "I0000 00:00:1744072952.016749  920194 gpu_helpers.cc:136] XLA backend allocating 12884901888 bytes on device 1 for BFCAllocator."
		stats = "\n2025-05-28 07:02:44.349900: I external/xla/xla/tsl/framework/bfc_allocator.cc:1103] Stats: \nLimit:                     12884901888\nInUse:                     11811160064\nMaxInUse:                  11811160064\nNumAllocs:                          40\nMaxAllocSize:               2147483648\n"
	)
	full := strings.Repeat("*", 99) + "_"
	empty := "*" + strings.Repeat("_", 99)
	for _, c := range []struct {
		name, text, verdict string
		has, lacks          []string
	}{
		{
			"a request above the limit", jaxLog(whole, "13.00GiB", "13958643712", empty), "limit_too_low",
			[]string{"pool's limit 12.00 GiB", "75 % of all memory of the card unless XLA_CLIENT_MEM_FRACTION", "a card of 16.00 GiB", "taken at once", "XLA_CLIENT_MEM_FRACTION=0.82", "XLA_PYTHON_CLIENT_MEM_FRACTION in older"},
			[]string{"PREALLOCATE"},
		},
		{
			"a request above the card", jaxLog(whole, "16.50GiB", "17716740096", empty), "limit_too_low",
			[]string{"No XLA_CLIENT_MEM_FRACTION gives as much"},
			[]string{"FRACTION=0", "FRACTION=1"},
		},
		{
			"a full pool, of which use is not told", jaxLog(whole, "4.50GiB", "4831838208", full), "full",
			[]string{"a card of 16.00 GiB", "which XLA_CLIENT_MEM_FRACTION is set"},
			[]string{"FRACTION=0"},
		},
		{
			"what is in use and the request", jaxLog(whole, "4.00GiB", "4294967296", stats+full), "full",
			[]string{"XLA_CLIENT_MEM_FRACTION=0.94", "what is in use and the request, 15.00 GiB in all"},
			nil,
		},
		{
			"a pool that grows", jaxLog(grows, "13.00GiB", "13958643712", empty), "limit_too_low",
			[]string{"not taken at once (XLA_PYTHON_CLIENT_PREALLOCATE=false)"},
			[]string{"It was taken at once"},
		},
		{
			"the pool of another device", jaxLog(other, "4.50GiB", "4831838208", strings.Repeat("*_", 50)), "full_or_fragmented_by_bar",
			[]string{"which XLA_CLIENT_MEM_FRACTION is set"},
			[]string{"pool's limit 12", "a card of"},
		},
		{
			"TensorFlow's program", strings.ReplaceAll(jaxLog("", "13.00GiB", "13958643712", stats+empty), "by op ", "by op model/dense/MatMul"), "limit_too_low",
			nil,
			[]string{"JAX", "XLA_CLIENT_MEM_FRACTION"},
		},
	} {
		text, err := ReadText("x", strings.NewReader(c.text))
		if err != nil || len(text.All()) == 0 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		r := text.All()[0]
		told := r.Why + "\n" + strings.Join(r.Next, "\n")
		for _, row := range r.Rows {
			told += "\n" + row.Label + " " + row.Value
		}
		if r.Verdict != c.verdict {
			t.Errorf("%s: %s, want %s\n%s", c.name, r.Verdict, c.verdict, told)
		}
		for _, s := range c.has {
			if !strings.Contains(told, s) {
				t.Errorf("%s: lacks %q in\n%s", c.name, s, told)
			}
		}
		for _, s := range c.lacks {
			if strings.Contains(told, s) {
				t.Errorf("%s: has %q in\n%s", c.name, s, told)
			}
		}
	}
}
