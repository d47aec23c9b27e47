package block_test

import (
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
)

// shapes are the made-up runs that are measured.
var shapes = []struct {
	name    string
	options synthetic.Options
}{
	{"steady", synthetic.Options{Events: 1_000_000, Seed: 1}},
	{"dynamic", synthetic.Options{Events: 1_000_000, Seed: 1, Dynamic: true}},
	{"two devices", synthetic.Options{Events: 1_000_000, Seed: 1, Dynamic: true, Devices: 2}},
}

func collect(o synthetic.Options) ([]event.Event, *event.Strings) {
	strings := new(event.Strings)
	var events []event.Event
	synthetic.Generate(o, strings, event.SinkFunc(func(e *event.Event) { events = append(events, *e) }))
	return events, strings
}

func perEvent(b *testing.B, events, bytes int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
	b.ReportMetric(float64(bytes)/float64(events), "B/event")
}

func BenchmarkEncode(b *testing.B) {
	for _, shape := range shapes {
		events, strings := collect(shape.options)
		for _, c := range []struct {
			name string
			opts block.Options
		}{
			{"raw", block.Options{}},
			{"deflated", block.Options{Deflate: true}},
		} {
			b.Run(shape.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				var out []byte
				bytes := 0
				enc := block.NewEncoder(strings, c.opts)
				for b.Loop() {
					bytes = 0
					for i := range events {
						if enc.Append(&events[i]) {
							out = enc.Flush(out[:0])
							bytes += len(out)
						}
					}
					out = enc.Flush(out[:0])
					bytes += len(out)
				}
				perEvent(b, len(events), bytes)
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, shape := range shapes {
		events, strings := collect(shape.options)
		for _, c := range []struct {
			name string
			opts block.Options
		}{
			{"raw", block.Options{}},
			{"deflated", block.Options{Deflate: true}},
		} {
			enc := block.NewEncoder(strings, c.opts)
			var frames [][]byte
			bytes := 0
			for i := range events {
				if enc.Append(&events[i]) || i == len(events)-1 {
					frames = append(frames, enc.Flush(nil))
					bytes += len(frames[len(frames)-1])
				}
			}
			b.Run(shape.name+"/"+c.name+"/pieces", func(b *testing.B) {
				b.ReportAllocs()
				d := block.NewDecoder()
				into := make([]event.Event, 0, 1024)
				for b.Loop() {
					for _, f := range frames {
						frame, _, err := block.Next(f)
						if err != nil {
							b.Fatal(err)
						}
						if err = d.Begin(frame); err != nil {
							b.Fatal(err)
						}
						for d.Left() > 0 {
							if into, err = d.More(into[:0], cap(into)); err != nil {
								b.Fatal(err)
							}
						}
					}
				}
				perEvent(b, len(events), bytes)
			})
			b.Run(shape.name+"/"+c.name, func(b *testing.B) {
				b.ReportAllocs()
				d := block.NewDecoder()
				into := make([]event.Event, 0, block.MaxEvents)
				for b.Loop() {
					for _, f := range frames {
						frame, _, err := block.Next(f)
						if err != nil {
							b.Fatal(err)
						}
						if into, err = d.Decode(frame, into[:0]); err != nil {
							b.Fatal(err)
						}
					}
				}
				perEvent(b, len(events), bytes)
			})
		}
	}
}
