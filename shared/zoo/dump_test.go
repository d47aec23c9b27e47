package zoo

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/program"
)

var update = flag.Bool("update", false, "write testdata anew")

// dump writes a program as text, one node a line.
func dump(p *program.Program) string {
	var b strings.Builder
	for i := range p.Nodes {
		n := &p.Nodes[i]
		fmt.Fprintf(&b, "%d %s %v ->", i, n.Name, n.Inputs)
		for _, v := range n.Outputs {
			fmt.Fprintf(&b, " %d:%s%s", v, p.Values[v].DType, p.Values[v].Shape)
		}
		if len(n.Control) > 0 {
			fmt.Fprintf(&b, " after %v", n.Control)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// The whole programs, so that a change of any node, order or edge is seen in
// review. go test -update writes them anew.
func TestProgramsAreAsRecorded(t *testing.T) {
	for _, c := range []struct {
		file, model string
		opt         Options
	}{
		{"mlp-sgd.txt", "mlp", Options{Batch: 2, Train: true, Optimizer: "sgd"}},
		{"lenet5-adam.txt", "lenet5", Options{Batch: 4, Train: true, Optimizer: "adam"}},
		{"lenet5-evaluation.txt", "lenet5", Options{Batch: 4}},
	} {
		path := filepath.Join("testdata", c.file)
		got := dump(build(t, c.model, c.opt).Program)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs, now:\n%s", path, got)
		}
	}
}
