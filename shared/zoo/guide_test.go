package zoo

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The guide's table of models is made of the models themselves; -update writes
// its rows anew.
func TestGuideTellsTheModels(t *testing.T) {
	const path = "../../docs/guide/models.md"
	var rows strings.Builder
	for _, m := range Models() {
		b := build(t, m.Name, Options{Batch: 1})
		x := &b.Program.Values[b.Program.Inputs[0]]
		kept := savedPerSample(t, m.Name, Options{}, "") - savedPerSample(t, m.Name, Options{}, "loss/")
		digits := 1
		if kept < mib {
			digits = 4
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %d | %s%s | %.*f |\n", m.Name, m.Title, b.Program.Parameters(), x.DType, x.Shape[1:], digits, float64(kept)/mib)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const head = "| --- | --- | --- | --- | --- |\n"
	before, after, ok := strings.Cut(string(text), head)
	_, after, end := strings.Cut(after, "\n\n")
	if !ok || !end {
		t.Fatal("the table of models is gone")
	}
	want := before + head + rows.String() + "\n" + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Errorf("%s differs, its table should be\n%s", path, rows.String())
	}
}
