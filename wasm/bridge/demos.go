package bridge

// demo is a workload one click away, as fields.
type demo struct{ id, title, text, fields string }

const digits = "input.source=digits\ninput.map.parallel=2\ninput.map.cost=20us\ninput.shuffle=512\ninput.prefetch=2\n"

var demos = []demo{
	{
		"lenet", "LeNet-5 learns digits", "A whole training run on a small card: see what fills it, step by step.",
		"name=LeNet-5 on digits\nmodel=lenet5\nmode=graph\ntrain=on\ntrain.optimizer=adam\nbatch=64\nsteps=40\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\n" + digits,
	},
	{
		"growth", "Growing piece by piece", "The same run with growth on: the pool takes only what it needs, region by region.",
		"name=LeNet-5 with growth\nmodel=lenet5\nmode=graph\ntrain=on\ntrain.optimizer=adam\nbatch=64\nsteps=40\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\ndevices.0.growth=true\n" + digits,
	},
	{
		"oom", "A batch too many", "Eager, with a batch that does not fit: the failed request is explained.",
		"name=LeNet-5, batch too large\nmodel=lenet5\nmode=eager\ntrain=on\ntrain.optimizer=adam\nbatch=1024,2048,4096\nsteps=12\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\n" + digits,
	},
	{
		"fragments", "Holes in the pool", "Batches of many sizes with growth on: free bytes abound, yet in ever smaller holes.",
		"name=LeNet-5, changing batches\nmodel=lenet5\nmode=eager\ntrain=on\ntrain.optimizer=adam\nbatch=64,96,48,200,32,160,24,260,80,120\nsteps=120\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\ndevices.0.growth=true\n" + digits,
	},
	{
		"eager", "Eager against graph", "Op by op, tensors live as long as somebody holds them. Rerun it as a graph and compare.",
		"name=LeNet-5, eager\nmodel=lenet5\nmode=eager\ntrain=on\ntrain.optimizer=sgd\nbatch=128\nsteps=24\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\n" + digits,
	},
	{
		"stalls", "Waiting for input", "A slow map and no prefetch: the card idles. Add prefetch and rerun.",
		"name=MLP, starved\nmodel=mlp\nmode=graph\ntrain=on\ntrain.optimizer=sgd\nbatch=64\nsteps=40\ndevices.0.kind=gpu\ndevices.0.preset=t4-16g\ninput.source=digits\ninput.map.parallel=1\ninput.map.cost=300us\ninput.shuffle=512\n",
	},
	{
		"split", "One layer on the CPU", "A rule puts conv2 on the host: every step its tensors cross the bus.",
		"name=LeNet-5, conv2 on CPU\nmodel=lenet5\nmode=graph\ntrain=on\ntrain.optimizer=sgd\nbatch=64\nsteps=24\ndevices.0.kind=gpu\ndevices.0.preset=lab-256m\nplacement.rules.0.match=conv2/*\nplacement.rules.0.device=/CPU:0\n" + digits,
	},
}
