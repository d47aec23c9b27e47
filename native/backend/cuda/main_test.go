//go:build cuda

package cuda_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tideline/native/backend/cuda"
	"tideline/native/backend/cuda/driver"
	"tideline/native/dataset"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/launch"
)

// fake watches the fake driver under the tests.
var fake *driver.State

// Environment of a child process that runs one test with other libraries.
const childOf = "TIDELINE_CUDA_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childOf) != "" {
		os.Exit(m.Run())
	}
	os.Exit(withFake(m))
}

func withFake(m *testing.M) int {
	dir, err := os.MkdirTemp("", "tideline-cuda")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	library := filepath.Join(dir, "libfake.so")
	if err := driver.Fake(context.Background(), "driver", library); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if fake, err = driver.NewState("driver", filepath.Join(dir, "state")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, value := range map[string]string{
		"TIDELINE_CUDA_DRIVER": library, "TIDELINE_FAKE_STATE": fake.Name(), "TIDELINE_CUBLAS": "0",
	} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// child runs a test of this binary in a process of its own.
func child(t *testing.T, name string, env ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$", "-test.v")
	c.Env = append(append(os.Environ(), childOf+"=1"), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s in a child process: %v\n%s", name, err, out)
	}
	if !strings.Contains(string(out), "--- PASS: "+name) {
		t.Fatalf("%s did not run in the child process:\n%s", name, out)
	}
	return string(out)
}

// settings sets up the fake for a test, and everything back after it.
func settings(t *testing.T, to map[string]int64) {
	t.Helper()
	for name, v := range to {
		fake.Set(name, v)
	}
	t.Cleanup(func() {
		for name := range to {
			fake.Set(name, 0)
		}
	})
}

func open(t *testing.T) *cuda.Driver {
	t.Helper()
	d, err := cuda.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

var given = []string{
	"LIVE_CONTEXTS", "LIVE_STREAMS", "LIVE_EVENTS", "LIVE_MODULES", "LIVE_BLOCKS", "LIVE_BYTES",
	"LIVE_HOST_BLOCKS", "LIVE_HOST_BYTES", "USED_BYTES",
}

// closeAll closes the driver and fails when the fake still has anything, or
// when something was left for a healthy context to take with it.
func closeAll(t *testing.T, d *cuda.Driver) {
	t.Helper()
	d.Close()
	for _, n := range given {
		if v := fake.Get(n); v != 0 {
			t.Errorf("%s is %d after closing", n, v)
		}
	}
	for _, n := range []string{"LEFT_STREAMS", "LEFT_EVENTS", "LEFT_MODULES", "LEFT_BLOCKS", "LEFT_HOST_BLOCKS"} {
		if v := fake.Get(n); v != 0 {
			t.Errorf("%s: %d were left to the context", n, v)
			fake.Set(n, 0)
		}
	}
}

// runClean fails when a run on the driver left anything but the contexts.
func runClean(t *testing.T) {
	t.Helper()
	for _, n := range []string{"LIVE_STREAMS", "LIVE_EVENTS", "LIVE_BLOCKS", "LIVE_BYTES", "LIVE_HOST_BLOCKS", "LIVE_HOST_BYTES"} {
		if v := fake.Get(n); v != 0 {
			t.Errorf("%s is %d after the run", n, v)
		}
	}
}

func digits(t *testing.T) (train, heldOut launch.Data) {
	t.Helper()
	a, b, err := dataset.Load()
	if err != nil {
		t.Fatal(err)
	}
	return dataset.Of(a), dataset.Of(b)
}

// train runs a workload on a driver's cards.
func train(t *testing.T, d *cuda.Driver, w api.Workload, sink event.Sink) (launch.Result, error) {
	t.Helper()
	b := d.Backend(nil)
	data, _ := digits(t)
	o := launch.Options{Backend: b, Data: data}
	if sink != nil {
		o.Sink = b.Timed(sink)
	}
	return launch.Run(w, o)
}

func small(model string, batch, steps int, growth bool) api.Workload {
	return api.Workload{
		Model: model, Train: &api.Train{}, Batch: []int{batch}, Steps: steps, Seed: 5,
		Devices: []api.Device{{Preset: "lab-256m", Growth: growth}},
	}
}
