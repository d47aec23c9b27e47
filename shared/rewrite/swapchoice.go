package rewrite

import (
	"cmp"
	"fmt"
	"sort"

	"tideline/shared/program"
)

// manual swaps what the forward pass leaves to the backward pass.
func (s *Swap) manual(p *program.Program) (*program.Program, int, error) {
	ahead := cmp.Or(s.Ahead, DefaultAhead)
	if ahead < 1 {
		return nil, 0, fmt.Errorf("swap %d nodes ahead: must be at least 1", s.Ahead)
	}
	t := s.timetable(p)
	start := s.times(t)
	g := edit(p)
	back := func(r program.NodeID) bool { return p.Nodes[r].Phase == program.Backward }
	pairs := 0
	for v := range p.Values {
		b := program.ValueID(v)
		x, ok := t.trip(b, back)
		from := p.Values[v].Producer
		if !ok || p.Values[v].Bytes() < max(s.Above, smallestSwap+1) || p.Nodes[from].Phase != program.Forward {
			continue
		}
		if len(s.Match) > 0 && !matchAny(s.Match, p.Nodes[from].Name) {
			continue
		}
		if x.trigger = x.first - 1 - ahead; x.trigger <= x.last {
			continue // it would come back at once
		}
		if s.Ahead == 0 {
			x.trigger = s.begin(t, x, start, x.trigger, x.last+1)
		}
		if err := t.swap(g, x, back); err != nil {
			return nil, 0, fmt.Errorf("swap %s: %w", p.Name, err)
		}
		pairs++
	}
	if pairs == 0 {
		return p, 0, nil
	}
	out, err := g.finish()
	return out, pairs, err
}

// heuristics swaps in rounds until the modelled peak fits.
func (s *Swap) heuristics(p *program.Program) (*program.Program, int, error) {
	if s.DeviceBytes <= 0 {
		return nil, 0, fmt.Errorf("swap to fit a device of %d bytes: must be above 0", s.DeviceBytes)
	}
	all := 0
	for range swapRounds {
		out, pairs, err := s.round(p)
		if err != nil {
			return nil, 0, fmt.Errorf("swap %s: %w", p.Name, err)
		}
		if pairs == 0 {
			break
		}
		p, all = out, all+pairs
	}
	return p, all, nil
}

func (s *Swap) round(p *program.Program) (*program.Program, int, error) {
	t := s.timetable(p)
	live := Measure(p, t.order)
	excess := live.Peak - s.DeviceBytes
	if excess <= 0 {
		return p, 0, nil
	}
	peak := t.place[live.At]
	back := func(r program.NodeID) bool { return t.place[r] > peak }
	g := edit(p)
	pairs := 0
	for _, x := range s.candidates(t, peak, back) {
		if excess <= 0 {
			break
		}
		if err := t.swap(g, x, back); err != nil {
			return nil, 0, err
		}
		excess -= p.Values[x.buffer].Bytes()
		pairs++
	}
	if pairs == 0 {
		return p, 0, nil
	}
	out, err := g.finish()
	return out, pairs, err
}

// candidates lists what lives over the peak, best first: made long before it
// and used long after it, by few.
func (s *Swap) candidates(t *timetable, peak int, back func(program.NodeID) bool) []trip {
	start := s.times(t)
	var out []trip
	for v := range t.p.Values {
		x, ok := t.trip(program.ValueID(v), back)
		if !ok || x.last >= peak || t.p.Values[v].Bytes() <= smallestSwap {
			continue
		}
		made := start[t.place[t.p.Values[v].Producer]+1]
		use := start[x.first]
		if use-made <= shortestSwap {
			continue
		}
		x.trigger = s.begin(t, x, start, x.first-1, peak)
		x.fitness = fitness(made, use, start[peak], x.uses)
		out = append(out, x)
	}
	sort.SliceStable(out, func(i, j int) bool { return cmp.Less(out[i].fitness, out[j].fitness) })
	return out
}

// times gives when each place of the order begins, by modelled times of nodes
// one after the other, and when the last ends.
func (s *Swap) times(t *timetable) []int64 {
	nanos := s.Nanos
	if nanos == nil {
		nanos = roughNanos
	}
	start := make([]int64, len(t.order)+1)
	for i, id := range t.order {
		start[i+1] = start[i] + nanos(t.p, &t.p.Nodes[id])
	}
	return start
}

// begin gives the place from latest down to earliest behind which the way back
// must begin to be over when its first reader is due.
func (s *Swap) begin(t *timetable, x trip, start []int64, latest, earliest int) int {
	due := start[x.first] - int64(float64(t.p.Values[x.buffer].Bytes())*1e9/float64(s.Rate))
	for latest > earliest && start[latest+1] > due {
		latest--
	}
	return latest
}

// fitness is Grappler's measure; the lowest is best. The conversions keep a
// host from fusing products and sum, which would round differently.
func fitness(made, use, peak int64, uses int) float64 {
	after, before, n := float64(use-peak), float64(made-peak), float64(uses)
	return -(float64(after*after/float64(n*n)) + float64(before*before))
}
