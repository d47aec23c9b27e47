package timeline_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
)

// counter counts what is written.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func BenchmarkWriteMillion(b *testing.B) {
	for _, deflate := range []bool{false, true} {
		b.Run(map[bool]string{false: "raw", true: "deflated"}[deflate], func(b *testing.B) {
			strings := new(event.Strings)
			var events []event.Event
			synthetic.Generate(synthetic.Options{Events: 1_000_000, Dynamic: true}, strings, event.SinkFunc(func(e *event.Event) { events = append(events, *e) }))
			b.ReportAllocs()
			var c counter
			for b.Loop() {
				c.n = 0
				w := timeline.NewWriter(&c, timeline.Options{Strings: strings, Block: block.Options{Deflate: deflate}})
				for i := range events {
					w.Emit(&events[i])
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
			b.ReportMetric(float64(c.n)/float64(len(events)), "B/event")
		})
	}
}

func BenchmarkReadMillion(b *testing.B) {
	var file bytes.Buffer
	w := timeline.NewWriter(&file, timeline.Options{})
	n := synthetic.Generate(synthetic.Options{Events: 1_000_000, Dynamic: true}, w.Strings(), w)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	var into []event.Event
	b.ReportAllocs()
	for b.Loop() {
		s, err := timeline.NewStream(bytes.NewReader(file.Bytes()))
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			into, err = s.Next(into[:0])
		}
		if !errors.Is(err, io.EOF) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
}
