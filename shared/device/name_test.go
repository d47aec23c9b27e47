package device

import (
	"strings"
	"testing"
)

func TestParseName(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"", ""},
		{"/", ""},
		{"/GPU:1", "/device:GPU:1"},
		{"/gpu:1", "/device:GPU:1"},
		{"/cpu:*", "/device:CPU:*"},
		{"/device:GPU", "/device:GPU:*"},
		{"/device:*:3", "/device:*:3"},
		{"/job:worker/device:gpu:0", "/job:worker/device:gpu:0"},
		{"/task:0/job:a/job:b", "/job:b/task:0"},
		{"/job:a/job:*", ""},
		{"/job:localhost/replica:0/task:0/device:CPU:0", "/job:localhost/replica:0/task:0/device:CPU:0"},
	} {
		n, err := ParseName(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if got := n.String(); got != c.out {
			t.Errorf("%q printed as %q, want %q", c.in, got, c.out)
		}
	}
	for _, bad := range []string{"/gpu", "/job:9x", "GPU:0", "/device:GPU:x", "/replica:-1", "//", "/GPU:0/", "/task:", "/tpu:0", "/device:GPU:0:1", "/task:99999999999999999999"} {
		if n, err := ParseName(bad); err == nil {
			t.Errorf("%q parsed as %q", bad, n)
		} else if !strings.Contains(err.Error(), bad) {
			t.Errorf("error of %q does not name it: %v", bad, err)
		}
	}
}

func TestLocalNameNeedsAnID(t *testing.T) {
	if n, err := ParseLocal("GPU:0"); err != nil || n.Type != "GPU" || n.ID != 0 {
		t.Errorf("GPU:0: %v %v", n, err)
	}
	for _, bad := range []string{"GPU", "GPU:", "/GPU:0", "GPU:*"} {
		if _, err := ParseLocal(bad); err == nil {
			t.Errorf("%q is no local name", bad)
		}
	}
}

func TestCanonicalise(t *testing.T) {
	base := Local("CPU", 0)
	n, err := Canonicalise("GPU:1", base)
	if err != nil || n.String() != "/job:localhost/replica:0/task:0/device:GPU:1" {
		t.Errorf("GPU:1: %v %v", n, err)
	}
	if _, err := Canonicalise("GPU:1", Anywhere); err == nil {
		t.Error("an incomplete base was taken")
	}
}

func TestMerge(t *testing.T) {
	gpu := func(id int) Name { n := Anywhere; n.Type, n.ID = "GPU", id; return n }
	cpu := Anywhere
	cpu.Type, cpu.ID = "CPU", 0
	a, b := Anywhere, Anywhere
	a.Job, b.Job = "a", "b"
	for _, c := range []struct {
		name          string
		target, other Name
		how           Conflict
		want          string
		err           bool
	}{
		{"ids hard", gpu(0), gpu(1), Hard, "", true},
		{"ids soft", gpu(0), gpu(1), Soft, "/device:GPU:*", false},
		{"ids override", gpu(0), gpu(1), Override, "/device:GPU:1", false},
		{"types soft", gpu(0), cpu, Soft, "", false},
		{"types override", gpu(0), cpu, Override, "/device:CPU:0", false},
		{"types hard", gpu(0), cpu, Hard, "", true},
		{"jobs hard", a, b, Hard, "", true},
		{"jobs soft", a, b, Soft, "", true},
		{"jobs override", a, b, Override, "", true},
		{"fills", a, gpu(2), Hard, "/job:a/device:GPU:2", false},
	} {
		got, err := Merge(c.target, c.other, c.how)
		if (err != nil) != c.err {
			t.Errorf("%s: error %v", c.name, err)
		}
		if c.err && got != c.target {
			t.Errorf("%s: something of the failed merge stuck: %v", c.name, got)
		}
		if !c.err && got.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"/GPU:1", "/job:a/replica:0/task:0/device:GPU:*", "/cpu:0/gpu:1", "/device:*", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			return
		}
		again, err := ParseName(n.String())
		if err != nil || again != n {
			t.Errorf("%q printed as %q, which reads as %+v (%v), not %+v", s, n, again, err, n)
		}
	})
}
