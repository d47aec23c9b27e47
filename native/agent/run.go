package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tideline/native/agent/record"
	"tideline/protocol/api"
	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/launch"
)

// Errors that decide the answer to a request.
var (
	errBusy    = errors.New("too many runs at once")
	errClosing = errors.New("the agent is stopping")
)

// Job does a run: it emits events to the options' Sink, asks Stop now and
// then, and says how it went. It may use the Machine.
type Job func(launch.Options) (launch.Result, error)

// run is one run or opened file. What is not atomic is set before the run is
// known to others, or guarded by the agent's lock.
type run struct {
	id, name, yaml string
	began          time.Time
	steps          int
	source         record.Source
	made           Original // what the source was made of, if anything
	path           string   // of the recording
	stop           atomic.Bool
	step           atomic.Int64
	end            atomic.Pointer[ending] // nil while it runs
}

type ending struct{ state, message string }

func (r *run) finished() bool { return r.end.Load() != nil }

func (r *run) info() api.RunInfo {
	s := r.source.State()
	info := api.RunInfo{
		ID: r.id, Name: r.name, State: api.StateRunning, Step: int(r.step.Load()), Steps: r.steps,
		Events: s.Events, Bytes: s.Bytes, YAML: r.yaml, Kind: r.made.Kind,
	}
	if !r.began.IsZero() {
		info.Started = r.began.UTC().Format(time.RFC3339)
	}
	if e := r.end.Load(); e != nil {
		info.State, info.Error = e.state, e.message
	}
	if s.Failure != nil {
		trouble := fmt.Sprintf("the recording stopped: %v; %d events are not in it", s.Failure, s.Lost)
		info.Error = strings.TrimPrefix(info.Error+"; "+trouble, "; ")
	}
	return info
}

// Start begins a workload. Defaults are filled in; it must be valid. Alone, it has
// a machine of its own, whose cards no other run fills; otherwise it shares the
// agent's with all the others.
func (a *Agent) Start(w *api.Workload, alone bool) (api.RunInfo, error) {
	w = w.Clone()
	w.Defaults()
	yaml, err := workfile.Write(w)
	if err != nil {
		return api.RunInfo{}, err
	}
	return a.Go(w.Name, string(yaml), w.Steps, func(o launch.Options) (launch.Result, error) {
		if alone {
			o.Machine = device.NewMachine(new(sync.Mutex))
		}
		if a.opts.Compute != nil {
			if err := a.opts.Compute(w, &o); err != nil {
				return launch.Result{}, err
			}
		}
		res, err := launch.Run(*w, o)
		if err != nil {
			tellSettings(o, w)
		}
		return res, err
	})
}

// tellSettings records what a run was to be that failed before it recorded
// anything, such as on a full card, so that viewers can change it.
func tellSettings(o launch.Options, w *api.Workload) {
	rec, ok := o.Sink.(*record.Recording)
	if !ok || rec.State().Events > 0 {
		return
	}
	e := event.Event{Kind: event.Settings, Time: rec.Time(), Step: event.NoStep, Text: o.Strings.ID(w.Fields().Encode())}
	rec.Emit(&e)
}

// Go begins a run of anything that emits events, such as a generator, under a
// name; steps and yaml are for showing.
func (a *Agent) Go(name, yaml string, steps int, job Job) (api.RunInfo, error) {
	r := &run{name: name, yaml: yaml, steps: steps, began: time.Now()}
	rec, strs, err := a.admit(r)
	if err != nil {
		return api.RunInfo{}, err
	}
	go a.do(r, rec, strs, job)
	return r.info(), nil
}

// admit gives a run its number and its recording, if there is room for it.
func (a *Agent) admit(r *run) (*record.Recording, *event.Strings, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, nil, errClosing
	}
	going := 0
	for _, x := range a.runs {
		if !x.finished() {
			going++
		}
	}
	if going >= a.opts.MaxRuns {
		return nil, nil, fmt.Errorf("%w: %d are going, which is the limit; stop one or wait for it", errBusy, going)
	}
	a.numbers++
	r.id = "r" + strconv.Itoa(a.numbers)
	// The time down to milliseconds and the process keep names apart that
	// several agents write into one folder.
	name := fmt.Sprintf("run-%s-%d-%s-%s.tideline", r.began.UTC().Format("20060102-150405.000"), os.Getpid(), r.id, fileName(r.name))
	r.path = filepath.Join(a.opts.Data, name)
	f, err := a.opts.Create(r.path)
	if err != nil {
		return nil, nil, err
	}
	strs := new(event.Strings)
	rec := record.New(f, strs, false)
	r.source = rec
	a.runs = append(a.runs, r)
	a.wg.Add(1)
	a.prune()
	return rec, strs, nil
}

// fileName keeps of a name what every file system takes.
func fileName(s string) string {
	s = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, s)
	return s[:min(len(s), 40)]
}

// prune lets go of the oldest finished runs beyond Keep, and of recordings
// that former agents left behind. The lock is held.
func (a *Agent) prune() {
	for len(a.runs) > a.opts.Keep {
		i := slices.IndexFunc(a.runs, (*run).finished)
		if i < 0 {
			break
		}
		old := a.runs[i]
		_ = old.source.Close() // it was only read
		_ = os.Remove(old.path)
		a.runs = slices.Delete(a.runs, i, i+1)
	}
	left, err := filepath.Glob(filepath.Join(a.opts.Data, "run-*.tideline"))
	if err != nil || len(left) <= a.opts.Keep {
		return
	}
	slices.Sort(left) // by time, as their names begin with it
	for _, path := range left[:len(left)-a.opts.Keep] {
		ours := slices.ContainsFunc(a.runs, func(r *run) bool { return r.path == path })
		if st, err := os.Stat(path); !ours && err == nil && time.Since(st.ModTime()) > time.Hour {
			_ = os.Remove(path) // another agent may have been faster
		}
	}
}

// do runs a job to its end and finishes its recording.
func (a *Agent) do(r *run, rec *record.Recording, strs *event.Strings, job Job) {
	defer a.wg.Done()
	res, err := a.guarded(job, launch.Options{
		Strings: strs, Sink: rec, Machine: a.machine,
		Stop:   func() bool { rec.Poll(); return r.stop.Load() },
		OnStep: func(done int) { r.step.Store(int64(done)); rec.Poll() },
	})
	e := &ending{state: res.Reason.String(), message: res.Message}
	if err != nil {
		res.Reason = event.EndFailed
		e = &ending{api.StateFailed, err.Error()}
	}
	if !rec.Ended() {
		end := event.Event{Kind: event.End, Time: rec.Time(), Step: event.NoStep, Cause: uint8(res.Reason), Text: strs.ID(e.message)}
		rec.Emit(&end)
	}
	if err := rec.Finish(); err != nil {
		a.opts.Log(fmt.Sprintf("run %s: the recording stopped: %v", r.id, err))
	}
	r.end.Store(e)
	rec.Announce() // the state has changed, and viewers ask for it
	a.opts.Log(strings.TrimSuffix(fmt.Sprintf("run %s (%s): %s: %s", r.id, r.name, e.state, e.message), ": "))
}

// guarded keeps a broken invariant in one run from ending all the others.
func (a *Agent) guarded(job Job, o launch.Options) (res launch.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.opts.Log(fmt.Sprintf("a run broke: %v\n%s", p, debug.Stack()))
			err = fmt.Errorf("the run broke: %v: this is a mistake in Tideline, please report it with the agent's output", p)
		}
	}()
	return job(o)
}

// find returns a run or file by its id.
func (a *Agent) find(id string) *run {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, list := range [][]*run{a.runs, a.files} {
		for _, r := range list {
			if r.id == id {
				return r
			}
		}
	}
	return nil
}

// list copies a list, newest last.
func (a *Agent) list(of *[]*run) []api.RunInfo {
	a.mu.Lock()
	runs := slices.Clone(*of)
	a.mu.Unlock()
	infos := make([]api.RunInfo, 0, len(runs))
	for _, r := range runs {
		infos = append(infos, r.info())
	}
	return infos
}

// Serve lets a finished timeline be watched like a run, under a name. The
// agent closes it.
func (a *Agent) Serve(name string, s record.Source) api.RunInfo {
	return a.ServeMade(name, s, Original{})
}

// Original is a foreign file that a timeline was made of.
type Original struct {
	Kind string // as ingest words it
	// Open opens the file once more; its reader is closed by the agent.
	Open func() (io.ReadSeekCloser, error)
}

// ServeMade is Serve for a timeline that was made of a foreign file, which pages
// can ask for to read it themselves.
func (a *Agent) ServeMade(name string, s record.Source, of Original) api.RunInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := &run{id: "f" + strconv.Itoa(len(a.files)+1), name: name, source: s, made: of}
	r.end.Store(&ending{state: api.StateFile})
	a.files = append(a.files, r)
	return r.info()
}
