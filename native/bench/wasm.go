package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// wasmGroup is the group of the figures of WebAssembly.
const wasmGroup = "WebAssembly"

// wasm is the yardstick's tasks in another process, under Node.
type wasm struct {
	command []string
	names   []string // in the order in which they came
	nanos   map[string]float64
	rounds  int
}

func newWASM(command []string) *wasm { return &wasm{command: command, nanos: map[string]float64{}} }

// round lets the process measure once; the quietest round of each task counts.
func (w *wasm) round(ctx context.Context) error {
	if len(w.command) == 0 {
		return nil
	}
	out, err := exec.CommandContext(ctx, w.command[0], w.command[1:]...).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return fmt.Errorf("measure WebAssembly with %s: %w", strings.Join(w.command, " "), err)
	}
	w.rounds++
	return w.read(out)
}

// read takes the figures of a round: a line is a name, a tab, and nanoseconds.
func (w *wasm) read(out []byte) error {
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		name, number, ok := strings.Cut(s.Text(), "\t")
		nanos, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || !(nanos > 0) {
			return fmt.Errorf("measure WebAssembly: %q is no name, tab and nanoseconds", s.Text())
		}
		best, known := w.nanos[name]
		if !known {
			w.names = append(w.names, name)
		}
		if !known || nanos < best {
			w.nanos[name] = nanos
		}
	}
	return nil
}

// lines are the figures beside the native ones.
func (w *wasm) lines(s *suite) []Line {
	if len(w.command) == 0 {
		if s.o.Only != nil && !s.o.Only.MatchString(wasmGroup) {
			return nil
		}
		return []Line{{Group: wasmGroup, What: "not measured", Allocs: -1, Note: "go run ./build bench measures it beside, where there is Node"}}
	}
	var out []Line
	for _, name := range w.names {
		native := s.find(name)
		if native == nil {
			continue
		}
		out = append(out, Line{
			Group: wasmGroup, What: name, Nanos: w.nanos[name], Per: native.Per, Second: 1e9 / w.nanos[name], Allocs: -1, Rounds: w.rounds,
			To: "native", Ratio: w.nanos[name] / native.nanos, Note: fmt.Sprintf("%.2f of the native speed", native.nanos/w.nanos[name]),
		})
	}
	return out
}
