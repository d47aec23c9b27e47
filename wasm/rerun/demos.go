package rerun

// demo is a workload one click away, as fields. Each is one of the example
// workloads, which a test holds it to; the module cannot read their YAML. The
// examples are more: these are the most telling, so that the menu stays short.
type demo struct{ id, title, text, fields string }

const (
	lenet  = "model=lenet5\nmode=graph\ntrain=on\ntrain.optimizer=adam\n"
	card   = "devices.0.kind=gpu\ndevices.0.preset=lab-256m\n"
	stages = "input.source=digits\ninput.map.parallel=4\ninput.map.cost=4us\ninput.shuffle=512\ninput.prefetch=2\n"
	plain  = "input.source=digits\ninput.shuffle=512\ninput.prefetch=2\n"

	t4    = "devices.0.kind=gpu\ndevices.0.preset=t4-16g\n"
	sides = ",448,560,480,544,512"
	sizes = "130,157,103,121,148,176,121,185,157,185,248,257,248,239,284,302,212,230,330,284,266,330,257,"
)

var demos = []demo{
	{
		"demo", "LeNet-5 learns digits", "A training run fills a small card, step by step. Try it eager, or without growth.",
		"name=demo\n" + lenet + "batch=1024\nsteps=14\n" + card + "devices.0.growth=true\n" + stages,
	},
	{
		"fragmentation", "Holes in the pool", "Batches of many sizes, until one finds no place though enough is free.",
		"name=fragmentation\n" + lenet + "batch=" + sizes + sizes + "360\nsteps=47\n" + card + "devices.0.growth=true\ndevices.0.held=204MiB\n",
	},
	{
		"oom-batch", "A batch too many", "One batch does not fit: the failed request, and why it failed.",
		"name=oom-batch\n" + lenet + "batch=256,1024,6000\nsteps=6\n" + card + "input.source=digits\ninput.shuffle=512\ninput.prefetch=1\n",
	},
	{
		"lenet-eager", "Op by op", "Eager: tensors live longer, so the peak is higher. Rerun it as a graph and compare.",
		"name=lenet-eager\nmodel=lenet5\nmode=eager\ntrain=on\ntrain.optimizer=adam\nbatch=1024\nsteps=14\n" + card + "devices.0.growth=true\n" + stages,
	},
	{
		"stall", "Waiting for input", "A slow map and no prefetch: the card idles. Add prefetch and rerun.",
		"name=stall\n" + lenet + "batch=64\nsteps=30\n" + card + "devices.0.growth=true\ninput.source=digits\ninput.map.parallel=1\ninput.map.cost=300us\ninput.shuffle=256\n",
	},
	{
		"transfers", "One layer on the CPU", "A rule puts conv2 on the host: every step its tensors cross the bus.",
		"name=transfers\n" + lenet + "batch=64\nsteps=20\ndevices.0.kind=gpu\ndevices.0.preset=t4-16g\ndevices.0.memory_limit=1GiB\n" + plain +
			"placement.soft=true\nplacement.rules.0.match=conv2/*\nplacement.rules.0.device=/CPU:0\n",
	},
	{
		"leak", "A list that only grows", "Activations kept by accident: each step holds more, until nothing is left.",
		"name=leak\nmodel=lenet5\nmode=eager\ntrain=on\ntrain.optimizer=adam\nbatch=256\nsteps=30\nkeep=conv1/*\n" + plain + card + "devices.0.growth=true\n",
	},
	{
		"resnet50", "ResNet-50 on 16 GB", "A batch of 32 fits. Try 192, mixed precision, recomputing, swapping.",
		"name=resnet50\nmodel=resnet50\nmode=graph\ntrain=on\ntrain.optimizer=adam\ntrain.precision=float32\nbatch=32\nsteps=20\ninput.source=synthetic\ninput.map.parallel=4\n" +
			"input.map.cost=300us\ninput.shuffle=1024\ninput.prefetch=auto\n" + t4,
	},
	{
		"unet-fragmentation", "U-Net in pieces", "Eager, growing, images of many sides: the largest no longer finds a place.",
		"name=unet-fragmentation\nmodel=unet\nmode=eager\ntrain=on\ntrain.optimizer=adam\nbatch=4\nimage=576" + sides + sides + sides + sides + "\nsteps=42\n" +
			"input.source=synthetic\ninput.map.parallel=8\ninput.map.cost=300us\ninput.prefetch=2\n" + t4 + "devices.0.growth=true\ndevices.0.held=7580MiB\n",
	},
	{
		"wasteful-dtype", "Twice the bytes", "float64 fills the card. float32 leaves half of it.",
		"name=wasteful-dtype\nmodel=resnet50\nmode=graph\ntrain=on\ntrain.optimizer=adam\ntrain.precision=float64\nbatch=96\nsteps=2\n" +
			"input.source=synthetic\ninput.map.parallel=8\ninput.map.cost=300us\ninput.prefetch=2\n" + t4,
	},
	{
		"bert-checkpoint", "Recompute to fit", "BERT keeps every second layer's output only. Without that the batch does not fit.",
		"name=bert-checkpoint\nmodel=bert-base\nmode=graph\ntrain=on\ntrain.optimizer=adamw\ntrain.checkpoint=2\nbatch=48\nsequence=256\nsteps=4\n" +
			"input.source=synthetic\ninput.prefetch=2\n" + t4,
	},
	{
		"two-runs", "Two runs, one card", "Two runs start on the agent: the first takes the card, the second fails. With growth both fit.",
		"name=two-runs\n" + lenet + "batch=256\nsteps=200\n" + card + "devices.0.card=shared\n" + plain,
	},
}
