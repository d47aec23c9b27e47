package device

import (
	"slices"
	"strconv"
	"strings"
)

// Env looks up an environment variable. The core reads none by itself; nil
// is an empty environment.
type Env func(name string) (value string, ok bool)

func (e Env) get(name string) (string, bool) {
	if e == nil {
		return "", false
	}
	return e(name)
}

// number reads a variable that must be a whole number of at least least. ok is
// false when it is unset; bad is the text that could not be read.
func (e Env) number(name string, least int64) (n int64, bad string, ok bool) {
	s, set := e.get(name)
	if !set {
		return 0, "", false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil || n < least {
		return 0, s, false
	}
	return n, "", true
}

// Optional is a whole number that may be unset.
type Optional struct {
	Value int
	Set   bool
}

// Some is a set Optional.
func Some(v int) Optional { return Optional{v, true} }

// ReserveRule says how much of a card's free memory is left to the system.
type ReserveRule uint8

// The rules.
const (
	ReserveCurrent ReserveRule = iota
	ReserveTF21                // up to TensorFlow 2.1 and some later releases
)

// Interconnect is how copies between two cards go.
type Interconnect uint8

// The interconnects. Auto is NVLink where the preset has it and PCIe peer
// access otherwise not granted: the driver stages through the host.
const (
	Auto Interconnect = iota
	NVLink
	PCIe   // peer access over PCIe
	Staged // no peer access
)

// String is the interconnect's word.
func (i Interconnect) String() string { return [...]string{"auto", "nvlink", "pcie", "staged"}[i] }

// VirtualDevices is how one visible GPU is cut. Without limits it becomes one
// logical device as if nothing was said.
type VirtualDevices struct {
	Limits     []int64 // bytes; MiB gives them from TensorFlow's numbers
	Priorities []int   // of the streams; none or one per limit
	Ordinals   []int   // none or one per limit
}

// MiB is the bytes of a limit as TensorFlow's message takes it: a number of
// MiB whose fraction is cut off.
func MiB(mb float64) int64 { return int64(mb) * mib }

// Options are TensorFlow's GPUOptions and the part of its ConfigProto that
// makes devices. The zero value is TensorFlow's default: all GPUs, all of
// their memory but a reserve, taken at once. What Options.Create does not
// read is carried for those who build allocators and streams.
type Options struct {
	Fraction          float64 // per_process_gpu_memory_fraction; 0: worked out from what is free
	AllowGrowth       bool
	VisibleDeviceList string // physical ids such as "1,0"; "": all
	Virtual           []VirtualDevices
	// NumVirtualPerGPU cuts every GPU's default limit in so many equal parts.
	NumVirtualPerGPU   int
	UseUnifiedMemory   bool
	SystemMemoryMiB    int // gpu_system_memory_size_in_mb; 0: unset
	D2DStreams         int // num_dev_to_dev_copy_streams; 0: 1
	CPUs               int // device_count CPU; fails with NotFound when 0 through Config
	GPUs               Optional
	ReserveRule        ReserveRule
	Interconnect       Interconnect
	AllocatorType      string // "" or "BFC"
	ForceGPUCompatible bool   // all host allocations are pinned
	DeferredBytes      int64  // deferred_deletion_bytes; 0: 8 MiB where used
	HostLimitMiB       int64  // gpu_host_mem_limit_in_mb; 0: TF_GPU_HOST_MEM_LIMIT_IN_MB, or 128 GiB
	HostNoGrowth       bool   // gpu_host_mem_disallow_growth
	Timestamped        bool   // timestamped_allocator
	TrackerInterval    int    // kernel_tracker_max_interval
	TrackerBytes       int64  // kernel_tracker_max_bytes
	TrackerPending     int    // kernel_tracker_max_pending
	SplitFraction      float64
	NoRetryOnFailure   bool // disallow_retry_on_allocation_failure
	AsyncMalloc        bool // use_cuda_malloc_async
	PollingActiveUs    int  // polling_active_delay_usecs; 0: 10
}

// parseVisible reads a visible_device_list into physical ids.
func parseVisible(list string, count int) ([]int, error) {
	if list == "" {
		ids := make([]int, count)
		for i := range ids {
			ids[i] = i
		}
		return ids, nil
	}
	bad := func(text, message string) error {
		return &Error{Kind: InvalidArgument, Setting: "visible_device_list " + strconv.Quote(list), Message: strconv.Quote(text) + " " + message}
	}
	var ids []int
	for part := range strings.SplitSeq(list, ",") {
		id, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, bad(part, "is not the number of a GPU: write numbers and commas, such as 1,0")
		}
		if id < 0 || id >= count {
			return nil, bad(part, "is no valid id: there are "+strconv.Itoa(count)+" GPUs, counted from 0 (visible device count "+strconv.Itoa(count)+")")
		}
		if slices.Contains(ids, id) {
			return nil, bad(part, "is named twice (duplicate id)")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// CUDAVisible applies CUDA_VISIBLE_DEVICES to the cards of a machine: what
// the driver shows, renumbered. Unset shows all. As in the driver, an entry
// that names no card, -1 among them, or one a second time ends the list.
func CUDAVisible(cards []*Card, env Env) []*Card {
	list, ok := env.get("CUDA_VISIBLE_DEVICES")
	if !ok {
		return cards
	}
	var out []*Card
	seen := make([]bool, len(cards))
	for part := range strings.SplitSeq(list, ",") {
		id, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || id < 0 || id >= len(cards) || seen[id] {
			break
		}
		seen[id] = true
		out = append(out, cards[id])
	}
	return out
}

// Growth is what TF_FORCE_GPU_ALLOW_GROWTH makes of a configured growth:
// exactly "true" and "false" count, anything else is told and ignored.
func (e Env) Growth(configured bool) (growth bool, warning string) {
	s, ok := e.get("TF_FORCE_GPU_ALLOW_GROWTH")
	switch {
	case !ok:
		return configured, ""
	case s == "true", s == "false":
		if (s == "true") != configured {
			warning = "memory growth " + onOff(configured) + " is overridden by TF_FORCE_GPU_ALLOW_GROWTH=" + s
		}
		return s == "true", warning
	}
	return configured, "cannot read TF_FORCE_GPU_ALLOW_GROWTH=" + strconv.Quote(s) + ": want true or false; memory growth stays " + onOff(configured)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// HostLimit is the limit in bytes of the pinned host pool gpu_host_bfc.
func (o *Options) HostLimit(env Env) int64 {
	if o.HostLimitMiB > 0 {
		return o.HostLimitMiB * mib
	}
	for _, name := range []string{"TF_GPU_HOST_MEM_LIMIT_IN_MB", "TF_CUDA_HOST_MEM_LIMIT_IN_MB"} {
		if n, _, ok := env.number(name, 1); ok {
			return n * mib
		}
	}
	return 131072 * mib
}

// ThreadMode is how a GPU's host threads are shared.
type ThreadMode struct {
	Mode  string // global, gpu_private, gpu_shared
	Count int    // threads of the pool; 0 with global
}

// Threads reads TF_GPU_THREAD_MODE and TF_GPU_THREAD_COUNT.
func (e Env) Threads() (ThreadMode, error) {
	mode, ok := e.get("TF_GPU_THREAD_MODE")
	if !ok || mode == "" || mode == "global" {
		return ThreadMode{Mode: "global"}, nil
	}
	if mode != "gpu_private" && mode != "gpu_shared" {
		return ThreadMode{}, &Error{
			Kind: InvalidArgument, Setting: "TF_GPU_THREAD_MODE=" + strconv.Quote(mode),
			Message: "want global, gpu_private or gpu_shared",
		}
	}
	count := int64(2)
	n, bad, ok := e.number("TF_GPU_THREAD_COUNT", 1)
	if bad != "" {
		return ThreadMode{}, &Error{Kind: InvalidArgument, Setting: "TF_GPU_THREAD_COUNT=" + strconv.Quote(bad), Message: "want a number of threads"}
	}
	if ok {
		count = n
	}
	return ThreadMode{mode, int(count)}, nil
}
