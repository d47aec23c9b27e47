package zoo

import "testing"

func BenchmarkBuild(b *testing.B) {
	for _, model := range []string{"lenet5", "resnet50", "bert-base", "gpt2-xl", "lstm"} {
		b.Run(model, func(b *testing.B) {
			b.ReportAllocs()
			nodes := 0
			for b.Loop() {
				nodes = len(build(b, model, Options{Batch: 32, Train: true, Optimizer: "adam"}).Program.Nodes)
			}
			b.ReportMetric(float64(nodes), "nodes")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(nodes), "ns/node")
		})
	}
}
