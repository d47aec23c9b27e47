package yardstick

import (
	"fmt"

	"tideline/shared/plan"
)

// Planners are static planning of made-up problems: one that is hard to pack
// at its optimum, and one in the shape of a training step, each beside the best
// of the greedy passes.
func Planners() ([]Task, error) {
	var tasks []Task
	for _, x := range []struct {
		name  string
		p     *plan.Problem
		nodes int64
	}{
		{"puzzle of 200", plan.Puzzle(200, 400, 1<<20, 4), 1 << 18},
		{"training step of 1,000", plan.Training(1000, 1), 50_000},
	} {
		tasks = append(tasks, Plan(x.name, x.p, x.nodes)...)
	}
	return tasks, nil
}

// Plan is planning of a problem, by the greedy passes and by the search with a
// budget of nodes (0 is the planner's own), counted in buffers.
func Plan(name string, p *plan.Problem, nodes int64) []Task {
	var first plan.Plan
	var best *plan.Result
	load := plan.Load(p)
	greedy := "greedy passes, " + name
	return []Task{
		{
			Name: greedy, Per: "buffer", N: len(p.Buffers), Plain: true,
			Run: func() (err error) {
				first, _, err = plan.BestGreedy(p)
				return err
			},
			Note: func() string { return fmt.Sprintf("%.3f %% above the load", above(first.Height, load)) },
		},
		{
			Name: "planner, " + name, Per: "buffer", N: len(p.Buffers), To: greedy,
			Run: func() (err error) {
				best, err = plan.Minimize(p, plan.Options{Nodes: nodes})
				return err
			},
			Note: func() string {
				s := fmt.Sprintf("%.3f %% above the load", above(best.Height, best.Load))
				if best.Proven() {
					s += ", proven lowest"
				}
				return s
			},
		},
	}
}

// above is by how much a height exceeds a load, in hundredths.
func above(height, load int64) float64 { return 100 * float64(height-load) / float64(max(load, 1)) }
