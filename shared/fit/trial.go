package fit

import (
	"slices"
	"strings"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/analysis/finding"
	"tideline/shared/launch"
	"tideline/shared/store"
)

// Change is one field of a workload and the value it gets.
type Change = finding.Change

// Trial is one rerun.
type Trial struct {
	Changes []Change
	ID      uint64 // of the run: the hash of what it did to memory
	Passed  bool   // all steps ran
	Message string // why it ended, when it did not pass
	Steps   int    // finished
	Samples int64  // in them
	Nanos   int64  // modelled

	// Of the device in question, in bytes.
	Peak, Reserved, Limit int64
	ByCategory            [event.NumCategories]int64 // of Peak
	ArenaUnused           int64                      // of Peak: in planned arenas, and no tensor's
	Workspace             int64                      // the largest that a kernel asked for
	Unasked               int64                      // of Peak: room in chunks beyond what was asked for

	OOM *launch.OOM // nil unless it ran out of memory
}

// NanosPerSample is the modelled time of a sample, 0 when none went through.
func (t *Trial) NanosPerSample() int64 {
	if t.Samples == 0 {
		return 0
	}
	return t.Nanos / t.Samples
}

// Text is the changes as --set takes them.
func (t *Trial) Text() string {
	words := make([]string, len(t.Changes))
	for i, c := range t.Changes {
		words[i] = c.String()
	}
	return strings.Join(words, " ")
}

// Short is Text with long lists cut.
func (t *Trial) Short() string {
	words := make([]string, len(t.Changes))
	for i, c := range t.Changes {
		words[i] = c.String()
		if list := strings.Split(c.Value, ","); len(list) > 6 {
			words[i] = c.Field + "=" + list[0] + ",…," + list[len(list)-1]
		}
	}
	return strings.Join(words, " ")
}

// DefaultEvents bounds all reruns of a question together: seconds.
const DefaultEvents = 8_000_000

// Prober runs workloads, within bounds.
type Prober struct {
	Device    string      // whose memory counts: /GPU:0
	MaxEvents int64       // of all runs together; 0: DefaultEvents
	Stop      func() bool // ends everything; nil never does
	Known     *api.Known  // nil: launch.Known()

	events int64
	runs   int
	err    error // of the last run that could not be made
}

// Runs is how many workloads were run.
func (p *Prober) Runs() int { return p.runs }

// Err is why the last run could not be made; nil where it could, or was ended.
func (p *Prober) Err() error { return p.err }

// Over says that the bounds are reached: what is not tried yet will not be.
func (p *Prober) Over() bool {
	limit := p.MaxEvents
	if limit == 0 {
		limit = DefaultEvents
	}
	return p.events >= limit || p.Stop != nil && p.Stop()
}

func (p *Prober) known() api.Known {
	if p.Known == nil {
		k := launch.Known()
		p.Known = &k
	}
	return *p.Known
}

// Try runs the workload with some changes. It is false when they make no
// workload, change nothing, or the bounds were reached before the end.
func (p *Prober) Try(w *api.Workload, changes ...Change) (*Trial, bool) {
	x := w.Clone()
	for _, c := range changes {
		if x.Set(c.Field, c.Value) != nil {
			return nil, false
		}
	}
	if len(x.Validate(p.known())) > 0 {
		return nil, false
	}
	x.Defaults()
	if len(changes) > 0 {
		was := w.Clone()
		was.Defaults()
		if slices.Equal(x.Fields(), was.Fields()) {
			return nil, false
		}
	}
	return p.run(x, changes)
}

func (p *Prober) run(w *api.Workload, changes []Change) (*Trial, bool) {
	if p.Over() {
		return nil, false
	}
	strs := new(event.Strings)
	m := newMeter(strs)
	res, err := launch.Run(*w, launch.Options{
		Strings: strs,
		Sink:    event.SinkFunc(func(e *event.Event) { p.events++; m.Emit(e) }),
		Stop:    p.Over,
	})
	p.runs++
	if p.err = err; err != nil || res.Reason == event.EndStopped {
		return nil, false
	}
	t := &Trial{
		Changes: changes, ID: m.hash.Sum64(), Passed: res.Reason == event.EndDone, Message: res.Message,
		Steps: res.Steps, Samples: m.samples, Nanos: res.Nanos, OOM: res.OOM,
	}
	for _, d := range res.Devices {
		if d.Name == p.Device {
			t.Peak, t.Reserved, t.Limit = d.PeakInUse, d.PeakReserved, d.Limit
			t.Workspace = m.workspace[d.ID]
		}
	}
	m.flush()
	for _, pool := range m.tl.Pools() {
		if strings.HasSuffix(m.tl.Device(pool.Device).Name, strings.TrimPrefix(p.Device, "/")) && pool.Facts.Text("within") == "" && pool.Allocs() > 0 {
			c := finding.At(m.tl, pool)
			t.ByCategory, t.ArenaUnused = c.ByCategory, c.Arena
			_, last := m.tl.Span()
			t.Unasked = pool.Peak(0, last+1, 0).Waste
		}
	}
	return t, true
}

// Diagnose runs the workload and says what stands out.
func (p *Prober) Diagnose(w *api.Workload) ([]finding.Finding, bool) {
	if p.Over() {
		return nil, false
	}
	strs := new(event.Strings)
	m := newMeter(strs)
	res, err := launch.Run(*w, launch.Options{
		Strings: strs, Stop: p.Over, Sink: event.SinkFunc(func(e *event.Event) { p.events++; m.Emit(e) }),
	})
	p.runs++
	if err != nil || res.Reason == event.EndStopped {
		return nil, false
	}
	m.flush()
	return finding.Of(m.tl), true
}

// meter takes a run's events apart into what a Trial tells.
type meter struct {
	tl        *store.Timeline
	hash      *eventhash.Hasher
	strs      *event.Strings
	batch     []event.Event
	samples   int64
	workspace map[event.DeviceID]int64
}

func newMeter(strs *event.Strings) *meter {
	return &meter{
		tl: store.New(strs), hash: eventhash.New(strs), strs: strs, batch: make([]event.Event, 0, 256), workspace: map[event.DeviceID]int64{},
	}
}

// Emit implements event.Sink.
func (m *meter) Emit(e *event.Event) {
	if m.batch = append(m.batch, *e); len(m.batch) == cap(m.batch) {
		m.flush()
	}
	m.hash.Emit(e)
	switch e.Kind {
	case event.StepEnd:
		m.samples += e.Size
	case event.Alloc:
		if e.Category == event.Temporary && e.Size > m.workspace[e.Device] && m.strs.At(e.Tensor) != "planned arena" {
			m.workspace[e.Device] = e.Size
		}
	default:
	}
}

func (m *meter) flush() {
	m.tl.Append(m.batch)
	m.batch = m.batch[:0]
}
