package vgpu_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tideline/native/backend/vgpu"
	"tideline/native/dataset"
	"tideline/shared/launch"
	"tideline/shared/zoo"
)

// Every switch with every other, on the models that are quick to compute: the
// memory events with arithmetic are those without.
func TestArithmeticChangesNoMemoryEventOfAnyPair(t *testing.T) {
	golden, err := os.ReadFile("../../../shared/launch/testdata/pairwise.txt")
	if err != nil {
		t.Fatal(err)
	}
	train, err := dataset.Training()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range launch.PairwiseCases() {
		if !c.Small {
			continue
		}
		n++
		b, err := zoo.Build(c.Workload.Model, zoo.Options{Batch: 1})
		if err != nil {
			t.Fatal(err)
		}
		h, res := hash(t, c.Workload, vgpu.New(), train.For(b.Inputs))
		if line := fmt.Sprintf("%s %s %016x", c.Name, res.Reason, h); !strings.Contains(string(golden), line+"\n") {
			t.Errorf("%s: not in shared/launch/testdata/pairwise.txt, to which the modelled run and WebAssembly are held", line)
		}
	}
	if n < 30 {
		t.Errorf("only %d cases", n)
	}
}
