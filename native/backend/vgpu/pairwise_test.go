package vgpu_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tideline/native/backend/vgpu"
	"tideline/shared/launch"
)

// Every switch with every other, on the models that are quick to compute: the
// memory events with arithmetic are those without.
func TestArithmeticChangesNoMemoryEventOfAnyPair(t *testing.T) {
	golden, err := os.ReadFile("../../../shared/launch/testdata/pairwise.txt")
	if err != nil {
		t.Fatal(err)
	}
	train, _ := load(t)
	n := 0
	for _, c := range launch.PairwiseCases() {
		if !c.Small {
			continue
		}
		n++
		h, res := hash(t, c.Workload, vgpu.New(), train)
		if line := fmt.Sprintf("%s %s %016x", c.Name, res.Reason, h); !strings.Contains(string(golden), line+"\n") {
			t.Errorf("%s: not in shared/launch/testdata/pairwise.txt, to which the modelled run and WebAssembly are held", line)
		}
	}
	if n < 30 {
		t.Errorf("only %d cases", n)
	}
}
