package rewrite

import (
	"fmt"
	"strings"

	"tideline/shared/program"
)

// CheckpointMode says which activations are kept for the backward pass.
type CheckpointMode uint8

// The modes. All but KeepAll run forward ops once more in the backward pass.
const (
	// KeepAll keeps what the gradients read.
	KeepAll CheckpointMode = iota
	// EveryBlocks keeps what leaves every k-th block.
	EveryBlocks
	// SqrtBlocks is EveryBlocks with k the root of their number, rounded up.
	SqrtBlocks
	// Selective drops large results that are cheap to make again: softmax,
	// dropout, activations, norms, the products of attention.
	Selective
	// WithinBudget chooses for each block, in the least time that keeps the
	// modelled peak within a budget, whether it is kept or runs again.
	WithinBudget
)

// Checkpoint says how to trade memory for recomputing.
type Checkpoint struct {
	Mode  CheckpointMode
	Every int // EveryBlocks: k, at least 1
	// Budget is WithinBudget's bytes for the modelled peak.
	Budget int64
	// Blocks are the scopes of the model's blocks, in order. Without them the
	// blocks are what lies between the places where one tensor alone crosses
	// from what has run to what has not.
	Blocks []string
	// Nanos is the modelled time of a node, for WithinBudget; nil counts FLOPs
	// and moved bytes.
	Nanos func(*program.Program, *program.Node) int64
}

// ApplyCheckpoint rewrites a training step so that the activations of a
// segment of blocks are dropped after the forward pass and made again when the
// backward pass reaches that segment. The last segment is treated like the
// others: what comes behind it may be what is large. It gives the number of
// nodes that run twice.
func ApplyCheckpoint(p *program.Program, c Checkpoint) (*program.Program, int, error) {
	switch c.Mode {
	case KeepAll:
		return p, 0, nil
	case Selective:
		return recomputeSelected(p)
	case WithinBudget:
		return fitBudget(p, c)
	case EveryBlocks, SqrtBlocks:
	default:
		return nil, 0, fmt.Errorf("checkpoint mode %d is unknown", c.Mode)
	}
	blocks, n, err := blocksOf(p, c.Blocks)
	if err != nil || n == 0 {
		return p, 0, err
	}
	k := c.Every
	if c.Mode == SqrtBlocks {
		k = ceilSqrt(n)
	}
	if k < 1 {
		return nil, 0, fmt.Errorf("checkpoint every %d blocks: must be at least 1", k)
	}
	segment := make([]int32, n)
	for b := range segment {
		segment[b] = int32(b / k)
	}
	return recomputeSegments(p, blocks, segment)
}

func ceilSqrt(n int) int {
	k := 1
	for k*k < n {
		k++
	}
	return k
}

// recomputeSegments runs those blocks again whose segment is not -1.
func recomputeSegments(p *program.Program, blocks, segment []int32) (*program.Program, int, error) {
	g := edit(p)
	group := noGroup(g)
	for i, may := range g.recomputable() {
		if b := blocks[i]; may && b >= 0 {
			group[i] = segment[b]
		}
	}
	r := recomputer{g: g, group: group, keep: g.keepCrossing(group)}
	return r.finish(p)
}

func (r *recomputer) finish(p *program.Program) (*program.Program, int, error) {
	copies, err := r.run()
	if err != nil {
		return nil, 0, fmt.Errorf("recompute %s: %w", p.Name, err)
	}
	if copies == 0 {
		return p, 0, nil
	}
	out, err := r.g.finish()
	return out, copies, err
}

// blocksOf gives each forward node's block, -1 for none, and their number.
func blocksOf(p *program.Program, scopes []string) ([]int32, int, error) {
	if len(scopes) == 0 {
		blocks, n := cutChain(p)
		return blocks, n, nil
	}
	blocks := make([]int32, len(p.Nodes))
	for i := range p.Nodes {
		blocks[i] = -1
	}
	for b, s := range scopes {
		found := false
		for i := range p.Nodes {
			if n := &p.Nodes[i]; n.Phase == program.Forward && strings.HasPrefix(n.Name, s) && (len(n.Name) == len(s) || n.Name[len(s)] == '/') {
				blocks[i], found = int32(b), true
			}
		}
		if !found {
			return nil, 0, fmt.Errorf("checkpoint %s: no forward op lies in the scope %q", p.Name, s)
		}
	}
	return blocks, len(scopes), nil
}

// cutChain cuts the forward pass where one tensor alone goes on. What comes
// behind the last cut (the loss) is no block: nothing is gained by running it
// again just after it ran.
func cutChain(p *program.Program) ([]int32, int) {
	last := make([]int32, len(p.Values)) // by buffer: the last forward node that reads it
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Phase != program.Forward || stateful(n) {
			continue
		}
		for _, v := range n.Inputs {
			last[root(p, v)] = int32(i)
		}
	}
	blocks := make([]int32, len(p.Nodes))
	block, crossing := int32(0), 0
	ends := make([]int, len(p.Nodes))  // by node: buffers whose last reader it is
	fed := make([]bool, len(p.Values)) // depends on an input or a variable: a mask of constants is no part of the chain
	for _, v := range p.Inputs {
		fed[v] = true
	}
	for i := range p.Nodes {
		blocks[i] = -1
		n := &p.Nodes[i]
		if n.Phase != program.Forward || stateful(n) {
			continue
		}
		grows := n.Op == program.OpVariable
		for _, v := range n.Inputs {
			grows = grows || fed[v]
		}
		for _, v := range n.Outputs {
			fed[v] = grows
		}
		if n.Op == program.OpVariable || n.Op == program.OpConst {
			continue
		}
		blocks[i] = block
		crossing -= ends[i]
		made := false
		for _, v := range n.Outputs {
			if fed[v] && root(p, v) == v && last[v] > int32(i) {
				crossing++
				ends[last[v]]++
				made = true
			}
		}
		if made && crossing == 1 {
			block++
		}
	}
	for i, b := range blocks {
		if b == block {
			blocks[i] = -1
		}
	}
	return blocks, int(block)
}
