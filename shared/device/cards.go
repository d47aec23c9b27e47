package device

const gb = 1_000_000_000

// link is a host link's name and rates: up, down.
type link struct {
	name     string
	h2d, d2h Figure
}

var (
	pcie3     = link{"PCIe 3", Figure{12_200_000_000, Measured}, Figure{12_900_000_000, Measured}}
	pcie3half = link{"PCIe 3 x8", Figure{6_300_000_000, Measured}, Figure{6_600_000_000, Measured}}
	pcie4     = link{"PCIe 4", Figure{25_800_000_000, Measured}, Figure{25_600_000_000, Measured}}
	pcie5     = link{"PCIe 5", Figure{52 * gb, Assumed}, Figure{52 * gb, Assumed}}
)

// card is a row of the table of GPUs.
type card struct {
	name, title string
	cc          int   // compute capability times ten
	total       int64 // MiB that CUDA reports
	from        Source
	shown       int64 // MiB in nvidia-smi
	mem         int64 // GB/s by the data sheet
	flops       int64 // tenths of TFLOPS, dense float32
	matrix      int64 // tenths of TFLOPS, dense 16 bit; 0: no matrix unit
	sms         int64
	link        link
	nvlink      int64 // GB/s in both directions together; 0: none
	context     int64 // MiB; 0: by generation
	guess       bool  // shown was not seen in a log
}

func (c card) preset() Preset {
	context := Figure{c.context * mib, Logged}
	if c.context == 0 {
		context = Figure{contextMiB(c.cc) * mib, Assumed}
	}
	shown := Figure{c.shown * mib, Logged}
	if c.guess {
		shown.From = Assumed
	}
	return Preset{
		Name: c.name, Title: c.title, Major: c.cc / 10, Minor: c.cc % 10,
		Total:           Figure{c.total * mib, c.from},
		Shown:           shown,
		Context:         context,
		FLOPS:           Figure{c.flops * 100 * gb, Assumed},
		MatrixFLOPS:     Figure{c.matrix * 100 * gb, Assumed},
		MemBandwidth:    Figure{c.mem * gb, Sheet},
		Multiprocessors: Figure{c.sms, Assumed},
		Host:            c.link.name, H2D: c.link.h2d, D2H: c.link.d2h,
		// Half of the total per direction, and 85 % of that is reached.
		Peer: Figure{c.nvlink * gb / 2 / 100 * 85, Assumed},
	}
}

// contextMiB is what a process's driver context takes, by generation.
func contextMiB(cc int) int64 {
	switch {
	case cc < 80:
		return 250
	case cc < 90:
		return 500
	}
	return 700
}

func lab(name, title string, totalMiB, contextMiB, reserveMiB int64) Preset {
	inv := func(v int64) Figure { return Figure{v, Invented} }
	return Preset{
		Name: name, Title: title, Major: 7, Minor: 5,
		Total: inv(totalMiB * mib), Shown: inv(totalMiB * mib), Context: inv(contextMiB * mib), Reserve: inv(reserveMiB * mib),
		FLOPS: inv(8_000 * gb), MatrixFLOPS: inv(64_000 * gb), MemBandwidth: inv(320 * gb), Multiprocessors: inv(40),
		Host: "PCIe 3", H2D: inv(12 * gb), D2H: inv(12 * gb),
	}
}

// presets is the table of GPUs. Sizes and limits: public logs of TensorFlow
// and nvidia-smi; bandwidths: data sheets; the rest as marked.
var presets = []Preset{
	lab("lab-256m", "Lab card, 256 MiB (invented, small enough to fill)", 256, 8, 16),
	lab("lab-1g", "Lab card, 1 GiB (invented, small enough to fill)", 1024, 16, 48),
	card{name: "t4-16g", title: "NVIDIA T4, 16 GB", cc: 75, total: 15104, from: Logged, shown: 15360, mem: 320, flops: 81, matrix: 650, sms: 40, link: pcie3}.preset(),
	card{name: "t4-cloud", title: "NVIDIA T4, 16 GB, behind a narrow link", cc: 75, total: 15104, from: Logged, shown: 15360, mem: 320, flops: 81, matrix: 650, sms: 40, link: pcie3half}.preset(),
	card{name: "p100-16g", title: "NVIDIA P100, 16 GB", cc: 60, total: 16281, from: Logged, shown: 16280, mem: 732, flops: 95, sms: 56, link: pcie3, nvlink: 160}.preset(),
	card{name: "v100-16g", title: "NVIDIA V100, 16 GB", cc: 70, total: 16158, from: Logged, shown: 16160, mem: 900, flops: 157, matrix: 1250, sms: 80, link: pcie3, nvlink: 300}.preset(),
	card{name: "v100-32g", title: "NVIDIA V100, 32 GB", cc: 70, total: 32512, from: Logged, shown: 32510, mem: 900, flops: 157, matrix: 1250, sms: 80, link: pcie3, nvlink: 300}.preset(),
	card{name: "rtx2080ti", title: "NVIDIA RTX 2080 Ti, 11 GB", cc: 75, total: 11018, from: Assumed, shown: 11264, mem: 616, flops: 134, matrix: 538, sms: 68, link: pcie3}.preset(),
	card{name: "rtx3060-12g", title: "NVIDIA RTX 3060, 12 GB", cc: 86, total: 12042, from: Assumed, shown: 12288, mem: 360, flops: 127, matrix: 512, sms: 28, link: pcie4}.preset(),
	card{name: "rtx3090", title: "NVIDIA RTX 3090, 24 GB", cc: 86, total: 24268, from: Logged, shown: 24576, mem: 936, flops: 356, matrix: 710, sms: 82, link: pcie4, nvlink: 112}.preset(),
	card{name: "rtx4090", title: "NVIDIA RTX 4090, 24 GB", cc: 89, total: 24217, from: Assumed, shown: 24564, mem: 1008, flops: 826, matrix: 1650, sms: 128, link: pcie4}.preset(),
	card{name: "a10-24g", title: "NVIDIA A10, 24 GB", cc: 86, total: 23040, from: Assumed, shown: 23028, mem: 600, flops: 312, matrix: 1250, sms: 72, link: pcie4, guess: true}.preset(),
	card{name: "a10g", title: "NVIDIA A10G, 24 GB", cc: 86, total: 23040, from: Assumed, shown: 23028, mem: 600, flops: 350, matrix: 700, sms: 80, link: pcie4, guess: true}.preset(),
	card{name: "l4-24g", title: "NVIDIA L4, 24 GB", cc: 89, total: 22732, from: Assumed, shown: 23034, mem: 300, flops: 303, matrix: 1210, sms: 58, link: pcie4}.preset(),
	card{name: "a100-40g", title: "NVIDIA A100, 40 GB", cc: 80, total: 40540, from: Logged, shown: 40960, mem: 1555, flops: 195, matrix: 3120, sms: 108, link: pcie4, nvlink: 600}.preset(),
	card{name: "a100-80g", title: "NVIDIA A100, 80 GB", cc: 80, total: 81100, from: Assumed, shown: 81920, mem: 2039, flops: 195, matrix: 3120, sms: 108, link: pcie4, nvlink: 600}.preset(),
	card{name: "a100-80g-pcie", title: "NVIDIA A100 PCIe, 80 GB", cc: 80, total: 81100, from: Assumed, shown: 81920, mem: 1935, flops: 195, matrix: 3120, sms: 108, link: pcie4, nvlink: 600}.preset(),
	// One slice of seven; its context is what the logged limit leaves.
	card{name: "a100-mig-1g.5gb", title: "NVIDIA A100, slice 1g.5gb", cc: 80, total: 4864, from: Assumed, shown: 4864, mem: 194, flops: 25, matrix: 440, sms: 14, link: pcie4, context: 302, guess: true}.preset(),
	card{name: "h100-80g", title: "NVIDIA H100 SXM, 80 GB", cc: 90, total: 80998, from: Assumed, shown: 81559, mem: 3350, flops: 670, matrix: 9890, sms: 132, link: pcie5, nvlink: 900}.preset(),
	card{name: "h200-141g", title: "NVIDIA H200, 141 GB", cc: 90, total: 143155, from: Assumed, shown: 143771, mem: 4800, flops: 670, matrix: 9890, sms: 132, link: pcie5, nvlink: 900}.preset(),
	card{name: "b200-180g", title: "NVIDIA B200, 180 GB", cc: 100, total: 182642, from: Logged, shown: 183359, mem: 8000, flops: 800, matrix: 22500, sms: 148, link: pcie5, nvlink: 1800}.preset(),
}

// tpu is a core or chip: no pool of TensorFlow's allocator, and float32
// products go through the bfloat16 matrix unit.
func tpu(name, title string, totalMiB, reserveMiB int64, reserve Source, memGB, tenthTFLOPS int64) Preset {
	return Preset{
		Name: name, Title: title, Type: "TPU",
		Total: Figure{totalMiB * mib, Sheet}, Shown: Figure{totalMiB * mib, Sheet}, Reserve: Figure{reserveMiB * mib, reserve},
		FLOPS: Figure{tenthTFLOPS * 100 * gb, Assumed}, MatrixFLOPS: Figure{tenthTFLOPS * 100 * gb, Sheet},
		MemBandwidth: Figure{memGB * gb, Sheet}, Host: pcie3.name, H2D: pcie3.h2d, D2H: pcie3.d2h,
	}
}

var tpus = []Preset{
	tpu("tpu-v2", "TPU v2 core, 8 GB", 8192, 528, Assumed, 300, 225),
	tpu("tpu-v3", "TPU v3 core, 16 GB", 16384, 528, Logged, 450, 610),
	tpu("tpu-v4", "TPU v4 chip, 32 GB", 32768, 1280, Logged, 1200, 2750),
}

// Presets are the GPUs that can be asked for by name, the invented ones
// first. The caller must not change it.
func Presets() []Preset { return presets }

// TPUs are the TPU kinds. They stand apart: no BFC allocator serves them.
func TPUs() []Preset { return tpus }

// Find returns the preset of a GPU's name.
func Find(name string) (*Preset, bool) { return find(presets, name) }

// FindTPU returns the preset of a TPU's name.
func FindTPU(name string) (*Preset, bool) { return find(tpus, name) }

func find(list []Preset, name string) (*Preset, bool) {
	for i := range list {
		if list[i].Name == name {
			return &list[i], true
		}
	}
	return nil, false
}
