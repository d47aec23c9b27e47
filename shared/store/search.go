package store

import (
	"strings"

	"tideline/protocol/event"
)

// HitKind says what a Hit is.
type HitKind uint8

// The kinds of hit.
const (
	AllocHit HitKind = iota // Pool and Index
	SpanHit                 // Track and Index
)

// Hit is one thing found by Search.
type Hit struct {
	Kind  HitKind
	Pool  int
	Track int
	Index int
	Time  int64 // of its begin
	Size  int64 // bytes
}

// Query says what to search for. The zero value of a field asks for nothing.
type Query struct {
	Text     string // part of an op's or tensor's name, in any case
	MinBytes int64
	MaxBytes int64 // 0: no bound
	T0, T1   int64 // both 0: all of the timeline; else what begins in [T0,T1)
	Limit    int   // hits at most; 0 means 100
	// Rows bounds how many records one call looks at, so that a page stays
	// awake during a search without hits; 0: all.
	Rows int
}

// Cursor is where a search goes on; the zero value is the start.
type Cursor struct {
	Part  int // a pool, or a track after all pools
	Index int
}

// Search returns hits from a cursor on, allocations first, and where to go on;
// done is true when nothing is left, whatever the number of hits. Names are
// compared once each, not once an event.
func (t *Timeline) Search(q Query, from Cursor) (hits []Hit, next Cursor, done bool) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	if q.T0 == 0 && q.T1 == 0 {
		q.T1 = Alive
	}
	s := searcher{q: q, names: t.matching(q.Text), rows: q.Rows}
	if q.Rows <= 0 {
		s.rows = 1 << 62
	}
	for part := from.Part; part < len(t.pools)+len(t.tracks); part++ {
		if part < len(t.pools) {
			from.Index = s.pool(t.pools[part], from.Index)
		} else {
			from.Index = s.track(t.tracks[part-len(t.pools)], from.Index)
		}
		if s.full() {
			return s.hits, Cursor{part, from.Index}, false
		}
		from.Index = 0
	}
	return s.hits, Cursor{Part: len(t.pools) + len(t.tracks)}, true
}

type searcher struct {
	q     Query
	names []bool // by string id; nil: every name will do
	rows  int    // that may still be looked at
	hits  []Hit
}

func (s *searcher) full() bool { return len(s.hits) == s.q.Limit || s.rows <= 0 }

// matching marks the strings that hold text, or is nil when there is no text.
func (t *Timeline) matching(text string) []bool {
	if text == "" {
		return nil
	}
	text = strings.ToLower(text)
	m := make([]bool, t.strings.Len())
	for i := range m {
		m[i] = strings.Contains(strings.ToLower(t.strings.At(event.StringID(i))), text)
	}
	return m
}

func (s *searcher) match(op, tensor int64) bool {
	return s.names == nil || s.named(op) || s.named(tensor)
}

func (s *searcher) named(id int64) bool { return id < int64(len(s.names)) && s.names[id] }

func (s *searcher) bounded() bool { return s.q.MinBytes > 0 || s.q.MaxBytes > 0 }

func (s *searcher) sized(n int64) bool {
	return n >= s.q.MinBytes && (s.q.MaxBytes == 0 || n <= s.q.MaxBytes)
}

func (s *searcher) pool(p *Pool, from int) int {
	lo := p.allocs.after(birthCol, int64(p.inUse.before(s.q.T0, 0))-1, 0)
	hi := p.allocs.after(birthCol, int64(p.inUse.before(s.q.T1, 0))-1, 0)
	for i := max(from, lo); i < hi; i++ {
		if s.full() {
			return i
		}
		s.rows--
		if !s.bounded() && !s.match(p.allocs.at(opCol, i), p.allocs.at(tensorCol, i)) {
			continue
		}
		size := p.allocs.at(sizeCol, i)
		if s.sized(size) && s.match(p.allocs.at(opCol, i), p.allocs.at(tensorCol, i)) {
			s.hits = append(s.hits, Hit{Kind: AllocHit, Pool: p.Index, Track: -1, Index: i, Time: p.born(i), Size: size})
		}
	}
	return hi
}

func (s *searcher) track(k *Track, from int) int {
	lo, hi := k.spans.after(beginCol, s.q.T0-1, 0), k.spans.after(beginCol, s.q.T1-1, 0)
	if k.Kind != TransferTrack && s.bounded() {
		return hi // nothing there is counted in bytes
	}
	for i := max(from, lo); i < hi; i++ {
		if s.full() {
			return i
		}
		s.rows--
		v := k.spans.at(spanValueCol, i)
		if (k.Kind != TransferTrack || s.sized(v)) && s.match(k.spans.at(spanOpCol, i), k.spans.at(spanTensorCol, i)) {
			s.hits = append(s.hits, Hit{Kind: SpanHit, Pool: -1, Track: k.Index, Index: i, Time: k.spans.at(beginCol, i), Size: v})
		}
	}
	return hi
}
