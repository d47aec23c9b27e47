package xlalog

// Report is everything that a text says of XLA programs that do not fit.
type Report struct {
	Failures []*Failure // of execution
	Compiles []*Compile // of a TPU, most of them of compilation
	Remats   []Remat    // warnings that no failure followed
	Cut      string     // a limit of this reader was met
}

// Empty says whether the text told nothing.
func (r *Report) Empty() bool { return len(r.Failures)+len(r.Compiles)+len(r.Remats) == 0 }

// Failure is one failed request with the program's statistics, where they are.
type Failure struct {
	Line      int
	Bytes     int64  // exact, -1 when only the text tells
	Text      string // "154.06GiB", as printed
	Device    int64  // ordinal, -1 when not told
	Allocator string
	Program   string // executable_name
	Platform  bool   // "Failed to allocate request": the driver itself refused
	Payload   bool   // bracketed payloads of 2025
	Count     int    // equal messages

	Remat *Remat // what the compiler said before, nil for nothing

	Stats    Stats
	HasStats bool
	Buffers  []Buffer
	HasPeak  bool
}

// Remat is the compiler's warning that it could not make a program small enough
// by computing values again. Bytes, -1 where only the text tells.
type Remat struct {
	Line                             int
	Target, Reduced, Original        string // "10.64GiB", as printed
	TargetBytes, ReducedBytes, Began int64
}

// Stats are the rows of "BufferAssignment stats", as printed.
type Stats struct {
	Parameter, Constant, LiveOut, Temp, Total       string
	TempFragmentation, TotalFragmentation           string
	TempFragmentationShare, TotalFragmentationShare float64 // percent, -1 when not printed
}

// Buffer is one of the largest at the peak.
type Buffer struct {
	Index     int64
	Size      string // as printed
	OpName    string
	OpType    string
	Source    string
	Row       int64 // of the source, -1 when not told
	Label     string
	Shape     string
	Parameter bool // an input of the program
	Closed    bool // its end mark is there
}

// Compile is the report of a program that does not fit a TPU, or of a request
// that the TPU's runtime refused.
type Compile struct {
	Line     int
	Count    int    // equal messages
	Space    string // "hbm", "vmem"
	Used     string // as printed: "41.74G"
	Capacity string
	Exceeded string

	// Scoped: one instruction's own part of the space is over its limit, which
	// Capacity tells then.
	Scoped      bool
	Instruction string // that it is, "" when not told
	// Early: the compiler gave up before it planned anything. Unexpected: it says
	// that this should not be possible, and no figures.
	Early, Unexpected bool
	// TensorCore and SparseCore are what each of them uses, where the message
	// tells them apart; Used is empty then.
	TensorCore, SparseCore string
	Refused                *Refusal // of the runtime; nil when compilation failed

	Newest bool // prefixed by E1000

	TotalUsage string
	Parts      []Part // of the total usage, then of the program's
	Program    string // requirement
	Temp       string
	// Of the temporaries, percent; -1 when not printed.
	Utilization, Fragmentation float64
	Unpadded, Padded           string
	FragmentationText          string
	Allocations                []Allocation
}

// Refusal is what the runtime of a TPU could not give. Sizes are as printed, ""
// when not told.
type Refusal struct {
	Program    string // that was being loaded
	Buffer     bool   // asked for as a buffer of the device
	Reserve    bool   // at the bottom of memory, for a program
	Requested  string
	Free       string
	Reserved   string
	Reservable string
	Largest    string // free in one piece
	Device     string // "0x0x0_HBM0"
	InUse      string
	InUseBytes int64 // -1 when not told
	Bytes      int64 // requested, likewise
}

// Part is a row of the usage tables.
type Part struct {
	Program bool // of the program's own table
	Name    string
	Size    string
}

// Allocation is one of the largest of a program.
type Allocation struct {
	Rank      int64
	Size      string
	OpName    string
	OpType    string
	Source    string
	Row       int64
	Shape     string // with layout: s32[8388608,8,4]{2,1,0:T(8,128)}
	Unpadded  string
	Padding   string
	Expansion float64 // 0 when not printed
	Label     string
	Type      string // "HLO temp"
}
