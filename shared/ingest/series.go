package ingest

import (
	"fmt"
	"math"
	"sort"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/analysis/foreign"
	"tideline/shared/analysis/reading"
	"tideline/shared/ingest/smilog"
	"tideline/shared/ingest/steplog"
)

// course is how the figures of a reading went, as samples over time.
type course struct {
	of     *reading.Reading
	cards  []card
	points []point
	note   string // what the time is, where the text tells none
}

type card struct {
	name  string
	total int64 // bytes, 0 when not told
}

type point struct {
	card int
	name string
	time int64 // nanoseconds
	step int32
	size int64 // bytes
}

// Where a text tells no times, its steps and rows make them: no unit would be
// right, and these keep their numbers legible on a time axis.
const (
	perStep = int64(1e6) // nanoseconds
	perRow  = int64(1e9) // as nvidia-smi dmon prints by default
)

// stepCourse is that of the series which a training loop printed.
func stepCourse(l *steplog.Log, r *reading.Reading) *course {
	c := &course{of: r, cards: []card{{name: r.Name}}}
	timed := true
	for _, s := range l.Series {
		timed = timed && len(s.Times) == len(s.Values)
	}
	if !timed {
		c.note = "The text tells no times: a millisecond stands for a step."
	}
	for _, s := range l.Series {
		unit := foreign.StepBytes(s, l)
		for i, v := range s.Values {
			p := point{name: s.Label, step: event.NoStep, size: amount(v * unit)}
			if s.Counted && s.Steps[i] < 1<<31 {
				p.step = int32(s.Steps[i])
			}
			if timed {
				p.time = s.Times[i]
			} else {
				p.time = int64(s.Steps[i]) * perStep
			}
			c.points = append(c.points, p)
		}
	}
	c.sort()
	if timed {
		c.fromZero()
	}
	return c
}

// amount is a printed figure as bytes that a sample can have.
func amount(v float64) int64 {
	return int64(math.Round(max(0, min(v, 1<<60))))
}

// screenCourse is that of a query of nvidia-smi that repeats; nil for one state.
func screenCourse(s *smilog.Screen, r *reading.Reading) *course {
	c := &course{of: r}
	timed, most := true, 0
	for i := range s.GPUs {
		g := &s.GPUs[i]
		most = max(most, len(g.Past))
		for j, p := range g.Past {
			timed = timed && p.Time >= 0 && (j == 0 || p.Time >= g.Past[j-1].Time)
		}
	}
	if most < 2 {
		return nil
	}
	if !timed {
		c.note = "The text tells no times: a second stands for a row."
	}
	for i := range s.GPUs {
		g := &s.GPUs[i]
		name := g.Name
		if g.Index >= 0 {
			name = "GPU " + strconv.FormatInt(g.Index, 10)
		} else if name == "" {
			name = g.UUID
		}
		c.cards = append(c.cards, card{name: name, total: max(0, g.Total) << 20})
		for _, p := range g.Past {
			t := int64(p.Row) * perRow
			if timed {
				t = p.Time
			}
			c.points = append(c.points, point{card: i, name: "memory.used", time: t, step: event.NoStep, size: p.Used << 20})
		}
	}
	c.sort()
	if timed {
		c.fromZero()
	}
	return c
}

func (c *course) sort() {
	sort.SliceStable(c.points, func(i, j int) bool { return c.points[i].time < c.points[j].time })
}

// fromZero counts times from the first one.
func (c *course) fromZero() {
	first := c.points[0].time
	for i := range c.points {
		c.points[i].time -= first
	}
}

func (c *course) tell(strs *event.Strings, sink event.Sink) {
	var now int64
	emit := func(e event.Event) {
		now = max(now, e.Time)
		sink.Emit(&e)
	}
	first := c.points[0].time
	for i, k := range c.cards {
		f := event.Fields{{Key: "name", Value: k.name}, {Key: "kind", Value: "gpu"}}
		if k.total > 0 {
			f.Set("total", strconv.FormatInt(k.total, 10))
		}
		emit(event.Event{Kind: event.DeviceFacts, Time: first, Device: event.DeviceID(i), Step: event.NoStep, Text: strs.ID(f.Encode())})
	}
	if c.note != "" {
		emit(event.Event{Kind: event.Log, Time: first, Step: event.NoStep, Text: strs.ID(c.note)})
	}
	for _, p := range c.points {
		emit(event.Event{Kind: event.Sample, Time: p.time, Device: event.DeviceID(p.card), Step: p.step, Op: strs.ID(p.name), Size: p.size})
	}
	emit(event.Event{Kind: event.Log, Time: now, Step: event.NoStep, Text: strs.ID(fmt.Sprintf("%s: %s", c.of.Heading(), c.of.Why))})
	emit(event.Event{Kind: event.End, Time: now, Step: event.NoStep, Cause: uint8(event.EndDone), Text: strs.ID("end of the log")})
}

// OverTime says whether all that the text tells happened one after the other,
// rather than at moments whose distances it does not tell.
func (t *Text) OverTime() bool {
	if t.Log != nil || len(t.dumps) > 0 {
		return false
	}
	for _, r := range t.Readings {
		if t.courseOf(r) == nil && r.Kind != "rmm-log" && r.Kind != "tf-log-memory" {
			return false
		}
	}
	return true
}

func (t *Text) courseOf(r *reading.Reading) *course {
	for _, c := range t.courses {
		if c.of == r {
			return c
		}
	}
	return nil
}
