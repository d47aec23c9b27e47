package jax_test

import (
	"errors"
	"strings"
	"testing"

	"tideline/shared/device/jax"
)

const gib = int64(1) << 30

func env(text string) jax.Env {
	return func(name string) (string, bool) {
		for f := range strings.FieldsSeq(text) {
			if n, v, _ := strings.Cut(f, "="); n == name {
				return v, true
			}
		}
		return "", false
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		env    string
		total  int64
		limit  int64
		growth bool
		kind   string
	}{
		{"", 16 * gib, 12_884_901_888, false, "bfc"},
		{"XLA_PYTHON_CLIENT_PREALLOCATE=false", 16 * gib, 12_884_901_888, true, "bfc"},
		{"XLA_PYTHON_CLIENT_PREALLOCATE=False", 16 * gib, 12_884_901_888, true, "bfc"},
		{"XLA_PYTHON_CLIENT_PREALLOCATE=0", 16 * gib, 12_884_901_888, true, "bfc"},
		{"XLA_PYTHON_CLIENT_PREALLOCATE=FALSE", 16 * gib, 12_884_901_888, false, "bfc"},
		{"XLA_PYTHON_CLIENT_PREALLOCATE=no", 16 * gib, 12_884_901_888, false, "bfc"},
		{"XLA_CLIENT_MEM_FRACTION=.9", 80 * gib, 77_309_411_328, false, "bfc"},
		{"XLA_PYTHON_CLIENT_MEM_FRACTION=.9", 80 * gib, 77_309_411_328, false, "bfc"},
		{"XLA_CLIENT_MEM_FRACTION= XLA_PYTHON_CLIENT_MEM_FRACTION=.5", 16 * gib, 8 * gib, false, "bfc"},
		{"XLA_CLIENT_MEM_FRACTION=0.333", 1000, 333, false, "bfc"},
		{"XLA_CLIENT_MEM_FRACTION=1", 16 * gib, 16 * gib, false, "bfc"},
		{"TF_FORCE_UNIFIED_MEMORY=1", 16 * gib, 16 * gib, false, "bfc"},
		{"TF_FORCE_UNIFIED_MEMORY=true XLA_CLIENT_MEM_FRACTION=.5", 16 * gib, 16 * gib, false, "bfc"},
		{"TF_FORCE_UNIFIED_MEMORY=1 XLA_CLIENT_MEM_FRACTION=3.2", 10 * gib, 32 * gib, false, "bfc"},
		{"XLA_PYTHON_CLIENT_ALLOCATOR=default", 16 * gib, 12 * gib, false, "bfc"},
		{"XLA_PYTHON_CLIENT_ALLOCATOR=BFC", 16 * gib, 12 * gib, false, "bfc"},
		{"XLA_PYTHON_CLIENT_ALLOCATOR=platform", 16 * gib, 12 * gib, false, "direct"},
		{"XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async", 16 * gib, 12 * gib, false, "async"},
	} {
		x, err := jax.Read(env(c.env))
		if err != nil {
			t.Errorf("%q: %v", c.env, err)
			continue
		}
		if got := x.Limit(c.total); got != c.limit || x.Growth != c.growth || x.Kind != c.kind {
			t.Errorf("%q of %d: %d, growth %v, %s; want %d, %v, %s", c.env, c.total, got, x.Growth, x.Kind, c.limit, c.growth, c.kind)
		}
		if want := strings.Contains(c.env, "XLA_"); x.Explicit != want {
			t.Errorf("%q: explicit %v", c.env, x.Explicit)
		}
	}
}

func TestWrongVariablesSayWhatWasExpected(t *testing.T) {
	for _, c := range []struct{ env, variable, want string }{
		{"XLA_PYTHON_CLIENT_ALLOCATOR=cuda", "XLA_PYTHON_CLIENT_ALLOCATOR", "one of default, bfc, platform, cuda_async, vmm"},
		{"XLA_PYTHON_CLIENT_ALLOCATOR=vmm", "XLA_PYTHON_CLIENT_ALLOCATOR", "no model"},
		{"XLA_CLIENT_MEM_FRACTION=.5 XLA_PYTHON_CLIENT_MEM_FRACTION=.5", "XLA_PYTHON_CLIENT_MEM_FRACTION", "JAX refuses both"},
		{"XLA_CLIENT_MEM_FRACTION=80%", "XLA_CLIENT_MEM_FRACTION", "such as .75"},
		{"XLA_PYTHON_CLIENT_MEM_FRACTION=nan", "XLA_PYTHON_CLIENT_MEM_FRACTION", "such as .75"},
		{"XLA_CLIENT_MEM_FRACTION=inf", "XLA_CLIENT_MEM_FRACTION", "such as .75"},
		{"XLA_CLIENT_MEM_FRACTION=0", "XLA_CLIENT_MEM_FRACTION", "such as .75"},
		{"TF_FORCE_UNIFIED_MEMORY=1 XLA_CLIENT_MEM_FRACTION=1e300", "XLA_CLIENT_MEM_FRACTION", "such as .75"},
		{"XLA_CLIENT_MEM_FRACTION=-1", "XLA_CLIENT_MEM_FRACTION", "such as .75"},
		{"XLA_CLIENT_MEM_FRACTION=1.5", "XLA_CLIENT_MEM_FRACTION", "TF_FORCE_UNIFIED_MEMORY=1"},
		{"XLA_CLIENT_MEM_FRACTION=0.75+", "XLA_CLIENT_MEM_FRACTION", "not modelled"},
	} {
		_, err := jax.Read(env(c.env))
		var e *jax.Error
		if !errors.As(err, &e) || e.Variable != c.variable || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%q: %v, want %s: …%s…", c.env, err, c.variable, c.want)
		}
	}
}

// A part that Raise names makes a pool of what was wanted on the card of which
// the limit is the default part; a hundredth less does not.
func TestRaiseIsTheLeastPartThatSuffices(t *testing.T) {
	for _, c := range []struct {
		total, want int64
		part        int
		ok          bool
	}{
		{16 * gib, 12 * gib, 75, true},
		{16 * gib, 12*gib + 1, 76, true},
		{16 * gib, 15 * gib, 94, true},
		{16 * gib, 15*gib + 214_000_000, 95, true},
		{16 * gib, 16 * gib, 100, false},
		{16 * gib, 1 << 60, 1000, false},
	} {
		part, ok := jax.Raise(c.total/4*3, c.want)
		if part != c.part || ok != c.ok {
			t.Errorf("%d of %d: %d, %v; want %d, %v", c.want, c.total, part, ok, c.part, c.ok)
		}
		if ok && (c.total/100*int64(part) < c.want-100 || c.total/100*int64(part-1) >= c.want) {
			t.Errorf("%d of %d: a part of %d %% is not the least", c.want, c.total, part)
		}
	}
	if _, ok := jax.Raise(0, 5); ok {
		t.Error("a limit of nothing is raised")
	}
}

func FuzzRead(f *testing.F) {
	f.Add("XLA_CLIENT_MEM_FRACTION=.75 XLA_PYTHON_CLIENT_PREALLOCATE=false XLA_PYTHON_CLIENT_ALLOCATOR=platform", int64(16)<<30)
	f.Add("TF_FORCE_UNIFIED_MEMORY=1 XLA_CLIENT_MEM_FRACTION=1e300", int64(1)<<40)
	f.Add("XLA_PYTHON_CLIENT_MEM_FRACTION=0x1p-2", int64(1))
	f.Fuzz(func(t *testing.T, text string, total int64) {
		x, err := jax.Read(env(text))
		if err != nil || total <= 0 || total > 1<<50 {
			return
		}
		if n := x.Limit(total); n < 0 || !x.Unified && n > total || x.Unified && n < total || x.Kind == "" {
			t.Errorf("%q of %d: %d, %+v", text, total, n, x)
		}
	})
}
