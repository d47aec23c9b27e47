package main

import (
	"cmp"
	"fmt"
	"slices"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/reading"
	"tideline/shared/blame"
	"tideline/shared/ingest"
)

// side is one of two inputs that are compared.
type side struct {
	name string
	kind string // as explain tells it
	sums *analysis.Summary
	held []reading.Held
}

// sideOf reads an input whole.
func sideOf(c *console, name string) (*side, error) {
	var sums *analysis.Timeline
	var holders *blame.Recorder
	in, err := readWhole(c, "diff", name, func(strs *event.Strings) event.Sink {
		sums, holders = analysis.NewTimeline(strs), blame.NewRecorder(strs)
		return event.SinkFunc(func(e *event.Event) {
			sums.Emit(e)
			holders.Emit(e)
		})
	})
	if err != nil {
		return nil, err
	}
	s := &side{name: name, kind: ingest.KindTimeline, sums: sums.Summary(), held: holders.Held()}
	if in.told != nil {
		s.kind = in.told.Kind
	}
	return s, nil
}

func (s *side) String() string {
	if s.kind == ingest.KindTimeline {
		return s.name
	}
	return s.name + " (" + s.kind + ")"
}

// ours says whether it is a timeline, which tells of steps and stalls, too.
func (s *side) ours() bool { return s.kind == ingest.KindTimeline }

// tells says whether it has figures of any allocator, or of copies.
func (s *side) tells() bool {
	return len(s.sums.Transfers) > 0 || slices.ContainsFunc(s.sums.Allocators, func(a analysis.AllocatorSummary) bool {
		return a.PeakInUse > 0 || a.PeakReserved > 0
	})
}

// compatible says what keeps two inputs from being compared. Timelines always
// can be.
func compatible(a, b *side) error {
	if a.ours() && b.ours() {
		return nil
	}
	for _, s := range []*side{a, b} {
		if !s.tells() {
			return fmt.Errorf("%s and %s cannot be compared: %s has no figures of an allocator over its blocks, and none of copies. `tideline explain %s` says what it tells", a, b, s.name, s.name)
		}
	}
	if len(a.sums.Transfers) > 0 && len(b.sums.Transfers) > 0 {
		return nil
	}
	for _, p := range allocatorPairs(a.sums, b.sums) {
		if max(p.a.PeakInUse, p.a.PeakReserved) > 0 && max(p.b.PeakInUse, p.b.PeakReserved) > 0 {
			return nil
		}
	}
	return fmt.Errorf("%s and %s cannot be compared: no allocator of one has its like in the other", a, b)
}

// withoutNothing drops what neither input tells.
func (x *comparison) withoutNothing() {
	x.Rows = slices.DeleteFunc(x.Rows, func(r comparedRow) bool { return r.A == 0 && r.B == 0 })
	if x.OOMA == 0 && x.OOMB == 0 && x.EndA == x.EndB {
		x.EndA, x.EndB = "", ""
	}
}

// comparedHolders is who holds an allocator's memory in either input.
type comparedHolders struct {
	Allocator string           `json:"allocator"`
	At        string           `json:"at"`
	Rows      []comparedHolder `json:"rows"` // the largest difference first
	More      int              `json:"more"` // holders that are not listed
}

type comparedHolder struct {
	Name    string `json:"name"` // the frame to blame, the op, or the size of blocks
	Caller  string `json:"caller,omitempty"`
	A       int64  `json:"a"` // bytes
	B       int64  `json:"b"`
	BlocksA int64  `json:"blocks_a"`
	BlocksB int64  `json:"blocks_b"`
}

// mostHolders is how many holders of an allocator are compared.
const mostHolders = 12

// unknownHolder is for what no op or stack is known.
const unknownHolder = "no op or stack is known"

// compareHolders puts who holds each allocator's memory side by side.
func (x *comparison) compareHolders(a, b *side) {
	for _, p := range allocatorPairs(a.sums, b.sums) {
		if silent := p.silent(); silent != "" && (!a.ours() || !b.ours()) {
			x.Untold = append(x.Untold, untold{p.name(), silent})
			continue
		}
		for _, at := range []string{"peak", "end"} {
			h, k := a.heldAt(p.a.Name, at), b.heldAt(p.b.Name, at)
			if h == nil && k == nil || at == "end" && (h == nil || k == nil || h.At != at && k.At != at) {
				continue
			}
			y := comparedHolders{Allocator: p.name(), At: at, Rows: joinHolders(h, k)}
			if len(y.Rows) < 2 && (len(y.Rows) == 0 || y.Rows[0].Name == unknownHolder) {
				continue
			}
			slices.SortStableFunc(y.Rows, func(a, b comparedHolder) int {
				return cmp.Or(cmp.Compare(distance(b.A, b.B), distance(a.A, a.B)), cmp.Compare(max(b.A, b.B), max(a.A, a.B)), cmp.Compare(a.Name, b.Name))
			})
			if n := len(y.Rows); n > mostHolders {
				y.Rows, y.More = y.Rows[:mostHolders], n-mostHolders
			}
			x.Holders = append(x.Holders, y)
		}
	}
}

// untold is an allocator of which one input, A or B, tells nothing.
type untold struct {
	Allocator string `json:"allocator"`
	By        string `json:"by"`
}

// silent is the side that tells nothing of the pair's memory; "" for none.
func (p *allocatorPair) silent() string {
	switch {
	case max(p.a.PeakInUse, p.a.PeakReserved) == 0 && max(p.b.PeakInUse, p.b.PeakReserved) > 0:
		return "A"
	case max(p.b.PeakInUse, p.b.PeakReserved) == 0 && max(p.a.PeakInUse, p.a.PeakReserved) > 0:
		return "B"
	}
	return ""
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// heldAt is who holds a pool at its peak or end. Where both are one moment there
// is one for both.
func (s *side) heldAt(pool, at string) (one *reading.Held) {
	for i := range s.held {
		if h := &s.held[i]; h.Pool == pool && pool != "" {
			if h.At == at {
				return h
			}
			if one == nil {
				one = h
			}
		}
	}
	return one
}

func joinHolders(a, b *reading.Held) (rows []comparedHolder) {
	row := func(name, caller string) *comparedHolder {
		for i := range rows {
			if rows[i].Name == name && rows[i].Caller == caller {
				return &rows[i]
			}
		}
		rows = append(rows, comparedHolder{Name: name, Caller: caller})
		return &rows[len(rows)-1]
	}
	for i, h := range []*reading.Held{a, b} {
		if h == nil {
			continue
		}
		add := func(name, caller string, bytes, blocks int64) {
			if r := row(name, caller); i == 0 {
				r.A, r.BlocksA = r.A+bytes, r.BlocksA+blocks
			} else {
				r.B, r.BlocksB = r.B+bytes, r.BlocksB+blocks
			}
		}
		for _, o := range h.Holders {
			add(o.Name, o.Caller, o.Bytes, o.Blocks)
		}
		if h.MoreBytes > 0 {
			add("others, none of them large", "", h.MoreBytes, 0)
		}
		if h.Unknown > 0 {
			add(unknownHolder, "", h.Unknown, h.UnknownBlocks)
		}
	}
	return rows
}

func (y *comparedHolders) print(c *console, words [3]string) {
	c.say("\nWho holds %s at the %s\n", y.Allocator, y.At)
	var t table
	t.row("", words[0], words[1], words[2])
	for _, r := range y.Rows {
		name := r.Name
		if r.Caller != "" {
			name += ", from " + r.Caller
		}
		t.row(name, size(r.A), size(r.B), change(r.A, r.B))
	}
	t.print(c)
	if y.More > 0 {
		c.say("and %d more\n", y.More)
	}
}
