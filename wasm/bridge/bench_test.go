package bridge

import (
	"bytes"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
)

// made is a synthetic timeline of about n events as a file.
func made(tb testing.TB, n int) []byte {
	tb.Helper()
	var b bytes.Buffer
	table := new(event.Strings)
	w := timeline.NewWriter(&b, timeline.Options{Strings: table})
	synthetic.Generate(synthetic.Options{Events: n, Seed: 1, Dynamic: true}, table, w)
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// opened is a session that shows a file, its lanes placed as the page does.
func opened(tb testing.TB, file []byte) *Session {
	tb.Helper()
	s := NewSession()
	s.Ask("reset\t0\tfile\tfile")
	if err := s.Feed(Current, file); err != nil {
		tb.Fatal(err)
	}
	s.Ask("finish\t0")
	s.Ask("status")
	place(s)
	return s
}

func place(s *Session) {
	y := 0
	q := "layout"
	for i := range s.lanes {
		h := 60
		if s.lanes[i].Kind <= 1 {
			h = 150
		}
		q += "\t" + laneKey(&s.lanes[i]) + ":" + itoa(int64(y)) + ":" + itoa(int64(h))
		y += h + 1
	}
	s.Ask(q)
}

func BenchmarkOpen1M(b *testing.B) {
	file := made(b, 1_000_000)
	b.ReportAllocs()
	var s *Session
	for b.Loop() {
		s = opened(b, file)
		s.Draw(Lanes, 968, 500, 1, 0, s.slots[0].tl.End().Time, 0)
	}
	tl := s.slots[0].tl
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tl.Events()), "ns/event")
	b.ReportMetric(float64(tl.Bytes())/float64(tl.Events()), "B/event")
}

func BenchmarkPan1M(b *testing.B) {
	s := opened(b, made(b, 1_000_000))
	_, last := s.slots[0].tl.Span()
	b.ReportAllocs()
	i := int64(0)
	for b.Loop() {
		i++
		t0 := last/3 + (i%100)*last/5000
		s.Draw(Lanes, 968, 500, 1, t0, t0+last/5, 0)
	}
}

func BenchmarkStatus1M(b *testing.B) {
	s := opened(b, made(b, 1_000_000))
	b.ReportAllocs()
	for b.Loop() {
		s.Ask("status")
	}
}

// BenchmarkFlame1M asks for the flame graph of a run of a million events, whose
// tensors have names, and of a program with a million blocks alive, of 5000
// stacks of 40 frames.
func BenchmarkFlame1M(b *testing.B) {
	for _, c := range []struct {
		name, filter string
		file         func() []byte
	}{
		{"events", "", func() []byte { return made(b, 1_000_000) }},
		{"live", "", func() []byte { return alive(b, 1_000_000, 5000) }},
		{"live,filtered", "layer7.py", func() []byte { return alive(b, 1_000_000, 5000) }},
		{"names", "", func() []byte { return alive(b, 1_000_000, 1_000_000) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := opened(b, c.file())
			p := s.slots[Current].mainPool()
			first, last := s.slots[Current].span()
			at, _ := p.PeakPoint(first, last+1)
			q := "flame\tat\t" + itoa(at) + "p\t0\t1\t\t" + c.filter
			b.ReportAllocs()
			for b.Loop() {
				s.Ask(q)
			}
			b.ReportMetric(float64(len(s.Answer())), "B/answer")
			b.ReportMetric(float64(len(p.LiveIn(nil, p.Fullest(at)))), "blocks")
		})
	}
}

// alive is a file in which n blocks of some stacks are never freed.
func alive(tb testing.TB, n, stacks int) []byte {
	tb.Helper()
	table := new(event.Strings)
	ids := make([]event.StringID, stacks)
	for i := range ids {
		if stacks > n/2 { // names rather than stacks
			ids[i] = table.ID("layer" + itoa(int64(i)) + "/kernel")
			continue
		}
		text := "main /srv/train.py:10"
		for k := range 39 {
			text += "\nforward /srv/models/layer" + itoa(int64(i>>(k/3)%17)) + ".py:" + itoa(int64(k))
		}
		ids[i] = table.ID(text + "\nleaf /srv/leaf.py:" + itoa(int64(i)))
	}
	var b bytes.Buffer
	w := timeline.NewWriter(&b, timeline.Options{Strings: table})
	for i := range n {
		w.Emit(&event.Event{
			Kind: event.Alloc, Time: int64(i), Step: event.NoStep, Address: uint64(i+1) << 12,
			Size: int64(256 * (1 + i*7919%13)), Requested: 200, Tensor: ids[i*7919%stacks],
		})
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
