package snapshot

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/ingest/snapshot/synthetic"
)

func made(tb testing.TB, s synthetic.Shape) []byte {
	tb.Helper()
	var b bytes.Buffer
	if _, err := synthetic.Write(&b, s); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func zip(tb testing.TB, b []byte) []byte {
	tb.Helper()
	var z bytes.Buffer
	w, _ := gzip.NewWriterLevel(&z, gzip.BestSpeed)
	if _, err := w.Write(b); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return z.Bytes()
}

var keepAlive *Snapshot

// live is the heap after a collection.
func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkRead(b *testing.B) {
	for _, requests := range []int{10_000, 100_000, 1_000_000} {
		file := sync.OnceValue(func() []byte { return made(b, synthetic.Shape{Requests: requests}) })
		b.Run(fmt.Sprint(requests), func(b *testing.B) { benchRead(b, file()) })
		b.Run(fmt.Sprint(requests, "/gzip"), func(b *testing.B) { benchRead(b, zip(b, file())) })
	}
}

func benchRead(b *testing.B, file []byte) {
	b.Helper()
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	before := live()
	for b.Loop() {
		s, err := Read(bytes.NewReader(file), Options{})
		if err != nil {
			b.Fatal(err)
		}
		keepAlive = s
	}
	b.ReportMetric(float64(live()-before)/1e6, "MB-kept")
	b.ReportMetric(float64(keepAlive.Traces[0].Len()), "entries")
	keepAlive = nil
}

// BenchmarkOpen is the whole way from a file's bytes to the blocks that a
// viewer gets: read, summed up, told as events, encoded.
func BenchmarkOpen(b *testing.B) {
	for _, requests := range []int{10_000, 100_000, 1_000_000} {
		for _, protocol := range []int{2, 3, 4, 5} {
			b.Run(fmt.Sprintf("%d/protocol %d", requests, protocol), func(b *testing.B) {
				file := made(b, synthetic.Shape{Requests: requests, Protocol: protocol})
				b.SetBytes(int64(len(file)))
				b.ReportAllocs()
				var reading, telling time.Duration
				var out written
				for b.Loop() {
					began := time.Now()
					s, err := Read(bytes.NewReader(file), Options{})
					if err != nil {
						b.Fatal(err)
					}
					s.Reading()
					reading += time.Since(began)
					began, out = time.Now(), 0
					strs := new(event.Strings)
					w := timeline.NewWriter(&out, timeline.Options{Strings: strs})
					s.Emit(strs, w)
					if err := w.Close(); err != nil {
						b.Fatal(err)
					}
					telling += time.Since(began)
				}
				b.ReportMetric(reading.Seconds()*1e3/float64(b.N), "ms-read")
				b.ReportMetric(telling.Seconds()*1e3/float64(b.N), "ms-tell")
				b.ReportMetric(float64(out)/1e6, "MB-out")
			})
		}
	}
}

// written counts what is written to it.
type written int64

func (w *written) Write(p []byte) (int, error) {
	*w += written(len(p))
	return len(p), nil
}
