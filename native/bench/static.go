package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"tideline/shared/plan"
	"tideline/shared/yardstick"
)

// large are the graphs of real programs, by the name of their file.
var large = []string{"G_1", "resnet50", "pangu_2.6B", "S_1"}

// training500 is a made-up step of about 500 buffers.
const training500 = 500

// static are the small problems with known optima, the large graphs, and how
// soon a first plan of many buffers is there.
func static(goldens string) ([]*task, error) {
	folder := filepath.Join(goldens, "goldens", "static-planning")
	small, err := smallOptima(filepath.Join(folder, "small-optima.json"))
	if err != nil {
		return nil, err
	}
	tasks := []*task{small, firstPlan(fmt.Sprintf("training step of %d", training500), plan.Training(training500, 1), "50 ms")}
	for _, name := range large {
		p, err := problem(filepath.Join(folder, "large", name+".csv"))
		if err != nil {
			return nil, err
		}
		load := plan.Load(p)
		if len(p.Buffers) > 20_000 {
			tasks = append(tasks, firstPlan(name, p, "500 ms"))
		}
		tasks = append(tasks, search(name, p, plan.Options{Nodes: budget, Goal: load + load/100}))
	}
	return tasks, nil
}

func problem(path string) (*plan.Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("published problem: %w", err)
	}
	defer f.Close()
	p, err := plan.ReadCSV(f)
	if err != nil {
		return nil, fmt.Errorf("published problem %s: %w", path, err)
	}
	return p, nil
}

// smallOptima plans the problems whose optimum is known, all in one run.
func smallOptima(path string) (*task, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("small problems: %w", err)
	}
	var file struct {
		Instances []struct {
			Buffers [][3]int64
			Optimum int64
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("small problems %s: %w", path, err)
	}
	problems := make([]*plan.Problem, len(file.Instances))
	for i := range problems {
		problems[i] = new(plan.Problem)
		for _, b := range file.Instances[i].Buffers {
			problems[i].Buffers = append(problems[i].Buffers, plan.Buffer{Lower: b[0], Upper: b[1], Size: b[2]})
		}
	}
	proven := 0
	return &task{once: true, Task: yardstick.Task{
		Name: "small problems with known optima", Per: "plan", N: max(1, len(problems)),
		Run: func() error {
			proven = 0
			for i, p := range problems {
				r, err := plan.Minimize(p, plan.Options{})
				if err == nil {
					err = plan.Check(p, r.Plan)
				}
				if err != nil {
					return fmt.Errorf("problem %d of %s: %w", i, path, err)
				}
				if r.Proven() && r.Height == file.Instances[i].Optimum {
					proven++
				}
			}
			return nil
		},
		Note: func() string { return fmt.Sprintf("%d of %d at their optimum and proven", proven, len(problems)) },
	}}, nil
}

// firstPlan is the search up to its first plan.
func firstPlan(name string, p *plan.Problem, goal string) *task {
	var first *plan.Result
	return &task{once: true, Task: yardstick.Task{
		Name: "first plan, " + name, Per: "plan", N: 1,
		Run: func() error {
			found := false
			var err error
			first, err = plan.Minimize(p, plan.Options{
				Stop:     func() bool { return found },
				Progress: func(*plan.Result) { found = true },
			})
			return err
		},
		Note: func() string {
			if err := plan.Check(p, first.Plan); err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%d buffers, %.3f %% above the load, the goal is %s", len(p.Buffers), above(first.Height, first.Load), goal)
		},
	}}
}

// above is by how much a height exceeds the load, in hundredths.
func above(height, load int64) float64 { return 100 * float64(height-load) / float64(max(load, 1)) }
