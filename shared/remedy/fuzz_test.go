package remedy

import (
	"bytes"
	"testing"

	"tideline/shared/ingest"
)

// FuzzFill: no file makes the replays panic or run on, and what is said of it
// holds together.
func FuzzFill(f *testing.F) {
	f.Add(file(f, broken(f, 31)))
	f.Add(file(f, broken(f, 1<<20)))
	for _, growth := range []bool{false, true} {
		x := startBFC(f, 64*mib, growth)
		for _, n := range []int64{mib, 2 * mib, 4 * mib, 8 * mib, 16 * mib, 40 * mib} {
			x.alloc(n)
		}
		f.Add([]byte(x.log.text.String()))
	}
	f.Add([]byte("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00:000001,allocate,0x100,1048576,0\n1,10:00:00:000003,allocate failure,(nil),8388608,0\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := ingest.Open("fuzz", bytes.NewReader(data), ingest.Limits{Unzip: 1 << 20})
		if err != nil {
			return
		}
		Fill(in, Options{Budget: 20_000})
		for _, r := range in.Readings {
			for _, x := range r.Trials {
				if x.Serves != (x.Spare >= 0) || x.Setting == "" || x.Allocator == "" || x.Peak < 0 {
					t.Errorf("%+v", x)
				}
			}
			if r.Least < 0 || r.Short < 0 || len(r.Trials) > 0 && r.Replayed == "" {
				t.Errorf("least %d, short %d, %s", r.Least, r.Short, r.Replayed)
			}
		}
	})
}
