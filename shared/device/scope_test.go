package device

import "testing"

func TestEagerScopes(t *testing.T) {
	eager := Local("CPU", 0)
	for _, c := range []struct {
		scopes []string
		want   string
	}{
		{[]string{"gpu"}, "/GPU:0"},
		{[]string{"/GPU:1", "/CPU"}, "/CPU:1"}, // the id is inherited
		{[]string{"/task:0"}, "/CPU:0"},
		{[]string{"/GPU:1", ""}, "/GPU:1"},
		{[]string{"device:gpu:2"}, "/GPU:2"},
		{[]string{"/device:GPU:*"}, "/GPU:0"},
		{[]string{"//GPU:1/"}, "/GPU:1"},
		{[]string{"TPU:3"}, "/TPU:3"},
	} {
		n := eager
		for _, s := range c.scopes {
			var err error
			if n, err = n.Enter(s); err != nil {
				t.Errorf("%q: %v", c.scopes, err)
			}
		}
		if n.Short() != c.want {
			t.Errorf("%q: %s, want %s", c.scopes, n.Short(), c.want)
		}
	}
	for _, bad := range []string{"/device:GPU", "/CPU:0/GPU:0", "GPU:x", "nonsense", "/task:x", "GPU:-1", "/device:GPU:0:1", "device:custom:0/GPU:1"} {
		n, err := eager.Enter(bad)
		want(t, err, ValueError, bad)
		if n != eager {
			t.Errorf("%q: something stuck", bad)
		}
	}
	job, err := Anywhere.Enter("/job:worker/task:3")
	must(t, err)
	if job.Job != "worker" || job.Task != 3 || job.Type != "" {
		t.Errorf("%+v", job)
	}
}

func FuzzParseScope(f *testing.F) {
	for _, s := range []string{"gpu", "/GPU:1", "/job:a/replica:0/task:0/device:GPU:*", "device:x:1", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseScope(s)
		if err != nil {
			want(t, err, ValueError)
			return
		}
		if n.ID < Unset || n.Task < Unset || n.Replica < Unset {
			t.Errorf("%q: %+v", s, n)
		}
	})
}
