package explain

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tideline/shared/golden"
)

// TestHoldersInEveryForm: who holds the memory, for people, on the page and
// redacted.
func TestHoldersInEveryForm(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(golden.Cases(t), "24-torch-snapshot-2025-small-model", "snapshot.pickle"))
	if err != nil {
		t.Fatal(err)
	}
	text := explain(t, "s", file, Options{NoReruns: true, Width: 120})
	for _, want := range []string{
		"\n46.50 MiB of 128.00 MiB reserved are active.",
		"\nWho holds 46.50 MiB of GPU_0_torch at the end\n    15.00 MiB  32 % in 2 blocks: generate_counterfactuals counterfactuals.py:102, from <module> counterfactuals.py:218\n",
		"16.50 MiB  35 % in 32 blocks: allocated before the recording began, no stack or op is known\n",
		"- Whether GPU_0_torch holds more from step to step",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	page := explain(t, "s", file, Options{NoReruns: true, HTML: true})
	for _, want := range []string{"<h3>Who holds 46.50 MiB of GPU_0_torch at the end</h3>", "generate_counterfactuals counterfactuals.py:102, from &lt;module&gt; counterfactuals.py:218"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q on the page", want)
		}
	}
	for _, o := range []Options{{}, {HTML: true}, {JSON: true}} {
		o.NoReruns, o.Redact = true, true
		got := explain(t, "s", file, o)
		for _, secret := range []string{"counterfactuals", "d_image", "_init_group", "adam.py"} {
			if strings.Contains(got, secret) {
				t.Errorf("%+v tells of %s", o, secret)
			}
		}
		if !strings.Contains(got, "op-1") || !strings.Contains(got, "GPU_0_torch") {
			t.Errorf("%+v: no pseudonym, or the allocator's own name is gone", o)
		}
	}
}

// ownNames are what only traces of timelines tell of an allocation.
var ownNames = regexp.MustCompile(`,"(op|tensor|category|allocator)":"[^"]*"|,"requested":[0-9]+`)

// TestLeakOfATrace: the leak of a run of ours as a trace, with the names that
// our writer adds, and without them, as others' traces have neither ops nor
// steps.
func TestLeakOfATrace(t *testing.T) {
	trace := traceOf(t, exampleFile(t, "leak"))
	for name, c := range map[string]struct {
		trace []byte
		wants []string
	}{
		"named":   {trace, []string{"conv1/Conv2D", "conv1/BiasAdd keeps 3.61 MiB more each time", "GPU_0_bfc: the use fell and rose"}},
		"unnamed": {ownNames.ReplaceAll(trace, nil), []string{"blocks of 4.59 MiB keep 9.19 MiB more each time", "85 % in 41 blocks: blocks of 4.59 MiB", "torch on /device:GPU:0: the use fell and rose"}},
	} {
		text := explain(t, name, c.trace, Options{Width: 200})
		for _, want := range c.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}

// TestLogsAreReplayed: a log of allocations is read with its history.
func TestLogsAreReplayed(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(golden.Cases(t), "27-rmm-2019-old-columns", "rmm.csv"))
	if err != nil {
		t.Fatal(err)
	}
	if text := explain(t, "rmm.csv", file, Options{}); !strings.Contains(text, "the pool of RMM\n") || !strings.Contains(text, "blocks of 22.17 MiB") {
		t.Error(text)
	}
}
