package place

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"tideline/shared/program"
	"tideline/shared/zoo"
)

// Whatever the rules: what writes a variable is where it is, a soft placement
// never fails, and every decision has a reason.
func TestEveryPlacementKeepsTheRules(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	p := model(t)
	for round := range 300 {
		var rules []Rule
		for range rng.IntN(5) {
			n := p.Nodes[rng.IntN(len(p.Nodes))].Name
			if rng.IntN(2) == 0 {
				n = n[:rng.IntN(len(n))] + "*"
			}
			dev := "/GPU:" + strconv.Itoa(rng.IntN(4))
			if rng.IntN(3) == 0 {
				dev = "/CPU:0"
			}
			rules = append(rules, Rule{n, dev})
		}
		o := Options{Rules: rules, Soft: true, Eager: rng.IntN(2) == 0}
		r, err := Decide(p, devices(0, 1, 2), o)
		if err != nil {
			t.Fatalf("seed %d, round %d, %+v: %v", seed, round, o, err)
		}
		home := map[program.VariableID]int{}
		for i := range p.Nodes {
			if p.Nodes[i].Op == program.OpVariable {
				home[p.Nodes[i].Attrs.Variable] = int(r.Nodes[i].Device)
			}
		}
		for i := range p.Nodes {
			n := &p.Nodes[i]
			if r.Nodes[i].Reason == "" {
				t.Fatalf("round %d: %s has no reason", round, n.Name)
			}
			if n.Op == program.OpVariable || n.Attrs.Variable == program.None {
				continue
			}
			for _, v := range append([]program.VariableID{n.Attrs.Variable}, n.Attrs.Slots[:]...) {
				if h, ok := home[v]; ok && v != program.None && h != int(r.Nodes[i].Device) {
					t.Fatalf("seed %d, round %d, %+v: %s on %d, its variable %d on %d", seed, round, o, n.Name, r.Nodes[i].Device, v, h)
				}
			}
		}
		if again, _ := Decide(p, devices(0, 1, 2), o); len(again.Nodes) != len(r.Nodes) {
			t.Fatal("a second time differs")
		}
	}
}

// BenchmarkDecide is the placing of a large training step.
func BenchmarkDecide(b *testing.B) {
	p, err := zoo.Program("resnet50", zoo.Options{Batch: 2, Image: 64, Train: true, Optimizer: "adam"})
	if err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decide(p, devices(0, 1), Options{Soft: true, Rules: []Rule{{"*block3*", "/GPU:1"}}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(p.Nodes)), "ns/node")
}
