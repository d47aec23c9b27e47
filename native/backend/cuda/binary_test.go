//go:build cuda

package cuda_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const onVirtualCard = `model: mlp
train: {optimizer: sgd}
batch: 8
steps: 2
devices: [{kind: gpu, preset: lab-256m, growth: true}]
`

// The command built with the tag starts on a machine without a driver, says so
// in one line, and runs on the virtual card.
func TestBinaryStartsWithoutADriver(t *testing.T) {
	if testing.Short() {
		t.Skip("links the whole command")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "tideline")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-tags", "cuda", "-o", program, "../../cmd/tideline").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	workload := filepath.Join(dir, "w.yaml")
	if err := os.WriteFile(workload, []byte(onVirtualCard), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), program, "run", "--quiet", workload)
	c.Env = append(os.Environ(), "TIDELINE_CUDA_DRIVER=/nowhere/libcuda.so.1")
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), problems.String())
	}
	line, rest, _ := strings.Cut(problems.String(), "\n")
	if !strings.Contains(line, "/nowhere/libcuda.so.1") || !strings.Contains(line, "running on virtual cards") || rest != "" {
		t.Errorf("it said %q", problems.String())
	}
	if !strings.Contains(out.String(), "mlp: done, 2 of 2 steps") {
		t.Errorf("it printed\n%s", out.String())
	}
}
