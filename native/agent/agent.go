package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"tideline/native/agent/record"
	"tideline/protocol/api"
	"tideline/shared/device"
	"tideline/shared/launch"
)

// Limits that hold where Options say nothing.
const (
	DefaultMaxRuns    = 4  // at the same time; another is answered 429
	DefaultMaxViewers = 64 // streams at the same time; another is answered 503
	DefaultKeep       = 64 // finished recordings; older ones are removed
)

// Options of an Agent. Data is required.
type Options struct {
	Version string
	Page    http.Handler // serves / and its assets; nil: a line of text
	Guest   http.Handler // serves the page to those who bring no token; nil: they are turned away
	Share   http.Handler // serves /share/, beside the page; nil: there is no share service
	Token   string       // empty: a random one
	Data    string       // folder for recordings; made when missing
	Hosts   []string     // names, beside the loopback ones, that requests may call us by

	Presets []api.Preset
	Models  []string
	Demos   []api.Demo

	// Compute sets what a run computes with and on; nil: only time is modelled.
	Compute func(w *api.Workload, o *launch.Options) error

	MaxRuns, MaxViewers, Keep int // 0: the defaults

	// Create makes the file of a recording; nil: on disk.
	Create func(name string) (record.File, error)
	// Log takes lines for whoever runs the agent; nil drops them.
	Log func(line string)
}

// Agent runs workloads and serves them.
type Agent struct {
	opts    Options
	known   api.Known
	machine *device.Machine // one computer: its cards are shared by all runs
	viewers chan struct{}   // a place per stream
	patience

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // runs

	mu      sync.Mutex
	runs    []*run // in the order in which they began
	files   []*run
	numbers int // of runs so far
	closed  bool
}

// New makes an agent. Close it.
func New(o Options) (*Agent, error) {
	if o.Data == "" {
		return nil, errors.New("start the agent: no folder for recordings was given")
	}
	if err := os.MkdirAll(o.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for recordings (choose another with --data): %w", err)
	}
	if o.Token == "" {
		o.Token = rand.Text()
	}
	if o.MaxRuns <= 0 {
		o.MaxRuns = DefaultMaxRuns
	}
	if o.MaxViewers <= 0 {
		o.MaxViewers = DefaultMaxViewers
	}
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	if o.Create == nil {
		o.Create = func(name string) (record.File, error) { return record.Create(name, false) }
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	a := &Agent{opts: o, machine: device.NewMachine(new(sync.Mutex)), viewers: make(chan struct{}, o.MaxViewers), patience: usual}
	a.known.Models = o.Models
	for _, p := range o.Presets {
		a.known.Presets = append(a.known.Presets, p.Name)
	}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a, nil
}

// Token is what requests must carry.
func (a *Agent) Token() string { return a.opts.Token }

// Close stops all runs, waits a moment for their recordings to be finished,
// and ends all streams.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.closed = true
	all := append(append([]*run(nil), a.runs...), a.files...)
	a.mu.Unlock()
	for _, r := range all {
		r.stop.Store(true)
	}
	finished := make(chan struct{})
	go func() { a.wg.Wait(); close(finished) }()
	var err error
	select {
	case <-finished:
	case <-time.After(10 * time.Second):
		// What is recorded so far opens; the rest is abandoned.
		err = errors.New("stop the agent: a run did not stop within 10 s")
	}
	a.cancel()
	for _, r := range all {
		if r.finished() {
			_ = r.source.Close() // read-only by now
		}
	}
	return err
}
