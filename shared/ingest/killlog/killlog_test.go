package killlog

import (
	"strings"
	"testing"
)

func read(text string) *Report {
	p := New()
	n := 0
	for s := range strings.SplitSeq(text, "\n") {
		n++
		p.Line(n, s)
	}
	return p.End()
}

func TestWhatIsNoEnd(t *testing.T) {
	for _, s := range []string{
		"Killed 3 workers", "loss 0.3 Killed", "the job was Killed: see the log", "nothing available for the cache blocks", "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", "",
	} {
		if r := read(s); len(r.Kills) > 0 || r.Shell > 0 || r.Cache > 0 {
			t.Errorf("%q: %+v", s, r)
		}
	}
}

func FuzzKills(f *testing.F) {
	f.Add("kernel: Out of memory: Kill process 77 (tf train) score 912 or sacrifice child")
	f.Add("Memory cgroup out of memory: Killed process 4242 (python) total-vm:35462212kB, anon-rss:16512344kB")
	f.Add("run.sh: line 3:  4242 Killed\nzsh: killed python\nNo available memory for the cache blocks")
	f.Fuzz(func(t *testing.T, s string) {
		r := read(strings.Repeat(s+"\n", 70))
		if len(r.Kills) > maxKills || r.Cut && len(r.Kills) < maxKills {
			t.Errorf("%d kills, cut %v", len(r.Kills), r.Cut)
		}
		for _, k := range r.Kills {
			if k.Line < 1 || k.PID < -1 || k.Bytes < -1 {
				t.Errorf("%+v", k)
			}
		}
	})
}
