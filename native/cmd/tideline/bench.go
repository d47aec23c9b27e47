package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"tideline/examples"
	"tideline/native/agent/record"
	"tideline/protocol/api/workfile"
	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
	"tideline/shared/launch"
	"tideline/shared/store"
)

type benchCmd struct {
	Events int  `default:"400000" help:"Length of the made-up timeline."`
	Rounds int  `default:"5" help:"Rounds of each measurement; the fastest counts."`
	JSON   bool `name:"json" help:"Print JSON."`
}

// measurement is one line of the result. A ratio compares with a yardstick of
// the same machine at the same moment, so that it means the same elsewhere.
type measurement struct {
	What  string  `json:"what"`
	Nanos float64 `json:"nanos"` // for one of Per
	Per   string  `json:"per"`
	Ratio float64 `json:"ratio"`
	To    string  `json:"to"`
	Note  string  `json:"note,omitempty"`
}

// Run measures.
func (b *benchCmd) Run(c *console) error {
	if b.Events < 1000 || b.Rounds < 1 {
		return usage("--events takes at least 1000, --rounds at least 1")
	}
	m := &bench{rounds: b.Rounds}
	if err := m.all(b.Events); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if b.JSON {
		return printJSON(c, m.list)
	}
	var t table
	t.row("what", "time", "ratio", "to", "")
	for _, x := range m.list {
		ratio := ""
		if x.To != "" {
			ratio = fmt.Sprintf("%.2f", x.Ratio)
		}
		t.row(x.What, fmt.Sprintf("%.1f ns an %s", x.Nanos, x.Per), ratio, x.To, x.Note)
	}
	t.print(c)
	return nil
}

// bench measures all tasks in turn, round after round, so that a moment in
// which the machine is busy with something else falls on all of them alike.
type bench struct {
	rounds int
	tasks  []*task
	list   []measurement
}

type task struct {
	measurement
	n    int // of what it is measured in
	yard int // the task to compare with; itself: none
	run  func() error
	done func() string // says more once it has run; nil: nothing
}

// add plans a measurement of n of something, compared with another task, and
// returns its number.
func (m *bench) add(what, per string, n, yard int, run func() error) int {
	m.tasks = append(m.tasks, &task{measurement: measurement{What: what, Per: per}, n: n, yard: yard, run: run})
	return len(m.tasks) - 1
}

// alone stands for the yardstick of a task that is one.
const alone = -1

func (m *bench) measure() error {
	for range m.rounds {
		for _, t := range m.tasks {
			began := time.Now()
			if err := t.run(); err != nil {
				return fmt.Errorf("%s: %w", t.What, err)
			}
			if nanos := float64(time.Since(began)) / float64(t.n); t.Nanos == 0 || nanos < t.Nanos {
				t.Nanos = nanos
			}
		}
	}
	for _, t := range m.tasks {
		if t.yard != alone {
			y := m.tasks[t.yard]
			t.To, t.Ratio = y.What, t.Nanos/y.Nanos
		}
		if t.done != nil {
			t.Note = t.done()
		}
		m.list = append(m.list, t.measurement)
	}
	return nil
}

func (m *bench) all(n int) error {
	m.allocator()
	m.events(n)
	if err := m.rerun(); err != nil {
		return err
	}
	return m.measure()
}

// allocator compares the BFC allocator with the least that keeping track of
// blocks could cost: a Go map that forgets and learns an address.
func (m *bench) allocator() {
	const ops, live = 200_000, 1000
	type op struct {
		slot int
		size int64
	}
	rng := rand.New(rand.NewPCG(1, 2))
	script := make([]op, ops)
	for i := range script {
		script[i] = op{rng.IntN(live), 256 << rng.IntN(12)}
	}
	yard := m.add("map: delete and insert", "operation", ops, alone, func() error {
		known := make(map[uint64]int64, live)
		var slots [live]uint64
		for i, o := range script {
			delete(known, slots[o.slot])
			slots[o.slot] = uint64(i+1) << 8
			known[slots[o.slot]] = o.size
		}
		return nil
	})
	m.add("BFC allocator: free and allocate", "operation", ops, yard, func() error {
		space, err := alloc.NewSpace(alloc.SpaceOptions{Base: 1 << 40})
		if err != nil {
			return err
		}
		a, err := bfc.New(space, bfc.Options{Name: "bench", Limit: 1 << 30, Growth: true})
		if err != nil {
			return err
		}
		defer a.Close()
		var slots [live]uint64
		for _, o := range script {
			if err := a.Free(slots[o.slot]); err != nil {
				return err
			}
			b, _ := a.Allocate(alloc.Request{Bytes: o.size}) // 0 when it is full, which Free ignores
			slots[o.slot] = b.Address
		}
		return nil
	})
}

// events measures the way of an event: encoded, recorded, read, stored.
func (m *bench) events(n int) {
	var strs event.Strings
	var events []event.Event
	synthetic.Generate(synthetic.Options{Events: n, Seed: 1, Dynamic: true}, &strs, event.SinkFunc(func(e *event.Event) { events = append(events, *e) }))
	n = len(events)
	into := make([]event.Event, n)
	yard := m.add("copy of events in memory", "event", n, alone, func() error {
		copy(into, events)
		return nil
	})
	var files [2]bytes.Buffer
	encode := 0
	for i, what := range []string{"encode", "encode, deflated"} {
		buf := &files[i]
		encode = m.add(what, "event", n, yard, func() error {
			buf.Reset()
			w := timeline.NewWriter(buf, timeline.Options{Strings: &strs, Block: block.Options{Deflate: i == 1}})
			for k := range events {
				w.Emit(&events[k])
			}
			return w.Close()
		}) - i
		m.tasks[encode+i].done = func() string { return fmt.Sprintf("%.2f bytes each", float64(buf.Len())/float64(n)) }
	}
	mem := new(record.Memory)
	m.add("record", "event", n, encode, func() error {
		if err := mem.Truncate(0); err != nil {
			return err
		}
		r := record.New(mem, &strs, false)
		for i := range events {
			r.Emit(&events[i])
		}
		return r.Finish()
	})
	decode := m.add("decode", "event", n, yard, func() error {
		s, err := timeline.NewStream(bytes.NewReader(files[0].Bytes()))
		got := 0
		for err == nil {
			var events []event.Event
			events, err = s.Next(into[:0])
			got += len(events)
		}
		if errors.Is(err, io.EOF) && got == n {
			return nil
		}
		return fmt.Errorf("%d of %d events decoded: %w", got, n, err)
	})
	m.add("store: columns and pyramids", "event", n, decode, func() error {
		t := store.New(&strs)
		t.Append(events)
		return nil
	})
}

// rerun measures a modelled run with and without its recording.
func (m *bench) rerun() error {
	text, err := examples.Files.ReadFile("demo.yaml")
	if err != nil {
		return fmt.Errorf("read the demo: %w", err)
	}
	w, problems := workfile.Read(text, launch.Known())
	if len(problems) > 0 {
		return problems
	}
	res, err := launch.Run(*w, launch.Options{})
	if err != nil {
		return err
	}
	yard := m.add("rerun of the demo, modelled", "event", int(res.Events), alone, func() error {
		_, err := launch.Run(*w, launch.Options{})
		return err
	})
	mem := new(record.Memory)
	m.add("the same, recorded", "event", int(res.Events), yard, func() error {
		if err := mem.Truncate(0); err != nil {
			return err
		}
		strs := new(event.Strings)
		r := record.New(mem, strs, false)
		if _, err := launch.Run(*w, launch.Options{Strings: strs, Sink: r}); err != nil {
			return err
		}
		return r.Finish()
	})
	return nil
}
