package xlalog

// Report is everything that a text says of XLA programs that do not fit.
type Report struct {
	Failures []*Failure // of execution
	Compiles []*Compile // of compilation for a TPU
	Cut      string     // a limit of this reader was met
}

// Empty says whether the text told nothing.
func (r *Report) Empty() bool { return len(r.Failures)+len(r.Compiles) == 0 }

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

	Stats    Stats
	HasStats bool
	Buffers  []Buffer
	HasPeak  bool
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

// Compile is the report of a program that does not fit a TPU.
type Compile struct {
	Line     int
	Space    string // "hbm", "vmem"
	Used     string // as printed: "41.74G"
	Capacity string
	Exceeded string
	Newest   bool // prefixed by E1000

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
