package launch

import (
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
)

func TestRetracingIsWarnedOfTwiceAtMost(t *testing.T) {
	for _, c := range []struct {
		name  string
		mode  api.Mode
		batch []int
		want  int
	}{
		{"one size", api.Graph, []int{8}, 0},
		{"four sizes", api.Graph, []int{8, 9, 10, 11}, 0},
		{"five sizes", api.Graph, []int{8, 9, 10, 11, 12}, 1},
		{"twenty sizes", api.Graph, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 2},
		{"eager", api.Eager, []int{8, 9, 10, 11, 12}, 0},
	} {
		w := api.Workload{Model: "mlp", Mode: c.mode, Batch: c.batch, Steps: 40, Devices: []api.Device{{Preset: "lab-256m"}}}
		table := new(event.Strings)
		got, traces := 0, 0
		if _, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
			if e.Kind == event.Log && e.Flags&event.Warning != 0 && strings.Contains(table.At(e.Text), "traced anew") {
				got++
			}
			if e.Kind == event.Annotation {
				traces++
			}
		})}); err != nil {
			t.Fatal(err)
		}
		if got != c.want {
			t.Errorf("%s: %d warnings, want %d", c.name, got, c.want)
		}
		if want := len(c.batch); c.mode == api.Graph && traces != want {
			t.Errorf("%s: %d concrete functions traced, want %d", c.name, traces, want)
		}
	}
}

// The last ten calls count, and no earlier ones: T traced, a point did not.
func TestRetracesAreCountedOverTenCalls(t *testing.T) {
	for _, c := range []struct{ calls, warned string }{
		{"TTTTT", "    W"},
		{"TTTT......T", "           "},         // the first is the eleventh back
		{"TTTT.....T", "         W"},           // and here the tenth
		{"TTTTTTTTTTTTTTT", "    WW         "}, // twice in its life
		{".........TTTTT", "             W"},
	} {
		var r retraces
		got := ""
		for _, x := range c.calls {
			if r.call(x == 'T') {
				got += "W"
			} else {
				got += " "
			}
		}
		if got != c.warned {
			t.Errorf("calls %q: warned at %q, want %q", c.calls, got, c.warned)
		}
	}
}
