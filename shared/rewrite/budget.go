package rewrite

import (
	"fmt"
	"math"

	"tideline/shared/program"
)

// link is one block of a chain as the choice of what to keep sees it.
type link struct {
	saved int64 // bytes of everything that later blocks or the backward pass read
	out   int64 // of it what later blocks read: what a segment's last block leaves
	nanos int64 // to run the block once more
}

// fitBudget searches the segments whose recomputing costs least among those
// with a modelled peak within the budget. Every block runs at most twice.
//
// The choice is made over bytes of kept activations; what else lives at the
// peak is measured on the result, and the choice made again with less until
// the whole fits.
func fitBudget(p *program.Program, c Checkpoint) (*program.Program, int, error) {
	peak, _ := LiveBytes(p)
	if peak <= c.Budget {
		return p, 0, nil
	}
	blocks, n, err := blocksOf(p, c.Blocks)
	if err != nil {
		return nil, 0, err
	}
	chain := measureChain(p, blocks, n, c.nanos())
	allowed := c.Budget - peak
	for i := range chain {
		allowed += chain[i].saved
	}
	least := peak
	for range 12 {
		segment, ok := planChain(chain, allowed)
		if !ok {
			break
		}
		out, copies, err := recomputeSegments(p, blocks, segment)
		if err != nil {
			return nil, 0, err
		}
		peak, _ = LiveBytes(out)
		if peak <= c.Budget {
			return out, copies, nil
		}
		least = min(least, peak)
		allowed -= max(peak-c.Budget, 1)
	}
	return nil, 0, fmt.Errorf("checkpoint %s within %d bytes: of %d blocks, each run at most twice, the least peak found is %d bytes: raise the budget or lower the batch", p.Name, c.Budget, n, least)
}

// leaveFor takes from the budget what accumulating over k batches adds to the
// peak of one.
func (c *Checkpoint) leaveFor(p *program.Program, k int) error {
	q, err := Accumulate(p, k)
	if err != nil {
		return err
	}
	one, _ := LiveBytes(p)
	all, _ := LiveBytes(q)
	c.Budget -= max(0, all-one)
	return nil
}

func (c *Checkpoint) nanos() func(*program.Program, *program.Node) int64 {
	if c.Nanos != nil {
		return c.Nanos
	}
	return roughNanos
}

// roughNanos is the time on a device of 10 TFLOP/s and 500 GB/s, for those who
// have none in mind.
func roughNanos(p *program.Program, n *program.Node) int64 {
	c := p.Cost(n)
	return max(c.FLOPs/10_000, c.Bytes/500)
}

func measureChain(p *program.Program, blocks []int32, n int, nanos func(*program.Program, *program.Node) int64) []link {
	chain := make([]link, n)
	saved, out := make([]bool, len(p.Values)), make([]bool, len(p.Values))
	for i := range p.Nodes {
		r := &p.Nodes[i]
		if blocks[i] >= 0 && r.Phase == program.Forward {
			chain[blocks[i]].nanos += nanos(p, r)
		}
		for _, v := range r.Inputs {
			v = root(p, v)
			from := p.Values[v].Producer
			if from == program.None || blocks[from] < 0 || p.Values[v].Variable != program.None || p.Nodes[from].Op == program.OpConst {
				continue
			}
			crosses := r.Phase == program.Forward && !stateful(r) && blocks[i] != blocks[from]
			if crosses && !out[v] {
				out[v] = true
				chain[blocks[from]].out += p.Values[v].Bytes()
			}
			if (crosses || r.Phase == program.Backward) && !saved[v] {
				saved[v] = true
				chain[blocks[from]].saved += p.Values[v].Bytes()
			}
		}
	}
	return chain
}

// choice is how the cheapest way to a state came about: from which block on,
// from how much kept, and whether the blocks since then run again.
type choice struct {
	nanos int64
	from  int32
	kept  int32
	again bool
}

const never = math.MaxInt64

// planChain gives each block's segment, -1 for one that is kept, such that at
// no time more than budget bytes are kept: what blocks before a segment left,
// and all of the segment when its gradients are made. Of all such plans it
// gives the one with the least time, with bytes rounded up to a few hundredths
// of the budget. ok is false if there is none.
func planChain(chain []link, budget int64) (segment []int32, ok bool) {
	n := len(chain)
	if n == 0 || budget <= 0 {
		return nil, false
	}
	levels := int64(min(500, max(50, 8_000_000/(n*n))))
	unit := (budget + levels - 1) / levels
	levels = budget / unit
	units := func(b int64) int64 { return (b + unit - 1) / unit }
	best := make([][]choice, n+1) // by blocks done, by units kept
	for i := range best {
		best[i] = make([]choice, levels+1)
		for q := range best[i] {
			best[i][q].nanos = never
		}
	}
	best[0][0].nanos = 0
	better := func(i int, q int64, c choice) {
		if c.nanos < best[i][q].nanos {
			best[i][q] = c
		}
	}
	for i := range n {
		for q := range levels + 1 {
			at := best[i][q].nanos
			if at == never {
				continue
			}
			if kept := q + units(chain[i].saved); kept <= levels {
				better(i+1, kept, choice{at, int32(i), int32(q), false})
			}
			var saved, nanos int64
			for j := i; j < n; j++ {
				saved += chain[j].saved
				nanos += chain[j].nanos
				if q+units(saved) > levels {
					break
				}
				better(j+1, q+units(chain[j].out), choice{at + nanos, int32(i), int32(q), true})
			}
		}
	}
	return walkBack(best)
}

func walkBack(best [][]choice) ([]int32, bool) {
	n := len(best) - 1
	end := 0
	for q := range best[n] {
		if best[n][q].nanos < best[n][end].nanos {
			end = q
		}
	}
	if best[n][end].nanos == never {
		return nil, false
	}
	segment := make([]int32, n)
	for i, q := n, end; i > 0; {
		c := best[i][q]
		for b := int(c.from); b < i; b++ {
			segment[b] = -1
			if c.again {
				segment[b] = c.from
			}
		}
		i, q = int(c.from), int(c.kept)
	}
	return segment, true
}
