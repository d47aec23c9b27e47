package ingest

import (
	"strings"
	"testing"
)

// A size gone wrong has as many digits as it likes, or an exponent. It is told
// with the number as printed, and the message that names it is whole.
func TestNonsenseSizes(t *testing.T) {
	const state = " GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 78.00 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 5.00 GiB is reserved by PyTorch but unallocated."
	for _, x := range []struct{ text, shown string }{
		{"99999999999999999999999999.00 GiB." + state, "99999999999999999999999999.00 GiB"},
		{"1e30 GiB." + state, "1e30 GiB"},
		{"1e+30 GiB", "1e+30 GiB"},
		{"1E999 MiB." + state, "1E999 MiB"},
		{"9999999999999999999.00 GiB (GPU 0; 8.00 GiB total capacity; 1.00 GiB already allocated; 1.00 GiB free; 2.00 GiB reserved in total by PyTorch)", "9999999999999999999.00 GiB"},
		{strings.Repeat("9", 500) + ".00 GiB." + state, strings.Repeat("9", 40) + "… GiB"},
		{"1048576.00 GiB." + state, "1048576.00 GiB"},
	} {
		in, err := Open("a", strings.NewReader("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "+x.text+"\n"), Limits{})
		if err != nil {
			t.Errorf("%.60s: %v", x.text, err)
			continue
		}
		if len(in.Text.Readings) != 1 {
			t.Errorf("%.60s: %d readings", x.text, len(in.Text.Readings))
			continue
		}
		r := in.Text.Readings[0]
		if r.Verdict != "not_a_memory_problem" || !strings.HasPrefix(r.Why, "A request of "+x.shown) || len(r.Rows) == 0 || r.Rows[0].Value != x.shown {
			t.Errorf("%.60s: %s: %s %v", x.text, r.Verdict, r.Why, r.Rows)
		}
	}
}
