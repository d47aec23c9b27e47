package analysis

import (
	"strings"
	"testing"

	"tideline/shared/ingest/bfclog"
)

// TestTheLimitsOrigin: by what was free when the program began.
func TestTheLimitsOrigin(t *testing.T) {
	size := func(s string) bfclog.Size {
		n, _ := bfclog.ParseSize(s)
		return n
	}
	for _, c := range []struct {
		total, free string
		limit       int64
		want        string
	}{
		{"14.76GiB", "363.69MiB", 52 << 20, othersBefore},
		{"11.90GiB", "11.02GiB", 52 << 20, limitSet},
		{"11.90GiB", "6.00GiB", 2 << 30, limitSet},
		{"11.90GiB", "11.50GiB", 10800 << 20, ""}, // an empty card, all of it
		{"79.15GiB", "78.70GiB", 75 << 30, ""},
		{"11.90GiB", "10.00GiB", 9 << 30, ""}, // a desktop's share
		{"", "", 52 << 20, ""},
		{"", "9.00GiB", 52 << 20, limitSet},
	} {
		d := &bfclog.Dump{Allocator: "GPU_0_bfc", Limit: bfclog.ExactSize(c.limit), InUse: bfclog.ExactSize(2048), HasStats: true, Start: bfclog.Start{Total: size(c.total), Free: size(c.free)}}
		r := FromDump(d)
		if got := r.origin(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if (r.startWhy() == "") != (c.want == "") || (r.startAdvice() == "") != (c.want == "") {
			t.Errorf("%+v: %q, %q", c, r.startWhy(), r.startAdvice())
		}
		if c.want != "" && r.Verdict == LimitTooLow && (!strings.Contains(r.Why(), "When the program began") || r.LikelyCause != c.want) {
			t.Errorf("%+v: %q, %q", c, r.Why(), r.LikelyCause)
		}
	}
}
