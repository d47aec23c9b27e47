package store

import (
	"flag"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
)

var benchN = flag.Int("events", 1_000_000, "events in the benchmarks' timeline")

// feed appends a made-up run in batches, as a decoder would, with the timer
// running only inside Append.
func feed(b *testing.B, tl *Timeline, o synthetic.Options) {
	b.Helper()
	batch := make([]event.Event, 0, 16384)
	flush := func() {
		b.StartTimer()
		tl.Append(batch)
		b.StopTimer()
		batch = batch[:0]
	}
	synthetic.Generate(o, tl.Strings(), event.SinkFunc(func(e *event.Event) {
		if batch = append(batch, *e); len(batch) == cap(batch) {
			flush()
		}
	}))
	flush()
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range []struct {
		name    string
		dynamic bool
	}{{"steady", false}, {"dynamic", true}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.StopTimer()
			for range b.N {
				tl := New(nil)
				feed(b, tl, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: c.dynamic})
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tl.Events()), "ns/event")
				b.ReportMetric(float64(tl.Bytes())/float64(tl.Events()), "B/event")
				if tl.Skipped() > 0 {
					b.Fatalf("%d events skipped", tl.Skipped())
				}
			}
		})
	}
}

func BenchmarkBuckets(b *testing.B) {
	tl := New(nil)
	b.StopTimer()
	feed(b, tl, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	first, last := tl.Span()
	dst := make([]MemoryBucket, 1280)
	spans := make([]SpanBucket, 1280)
	var scratch []int32
	var p *Pool
	for _, q := range tl.Pools() {
		if p == nil || q.Allocs() > p.Allocs() {
			p = q
		}
	}
	for _, zoom := range []struct {
		name string
		part int64
	}{{"all", 1}, {"32nd", 32}, {"1000th", 1000}} {
		d := (last - first) / zoom.part
		w := Window{first + (last-first-d)/2, first + (last-first-d)/2 + d, 1280}
		b.Run("memory/"+zoom.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				p.Buckets(w, dst)
			}
		})
		b.Run("tracks/"+zoom.name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				for _, k := range tl.Tracks() {
					scratch = k.Buckets(w, spans, scratch)
				}
			}
			b.ReportMetric(float64(len(tl.Tracks())), "tracks")
		})
		b.Run("tiles/"+zoom.name, func(b *testing.B) {
			b.ReportAllocs()
			var tile Tile
			for range b.N {
				for i := range w.W {
					p.TileOver(&tile, w.Edge(i), w.Edge(i+1))
				}
			}
		})
	}
}

// BenchmarkSearch looks through everything for a name that few have.
func BenchmarkSearch(b *testing.B) {
	tl := New(nil)
	b.StopTimer()
	feed(b, tl, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	b.ResetTimer()
	b.StartTimer()
	for range b.N {
		hits, _, done := tl.Search(Query{Text: "no such name"}, Cursor{})
		if len(hits) > 0 || !done {
			b.Fatal("found what is not there")
		}
	}
}

// BenchmarkCompare sets two runs against each other, to a ranked table.
func BenchmarkCompare(b *testing.B) {
	b.StopTimer()
	x, y := New(nil), New(nil)
	feed(b, x, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	feed(b, y, synthetic.Options{Events: *benchN, Seed: 2, Dynamic: true})
	b.ResetTimer()
	b.StartTimer()
	for range b.N {
		if d := Compare(x, y, 20); len(d) == 0 || len(d[0].Ops) == 0 {
			b.Fatal("two different runs compare equal")
		}
	}
}

// BenchmarkCursor answers what the page asks when the cursor moves: the live
// set by size, its totals, and the chunk map.
func BenchmarkCursor(b *testing.B) {
	tl := New(nil)
	b.StopTimer()
	feed(b, tl, synthetic.Options{Events: *benchN, Seed: 1, Dynamic: true})
	first, last := tl.Span()
	p := tl.Pools()[0]
	var live []int32
	b.ResetTimer()
	b.StartTimer()
	for i := range b.N {
		at := first + (last-first)*int64(i%97)/97
		live = p.LiveAt(live[:0], at)
		p.Sort(live, BySize)
		p.Totals(live)
		p.TotalsByOp(live, 20)
		p.ChunkMapAt(at)
	}
	b.ReportMetric(float64(len(live)), "live")
}
