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

	"tideline/shared/yardstick"
)

// wasmGroup is the group of the figures of WebAssembly.
const wasmGroup = "WebAssembly"

// wasm is the yardstick's tasks in another process, under Node.
type wasm struct {
	command []string
	names   []string // in the order in which they came
	watches map[string]*yardstick.Stopwatch
	nanos   map[string]float64 // for one unit
	rounds  int
}

func newWASM(command []string) *wasm {
	return &wasm{command: command, watches: map[string]*yardstick.Stopwatch{}, nanos: map[string]float64{}}
}

// round lets the process measure once; each stretch counts at its quietest.
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

// read takes the figures of a round: a line is a name, how many units it is,
// and the nanoseconds of its stretches, with tabs between them.
func (w *wasm) read(out []byte) error {
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		cells := strings.Split(s.Text(), "\t")
		numbers := make([]int64, len(cells))
		bad := len(cells) < 3
		for i := 1; i < len(cells); i++ {
			n, err := strconv.ParseInt(cells[i], 10, 64)
			numbers[i], bad = n, bad || err != nil || n < 0 || n == 0 && i == 1
		}
		if bad {
			return fmt.Errorf("measure WebAssembly: %q is no name, number of units and nanoseconds", s.Text())
		}
		name := cells[0]
		watch := w.watches[name]
		if watch == nil {
			w.names = append(w.names, name)
			watch = yardstick.NewStopwatch(clock)
			w.watches[name] = watch
		}
		watch.Keep(numbers[2:])
		w.nanos[name] = float64(watch.Quietest()) / float64(numbers[1])
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
