package device

// Source says where a figure comes from.
type Source uint8

// The sources, from best to worst.
const (
	Sheet    Source = iota // the maker's data sheet
	Logged                 // seen in public logs of real runs
	Measured               // measured by a benchmark on such a card
	Assumed                // general knowledge, not verified
	Invented               // the card does not exist
)

// String is the source's word on screen.
func (s Source) String() string {
	return [...]string{"sheet", "logged", "measured", "assumed", "invented"}[s]
}

// Figure is a number and where it comes from.
type Figure struct {
	Value int64
	From  Source
}

// Preset is a kind of card.
type Preset struct {
	Name         string
	Title        string
	Major, Minor int    // compute capability
	Total        Figure // bytes that the driver reports
	Context      Figure // bytes that a process's driver context takes
	Reserve      Figure // bytes left to the system; 0: TensorFlow's rule by free memory and capability
	FLOPS        Figure // dense float32, per second
	MemBandwidth Figure // bytes per second
	H2D, D2H     Figure // bytes per second, pinned
	Peer         Figure // bytes per second and direction to a second card; 0: none
}

// Model is the preset's model of time.
func (p *Preset) Model() Model {
	return Model{
		FLOPS: p.FLOPS.Value, MemBandwidth: p.MemBandwidth.Value,
		H2D: p.H2D.Value, D2H: p.D2H.Value, Peer: p.Peer.Value,
		CopyLatency: 8_000, LaunchGap: 2_000, HostCopy: 10_000_000_000,
	}
}

// HostModel is the model of time of CPU:0: a server core of a common kind.
// All figures are assumed.
func HostModel() Model {
	return Model{FLOPS: 100_000_000_000, MemBandwidth: 20_000_000_000, LaunchGap: 500, HostCopy: 10_000_000_000}
}

const gb = 1_000_000_000

// link is a host link's rates: up, down.
type link struct{ h2d, d2h Figure }

var (
	pcie3 = link{Figure{12_200_000_000, Measured}, Figure{12_900_000_000, Measured}}
	pcie4 = link{Figure{25_800_000_000, Measured}, Figure{25_600_000_000, Measured}}
	pcie5 = link{Figure{52 * gb, Assumed}, Figure{52 * gb, Assumed}}
)

func gpu(name, title string, cc int, totalMiB int64, total Source, memGB int64, tenthTFLOPS int64, l link, peerTotalGB int64) Preset {
	contextMiB := int64(700)
	switch {
	case cc < 80:
		contextMiB = 250
	case cc < 90:
		contextMiB = 500
	}
	return Preset{
		Name: name, Title: title, Major: cc / 10, Minor: cc % 10,
		Total:        Figure{totalMiB * mib, total},
		Context:      Figure{contextMiB * mib, Assumed},
		FLOPS:        Figure{tenthTFLOPS * 100 * gb, Assumed},
		MemBandwidth: Figure{memGB * gb, Sheet},
		H2D:          l.h2d, D2H: l.d2h,
		// Half of the total per direction, and 85 % of that is reached.
		Peer: Figure{peerTotalGB * gb / 2 / 100 * 85, Assumed},
	}
}

func lab(name, title string, totalMiB, contextMiB, reserveMiB int64) Preset {
	inv := func(v int64) Figure { return Figure{v, Invented} }
	return Preset{
		Name: name, Title: title, Major: 7, Minor: 5,
		Total: inv(totalMiB * mib), Context: inv(contextMiB * mib), Reserve: inv(reserveMiB * mib),
		FLOPS: inv(8_000 * gb), MemBandwidth: inv(320 * gb), H2D: inv(12 * gb), D2H: inv(12 * gb),
	}
}

var presets = []Preset{
	lab("lab-256m", "Lab card, 256 MiB (invented, small enough to fill)", 256, 8, 16),
	lab("lab-1g", "Lab card, 1 GiB (invented, small enough to fill)", 1024, 16, 48),
	gpu("t4-16g", "NVIDIA T4, 16 GB", 75, 15104, Logged, 320, 81, pcie3, 0),
	gpu("p100-16g", "NVIDIA P100, 16 GB", 60, 16281, Logged, 732, 95, pcie3, 160),
	gpu("v100-16g", "NVIDIA V100, 16 GB", 70, 16158, Logged, 900, 157, pcie3, 300),
	gpu("v100-32g", "NVIDIA V100, 32 GB", 70, 32512, Logged, 900, 157, pcie3, 300),
	gpu("rtx2080ti", "NVIDIA RTX 2080 Ti, 11 GB", 75, 11018, Assumed, 616, 134, pcie3, 0),
	gpu("rtx3060-12g", "NVIDIA RTX 3060, 12 GB", 86, 12042, Assumed, 360, 127, pcie4, 0),
	gpu("rtx3090", "NVIDIA RTX 3090, 24 GB", 86, 24268, Logged, 936, 356, pcie4, 112),
	gpu("rtx4090", "NVIDIA RTX 4090, 24 GB", 89, 24217, Assumed, 1008, 826, pcie4, 0),
	gpu("a10-24g", "NVIDIA A10, 24 GB", 86, 23040, Assumed, 600, 312, pcie4, 0),
	gpu("a10g", "NVIDIA A10G, 24 GB", 86, 23040, Assumed, 600, 350, pcie4, 0),
	gpu("l4-24g", "NVIDIA L4, 24 GB", 89, 22732, Assumed, 300, 303, pcie4, 0),
	gpu("a100-40g", "NVIDIA A100, 40 GB", 80, 40540, Logged, 1555, 195, pcie4, 600),
	gpu("a100-80g", "NVIDIA A100, 80 GB", 80, 81100, Assumed, 2039, 195, pcie4, 600),
	gpu("h100-80g", "NVIDIA H100 SXM, 80 GB", 90, 80998, Assumed, 3350, 670, pcie5, 900),
	gpu("h200-141g", "NVIDIA H200, 141 GB", 90, 143155, Assumed, 4800, 670, pcie5, 900),
	gpu("b200-180g", "NVIDIA B200, 180 GB", 100, 182642, Logged, 8000, 800, pcie5, 1800),
}

// Presets are the cards that can be asked for by name, the invented ones
// first. The caller must not change it.
func Presets() []Preset { return presets }

// Find returns the preset of a name.
func Find(name string) (*Preset, bool) {
	for i := range presets {
		if presets[i].Name == name {
			return &presets[i], true
		}
	}
	return nil, false
}
