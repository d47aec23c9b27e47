package store

import (
	"math"

	"tideline/protocol/event"
)

// SeriesKind says what a series counts.
type SeriesKind uint8

// The kinds of series.
const (
	QueueSeries  SeriesKind = iota // elements in a pipeline buffer; second value: its capacity
	SampleSeries                   // event.Sample
	MetricSeries                   // event.Metric: float64 bits, see Series.Float
)

// SeriesBucket is a step function over one bucket of a Window.
type SeriesBucket struct {
	Min, Max, Last int64 // the value at the bucket's start counts
	Known          bool  // false before the first point
}

// Series is a number over time.
type Series struct {
	Index  int
	Kind   SeriesKind
	Device event.DeviceID
	Name   event.StringID
	Second int64 // the last second value: a queue's capacity, what a sample is part of (of a card's memory, all of it)

	n numbers // extra: the step
}

type seriesKey struct {
	kind   SeriesKind
	device event.DeviceID
	name   event.StringID
}

// Len is the number of points.
func (s *Series) Len() int { return s.n.n }

// Point is point i; step is event.NoStep where it has none.
func (s *Series) Point(i int) (at, value int64, step int32) {
	return s.n.time(i), s.n.value(i), int32(s.n.extra(i))
}

// Float is the value of point i of a MetricSeries.
func (s *Series) Float(i int) float64 { return math.Float64frombits(uint64(s.n.value(i))) }

// At is the value at time at; false before the first point.
func (s *Series) At(at int64) (int64, bool) {
	n := s.n.upTo(at)
	return s.n.valueAfter(n), n > 0
}

// Highest is the largest value in [t0,t1). It means nothing for a
// MetricSeries, whose values are not integers.
func (s *Series) Highest(t0, t1 int64) int64 { return s.n.highest(t0, t1) }

// Buckets fills dst, which must have w.W elements.
func (s *Series) Buckets(w Window, dst []SeriesBucket) { s.n.buckets(w, dst) }

func (s *numbers) buckets(w Window, dst []SeriesBucket) {
	if !w.valid() {
		return
	}
	a := s.before(w.T0, 0)
	for i := range dst[:w.W] {
		b := s.before(w.Edge(i+1), a)
		carry := s.valueAfter(a)
		d := SeriesBucket{Min: carry, Max: carry, Last: s.valueAfter(b), Known: b > 0}
		if b > a {
			e := s.extent(a, b)
			if a == 0 {
				d.Min, d.Max = e.lo, e.hi
			} else {
				d.Min, d.Max = min(carry, e.lo), max(carry, e.hi)
			}
		}
		dst[i] = d
		a = b
	}
}
