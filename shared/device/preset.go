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
	Name            string
	Title           string
	Type            string // GPU or TPU; "" for GPU
	Major, Minor    int    // compute capability; 0.0 for a TPU
	Total           Figure // bytes that the driver reports to programs
	Shown           Figure // bytes that nvidia-smi shows as the card's; 0: not known
	Context         Figure // bytes that a process's driver context takes
	Reserve         Figure // bytes left to the system; 0: TensorFlow's rule by free memory and capability
	FLOPS           Figure // dense float32, per second
	MatrixFLOPS     Figure // dense 16-bit matrix units, per second; 0: none
	MemBandwidth    Figure // bytes per second
	Multiprocessors Figure // 0: not known
	Host            string // the link to the host: PCIe 3, 4, 5
	H2D, D2H        Figure // bytes per second, pinned
	Peer            Figure // bytes per second and direction to a second card by NVLink; 0: none
}

// Model is the preset's model of time, with NVLink to other cards if it has
// that.
func (p *Preset) Model() Model { return p.ModelOver(Auto) }

// ModelOver is the model of time when copies to other cards go over i.
// NVLink that a card lacks is staged through the host, as without.
func (p *Preset) ModelOver(i Interconnect) Model {
	peer := p.Peer.Value
	switch i {
	case PCIe:
		peer = min(p.H2D.Value, p.D2H.Value)
	case Staged:
		peer = 0
	default:
	}
	return Model{
		FLOPS: p.FLOPS.Value, MemBandwidth: p.MemBandwidth.Value,
		H2D: p.H2D.Value, D2H: p.D2H.Value, Peer: peer,
		CopyLatency: 8_000, LaunchGap: 2_000, HostCopy: 10_000_000_000,
	}
}

// Priorities is the range of stream priorities that the driver offers; lower
// is more urgent. Assumed from the generations.
func (p *Preset) Priorities() (low, high int) {
	if p.Major < 7 {
		return -1, 0
	}
	return -5, 0
}

// Kind is the device type of the preset, GPU or TPU.
func (p *Preset) Kind() string {
	if p.Type == "" {
		return "GPU"
	}
	return p.Type
}

// HostModel is the model of time of CPU:0: a server core of a common kind.
// All figures are assumed.
func HostModel() Model {
	return Model{FLOPS: 100_000_000_000, MemBandwidth: 20_000_000_000, LaunchGap: 500, HostCopy: 10_000_000_000}
}
