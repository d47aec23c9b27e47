//go:build tensorflow

package attach

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tideline/protocol/event"
	"tideline/shared/ingest/xspace"
	"tideline/shared/store"
)

// program starts a real program in training and waits until it trains. The
// Python that has its packages comes from go run ./build test:tensorflow.
func program(t *testing.T, script string) (Target, string) {
	t.Helper()
	python := os.Getenv("TIDELINE_PYTHON")
	if python == "" {
		t.Fatal("TIDELINE_PYTHON is not set: run these tests by go run ./build test:tensorflow")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil { // the program takes it; the server wants a number
		t.Fatal(err)
	}
	cmd := exec.Command(python, script, fmt.Sprint(port), "300")
	// Without it TensorFlow takes the CPU's memory from the system.
	cmd.Env = append(os.Environ(), "TF_CPU_ALLOCATOR_USE_BFC=1", "CUDA_VISIBLE_DEVICES=", "JAX_PLATFORMS=cpu")
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it trains for as long as it is let
		_ = cmd.Wait()
	})
	for in := bufio.NewScanner(out); in.Scan(); {
		if version, ok := strings.CutPrefix(in.Text(), "up "); ok {
			return Target{"127.0.0.1", uint16(port)}, version
		}
	}
	t.Fatalf("%s did not begin to train:\n%s", script, log.String())
	return Target{}, ""
}

func taken(t *testing.T, x Target, o Options) *xspace.Space {
	t.Helper()
	c, err := Profile(t.Context(), x, o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := xspace.Decode(c.Data)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes in %v from %q", len(c.Data), c.Took, c.From)
	return s
}

func spans(s *xspace.Space, part string) (ops, steps, named int) {
	for i := range s.Spans {
		x := &s.Spans[i]
		if x.Step {
			steps++
			continue
		}
		ops++
		if strings.Contains(s.Text(x.Name), part) {
			named++
		}
	}
	return ops, steps, named
}

func TestRealTensorFlow(t *testing.T) {
	x, version := program(t, "testdata/train_tensorflow.py")
	s := taken(t, x, Options{Duration: time.Second})
	ops, steps, products := spans(s, "MatMul")
	windows := s.Windows()
	if len(windows) == 0 || steps < 2 || products < 2*steps {
		t.Fatalf("TensorFlow %s: %d allocators, %d ops, %d products, %d steps", version, len(windows), ops, products, steps)
	}
	w := &windows[0]
	t.Logf("TensorFlow %s: %s, %d allocations, %d frees, at most %d bytes in use, %d ops, %d steps", version, w.Allocator, w.Allocations, w.Deallocations, w.Peak.InUse, ops, steps)
	// The largest tensor of a step is the gradient of the first layer's weights,
	// 256 by 512 numbers of 4 bytes.
	if w.Allocations < 4*steps || w.Largest.Requested != 256*512*4 || s.Text(w.Largest.Shape) != "[256,512]" || !strings.Contains(s.Text(w.Largest.Op), "MatMul") {
		t.Errorf("%d allocations, the largest %d bytes, %s of %s", w.Allocations, w.Largest.Requested, s.Text(w.Largest.Shape), s.Text(w.Largest.Op))
	}
	// What the allocator says is in use is what the events add up to.
	var strs event.Strings
	tl := store.New(&strs)
	s.Emit(&strs, event.SinkFunc(func(e *event.Event) { tl.Append([]event.Event{*e}) }))
	if tl.Skipped() != 0 {
		t.Errorf("%d events skipped", tl.Skipped())
	}
	for _, p := range tl.Pools() {
		if p.Name == w.Allocator && p.Now().InUse != w.Last {
			t.Errorf("%d bytes in use at the end, the allocator says %d", p.Now().InUse, w.Last)
		}
	}
	t.Run("into a folder", func(t *testing.T) {
		dir := t.TempDir()
		if s := taken(t, x, Options{Duration: 200 * time.Millisecond, Folder: dir, written: true}); len(s.Memory) == 0 {
			t.Error("no memory events")
		}
		if _, err := Profile(t.Context(), x, Options{Duration: 200 * time.Millisecond, written: true}); err != nil {
			t.Errorf("a temporary folder: %v", err)
		}
	})
	realServer(t, x)
}

func TestRealJAX(t *testing.T) {
	x, version := program(t, "testdata/train_jax.py")
	s := taken(t, x, Options{Duration: time.Second})
	ops, steps, _ := spans(s, "")
	t.Logf("JAX %s: %d ops, %d steps, %d memory events", version, ops, steps, len(s.Memory))
	if steps < 2 || ops < steps {
		t.Errorf("JAX %s: %d ops, %d steps", version, ops, steps)
	}
	realServer(t, x)
}

// realServer asks a server of theirs for what ours does in the other tests.
func realServer(t *testing.T, x Target) {
	t.Helper()
	t.Run("stopped early", func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		c, err := Profile(ctx, x, Options{Duration: 10 * time.Minute})
		if err != nil || len(c.Data) == 0 || c.Took > time.Minute {
			t.Errorf("%v, %v", c, err)
		}
	})
	t.Run("two at once", func(t *testing.T) {
		first := make(chan error, 1)
		go func() {
			_, err := Profile(t.Context(), x, Options{Duration: 2 * time.Second})
			first <- err
		}()
		time.Sleep(500 * time.Millisecond)
		_, err := Profile(t.Context(), x, Options{Duration: 100 * time.Millisecond})
		if e := new(Error); !errors.As(err, &e) || e.Kind != Failed || !strings.Contains(err.Error(), "already") {
			t.Errorf("the second: %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first: %v", err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		_, err := Profile(t.Context(), x, Options{Duration: 200 * time.Millisecond, Limit: 1000})
		if e := new(Error); !errors.As(err, &e) || e.Kind != TooLarge {
			t.Errorf("%v", err)
		}
	})
	t.Run("monitor", func(t *testing.T) {
		_, err := Monitor(t.Context(), x, 10*time.Millisecond, 1)
		if e := new(Error); !errors.As(err, &e) || e.Kind != NotProfiler {
			t.Errorf("%v", err)
		}
	})
}
