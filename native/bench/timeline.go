package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"tideline/examples"
	"tideline/native/agent/record"
	"tideline/protocol/api/workfile"
	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/shared/launch"
	"tideline/shared/store"
	"tideline/shared/yardstick"
)

// timelines is the way of an event, encoded, recorded, read, stored, and of a
// modelled run with and without its recording.
func timelines(o *Options) ([]*task, []Line, error) {
	list := eventTasks(o.Events)
	more, err := rerunTasks()
	if err != nil {
		return nil, nil, err
	}
	return plain(append(list, more...)...), nil, nil
}

func eventTasks(n int) []yardstick.Task {
	var strs event.Strings
	var events []event.Event
	synthetic.Generate(synthetic.Options{Events: n, Seed: 1, Dynamic: true}, &strs, event.SinkFunc(func(e *event.Event) { events = append(events, *e) }))
	n = len(events)
	into := make([]event.Event, n)
	const yard = "copy of events in memory"
	list := []yardstick.Task{{Name: yard, Per: "event", N: n, Plain: true, Run: func() error {
		copy(into, events)
		return nil
	}}}
	var files [2]bytes.Buffer
	for i, what := range []string{"encode", "encode, deflated"} {
		buf := &files[i]
		list = append(list, yardstick.Task{
			Name: what, Per: "event", N: n, To: yard,
			Run: func() error {
				buf.Reset()
				w := timeline.NewWriter(buf, timeline.Options{Strings: &strs, Block: block.Options{Deflate: i == 1}})
				for k := range events {
					w.Emit(&events[k])
				}
				return w.Close()
			},
			Note: func() string { return fmt.Sprintf("%.2f bytes each", float64(buf.Len())/float64(n)) },
		})
	}
	mem := new(record.Memory)
	decode := func() error {
		s, err := timeline.NewStream(bytes.NewReader(files[0].Bytes()))
		got := 0
		for err == nil {
			var some []event.Event
			some, err = s.Next(into[:0])
			got += len(some)
		}
		if errors.Is(err, io.EOF) && got == n {
			return nil
		}
		return fmt.Errorf("%d of %d events decoded: %w", got, n, err)
	}
	return append(list,
		yardstick.Task{Name: "record", Per: "event", N: n, To: "encode", Run: func() error {
			if err := mem.Truncate(0); err != nil {
				return err
			}
			r := record.New(mem, &strs, false)
			for i := range events {
				r.Emit(&events[i])
			}
			return r.Finish()
		}},
		yardstick.Task{Name: "decode", Per: "event", N: n, To: yard, Run: decode, Prepare: func() error {
			if files[0].Len() > 0 {
				return nil
			}
			return list[1].Run() // where the encoding is not measured itself
		}},
		yardstick.Task{Name: "store: columns and pyramids", Per: "event", N: n, To: "decode", Run: func() error {
			t := store.New(&strs)
			t.Append(events)
			return nil
		}})
}

func rerunTasks() ([]yardstick.Task, error) {
	text, err := examples.Files.ReadFile("demo.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the demo: %w", err)
	}
	w, problems := workfile.Read(text, launch.Known())
	if len(problems) > 0 {
		return nil, problems
	}
	res, err := launch.Run(*w, launch.Options{})
	if err != nil {
		return nil, err
	}
	n, mem := int(res.Events), new(record.Memory)
	const yard = "rerun of the demo, modelled"
	return []yardstick.Task{
		{Name: yard, Per: "event", N: n, Run: func() error {
			_, err := launch.Run(*w, launch.Options{})
			return err
		}},
		{Name: "the same, recorded", Per: "event", N: n, To: yard, Run: func() error {
			if err := mem.Truncate(0); err != nil {
				return err
			}
			strs := new(event.Strings)
			r := record.New(mem, strs, false)
			if _, err := launch.Run(*w, launch.Options{Strings: strs, Sink: r}); err != nil {
				return err
			}
			return r.Finish()
		}},
	}, nil
}
