package launch

import (
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
)

// holding is what a device held when it held most.
type holding struct {
	total  int64
	op     string           // that asked for memory then
	tensor map[string]int64 // bytes by tensor
}

// atPeak runs a workload and gives what GPU:0 held at its peak, by the name
// that each block had when it was made or last taken over.
func atPeak(t *testing.T, w api.Workload) holding {
	t.Helper()
	table := new(event.Strings)
	type block struct {
		name string
		size int64
	}
	live := map[uint64]block{}
	var now int64
	var best holding
	_, err := Run(w, Options{Strings: table, Sink: event.SinkFunc(func(e *event.Event) {
		if e.Device != 1 {
			return
		}
		switch e.Kind {
		case event.Alloc:
			live[e.Address] = block{table.At(e.Tensor) + " (" + e.Category.String() + ")", e.Size}
			now += e.Size
		case event.Forward:
			live[e.Address] = block{table.At(e.Tensor) + " (" + e.Category.String() + ")", e.Size}
		case event.Free:
			now -= live[e.Address].size
			delete(live, e.Address)
		default:
			return
		}
		if now > best.total {
			best = holding{now, table.At(e.Op), map[string]int64{}}
			for _, b := range live {
				best.tensor[b.name] += b.size
			}
		}
	})})
	if err != nil {
		t.Fatal(err)
	}
	return best
}

func (h holding) largest(n int) []string {
	names := make([]string, 0, len(h.tensor))
	for name := range h.tensor {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := h.tensor[names[i]], h.tensor[names[j]]
		return a > b || a == b && names[i] < names[j]
	})
	out := []string{}
	for _, name := range names[:min(n, len(names))] {
		out = append(out, fmt.Sprintf("%10d  %s", h.tensor[name], name))
	}
	return out
}

func peaks(t *testing.T, model string, batch int) (eager, graph holding) {
	t.Helper()
	w := api.Workload{
		Model: model, Train: &api.Train{}, Batch: []int{batch}, Steps: 4, Mode: api.Eager,
		Devices: []api.Device{{Preset: "lab-1g"}},
	}
	eager = atPeak(t, w)
	w.Mode = api.Graph
	return eager, atPeak(t, w)
}

// The guide on eager and graph execution tells these figures and names these
// tensors; it changes with them.
func TestEagerPeakIsHigherForTheReasonsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/eager-and-graph.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model string
		only  []string // held at the eager peak, gone at the graph's
	}{
		{"mlp", []string{"gradients/dense1/MatMul (gradient)", "dense2/Relu (activation)"}},
		{"lenet5", []string{"conv1/Tanh (activation)", "conv2/Tanh (activation)", "pool1/AvgPool (activation)", "gradients/dense1/MatMul_1 (gradient)"}},
	} {
		eager, graph := peaks(t, c.model, 256)
		t.Logf("%s eager: %s at %s\n%s", c.model, event.FormatBytes(eager.total), eager.op, strings.Join(eager.largest(12), "\n"))
		t.Logf("%s graph: %s at %s\n%s", c.model, event.FormatBytes(graph.total), graph.op, strings.Join(graph.largest(12), "\n"))
		if eager.total <= graph.total {
			t.Errorf("%s: eager peak %d, graph peak %d", c.model, eager.total, graph.total)
		}
		for _, name := range c.only {
			if eager.tensor[name] == 0 || graph.tensor[name] != 0 {
				t.Errorf("%s: %s holds %d bytes at the eager peak, %d at the graph's", c.model, name, eager.tensor[name], graph.tensor[name])
			}
		}
		for _, h := range []holding{eager, graph} {
			if !strings.Contains(string(guide), event.FormatBytes(h.total)) || !strings.Contains(string(guide), "`"+h.op+"`") {
				t.Errorf("%s: the guide does not tell a peak of %s at %s", c.model, event.FormatBytes(h.total), h.op)
			}
		}
	}
}
