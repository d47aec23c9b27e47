package kinds

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/protocol/nearest"
	"tideline/shared/alloc/async"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/ort"
	"tideline/shared/alloc/rmm"
	"tideline/shared/alloc/torch"
)

// Option is something of a kind that can be set.
type Option struct {
	Name    string
	Default string // as it would be written; "" where it depends on the limit
	Want    string // which values it takes
	Doc     string

	set func(c *config, value string) bool
}

// Setting is an option's new value.
type Setting struct{ Name, Value string }

// String is the setting as it is written.
func (s Setting) String() string { return s.Name + "=" + s.Value }

// ParseSetting reads NAME=VALUE.
func ParseSetting(text string) (Setting, error) {
	name, value, ok := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return Setting{}, fmt.Errorf("%q sets nothing: write OPTION=VALUE", text)
	}
	return Setting{name, strings.TrimSpace(value)}, nil
}

// OptionError is a setting that an allocator cannot have.
type OptionError struct {
	Kind   string
	Option string
	Value  string
	Want   string // what is expected
	// Unknown: the kind has no such option; Want tells which it has.
	Unknown bool
}

// Error names the option, the value and what is expected.
func (e *OptionError) Error() string {
	if e.Unknown {
		return fmt.Sprintf("allocator %s has no option %q: %s", e.Kind, e.Option, e.Want)
	}
	return fmt.Sprintf("allocator %s: %s is %q, expected %s", e.Kind, e.Option, e.Value, e.Want)
}

// config is what settings are read into, for all kinds.
type config struct {
	bfc          bfc.Options
	torch        []string
	fraction     float64
	ort          ort.Options
	shrink       bool
	reserve      bool
	async        async.Options
	thresholdSet bool
	pool         rmm.PoolOptions
	arena        rmm.ArenaOptions
	binning      rmm.BinningOptions
	allocation   int64 // of the limiting adaptor; 0 for none
}

// configure reads settings; of two for one option the later holds.
func (k *Kind) configure(settings []Setting) (*config, error) {
	c := &config{bfc: bfc.Options{GarbageCollection: true}}
	for _, s := range settings {
		o := k.option(s.Name)
		if o == nil {
			return nil, &OptionError{Kind: k.Name, Option: s.Name, Value: s.Value, Want: k.has(s.Name), Unknown: true}
		}
		if !o.set(c, s.Value) {
			return nil, &OptionError{Kind: k.Name, Option: s.Name, Value: s.Value, Want: o.Want}
		}
	}
	return c, nil
}

// Check finds the first setting that the kind cannot have.
func (k *Kind) Check(settings []Setting) error {
	_, err := k.configure(settings)
	return err
}

// has says which options there are for one that there is not.
func (k *Kind) has(name string) string {
	if len(k.Options) == 0 {
		return "it has none"
	}
	list := strings.Join(k.optionNames(), ", ")
	if n := nearest.Word(name, k.optionNames()); n != "" {
		return "did you mean " + strconv.Quote(n) + "? It has " + list
	}
	return "it has " + list
}

// ParseExact reads a setting as workloads write it, OPTION=VALUE without blanks.
// The error says how the option that was meant is set.
func (k *Kind) ParseExact(text string) (Setting, error) {
	name, value, ok := strings.Cut(text, "=")
	if ok && name != "" && !strings.ContainsAny(text, " \t\r\n") {
		return Setting{name, value}, nil
	}
	name = strings.TrimSpace(name)
	if o := k.option(name); o != nil {
		return Setting{}, fmt.Errorf("allocator %s: %q sets nothing: write %s=VALUE without blanks, VALUE being %s", k.Name, text, o.Name, o.Want)
	}
	return Setting{}, fmt.Errorf("allocator %s: %q sets nothing: write OPTION=VALUE without blanks; %s", k.Name, text, k.has(name))
}

func (k *Kind) option(name string) *Option {
	for i := range k.Options {
		if strings.EqualFold(k.Options[i].Name, name) {
			return &k.Options[i]
		}
	}
	return nil
}

func (k *Kind) optionNames() []string {
	names := make([]string, len(k.Options))
	for i := range k.Options {
		names[i] = k.Options[i].Name
	}
	return names
}

func flag(of func(*config) *bool) func(*config, string) bool {
	return func(c *config, v string) bool {
		b, ok := truth(v)
		*of(c) = b
		return ok
	}
}

// not is flag for what is stored the other way round.
func not(of func(*config) *bool) func(*config, string) bool {
	return func(c *config, v string) bool {
		b, ok := truth(v)
		*of(c) = !b
		return ok
	}
}

func truth(v string) (value, ok bool) {
	switch strings.ToLower(v) {
	case "true", "1", "on", "yes":
		return true, true
	case "false", "0", "off", "no":
		return false, true
	}
	return false, false
}

// bytes reads a size that is a multiple of granule and at least least.
func bytes(of func(*config) *int64, least, granule int64) func(*config, string) bool {
	return func(c *config, v string) bool {
		n, err := event.ParseBytes(v)
		*of(c) = n
		return err == nil && n >= least && n <= math.MaxInt64/4 && n%granule == 0
	}
}

func fraction(of func(*config) *float64) func(*config, string) bool {
	return func(c *config, v string) bool {
		x, err := strconv.ParseFloat(v, 64)
		*of(c) = x
		return err == nil && x > 0 && x <= 1
	}
}

const (
	wantFlag     = "true or false"
	wantBytes    = "a size in bytes, such as 1048576 or 1MiB"
	wantFraction = "a number above 0 and at most 1"
	wantExponent = "an integer from 8 to 40"
	wantGranules = "a size that is a multiple of 256 bytes, such as 1GiB"
)

var bfcOptions = []Option{
	{"growth", "false", wantFlag, "Take regions as they are needed, doubling, instead of the whole limit at once (allow_growth; JAX's preallocate turned round).", flag(func(c *config) *bool { return &c.bfc.Growth })},
	{"garbage_collection", "true", wantFlag, "Give wholly free regions back before a request fails (TF_ENABLE_GPU_GARBAGE_COLLECTION).", flag(func(c *config) *bool { return &c.bfc.GarbageCollection })},
	{"fragmentation_fraction", "", wantFraction, "Split every chunk whose surplus is at least this part of the limit, instead of 128 MiB.", fraction(func(c *config) *float64 { return &c.bfc.Fragmentation })},
	{"profile", "current", "current or classic", "Which generation of the code: OpenXLA's of 2026, or TensorFlow's up to 2024.", func(c *config, v string) bool {
		switch v {
		case "current":
			c.bfc.Profile = bfc.Current
		case "classic":
			c.bfc.Profile = bfc.Classic
		default:
			return false
		}
		return true
	}},
}

var ortOptions = []Option{
	{"arena_extend_strategy", "next_power_of_two", "next_power_of_two (0) or same_as_requested (1)", "How regions grow: doubling, or each as large as the request.", func(c *config, v string) bool {
		switch strings.ToLower(v) {
		case "next_power_of_two", "knextpoweroftwo", "0":
			c.ort.Strategy = ort.NextPowerOfTwo
		case "same_as_requested", "ksameasrequested", "1":
			c.ort.Strategy = ort.SameAsRequested
		default:
			return false
		}
		return true
	}},
	{"initial_chunk_size_bytes", "1MiB", wantBytes, "The first region.", bytes(func(c *config) *int64 { return &c.ort.InitialChunk }, 1, 1)},
	{"max_dead_bytes_per_chunk", "128MiB", wantBytes, "The surplus from which a chunk is always split.", bytes(func(c *config) *int64 { return &c.ort.MaxDead }, 1, 1)},
	{"initial_growth_chunk_size_bytes", "2MiB", wantBytes, "The next region after a shrink.", bytes(func(c *config) *int64 { return &c.ort.GrowthChunk }, 1, 1)},
	{"max_power_of_two_extend_bytes", "1GiB", wantBytes, "Where the doubling of regions ends.", bytes(func(c *config) *int64 { return &c.ort.MaxExtend }, 1, 1)},
	{"enable_memory_arena_shrinkage", "false", wantFlag, "Give unused regions back after every step.", flag(func(c *config) *bool { return &c.shrink })},
	{"use_device_allocator_for_initializers", "false", wantFlag, "Take parameters from the driver, beside the arena.", flag(func(c *config) *bool { return &c.reserve })},
	{"cross_stream", "false", wantFlag, "Let a stream take another's chunk after a wait.", flag(func(c *config) *bool { return &c.ort.CrossStream })},
	{"profile", "core", "core or plugin", "Which code: the runtime's, or the CUDA plugin's of 2026.", func(c *config, v string) bool {
		switch v {
		case "core":
			c.ort.Profile = ort.Core
		case "plugin":
			c.ort.Profile = ort.Plugin
		default:
			return false
		}
		return true
	}},
}

var asyncOptions = []Option{
	{"release_threshold", "", wantBytes, "What a synchronisation leaves in the pool; the default is the limit, as in TensorFlow, and the driver's own is 0.", func(c *config, v string) bool {
		c.thresholdSet = true
		return bytes(func(c *config) *int64 { return &c.async.Threshold }, 0, 1)(c, v)
	}},
	{"reuse_follow_event_dependencies", "true", wantFlag, "Use memory freed on another stream that an event orders before.", not(func(c *config) *bool { return &c.async.NoEvents })},
	{"reuse_allow_opportunistic", "true", wantFlag, "Use memory freed on another stream that happens to be done; depends on timing.", not(func(c *config) *bool { return &c.async.NoOpportunistic })},
	{"reuse_allow_internal_dependencies", "true", wantFlag, "Make a stream wait for another to use what it freed.", not(func(c *config) *bool { return &c.async.NoInternal })},
	{"deterministic", "false", wantFlag, "Switch off the two kinds of reuse that depend on timing.", func(c *config, v string) bool {
		b, ok := truth(v)
		if b {
			c.async = c.async.Deterministic()
		}
		return ok
	}},
	{"page", "2MiB", "a power of two of at least 512 bytes", "The driver's page; a choice of the model.", func(c *config, v string) bool {
		n, err := event.ParseBytes(v)
		c.async.Page = n
		return err == nil && n >= async.Granule && n <= 1<<40 && n&(n-1) == 0
	}},
	{"prime", "0", wantBytes, "Allocate and free so many bytes at once, to begin with.", bytes(func(c *config) *int64 { return &c.async.Prime }, 0, 1)},
}

// allocationLimit is RMM's limiting adaptor, which goes over any resource.
var allocationLimit = Option{"allocation_limit", "", wantBytes, "The most that may be in use at once, each request rounded up to 256 bytes (the limiting adaptor); the default is no such limit.", bytes(func(c *config) *int64 { return &c.allocation }, 1, 1)}

var poolOptions = []Option{
	{"initial_pool_size", "0", wantGranules, "What is taken at once.", bytes(func(c *config) *int64 { return &c.pool.Initial }, 0, rmm.Granule)},
	{"maximum_pool_size", "", wantGranules, "The most that is taken; the default is the limit.", bytes(func(c *config) *int64 { return &c.pool.Maximum }, rmm.Granule, rmm.Granule)},
	allocationLimit,
}

// binningOptions are those of the pool below, too.
var binningOptions = append([]Option{
	{"min_size_exponent", "", wantExponent, "The smallest bin holds blocks of two to this power; the default is four below the largest.", exponent(func(c *config) *int { return &c.binning.LeastBin })},
	{"max_size_exponent", "", wantExponent, "The largest bin holds blocks of two to this power, larger requests go to the pool; the default is 22, or what lets the first blocks of all bins fit a quarter of the limit.", exponent(func(c *config) *int { return &c.binning.MostBin })},
}, poolOptions...)

// exponent reads a bin's exponent.
func exponent(of func(*config) *int) func(*config, string) bool {
	return func(c *config, v string) bool {
		n, err := strconv.Atoi(v)
		*of(c) = n
		return err == nil && n >= 8 && n <= 40
	}
}

var arenaOptions = []Option{
	{"arena_size", "", "a multiple of 256 bytes of at least 1 MiB, such as 1GiB", "The one block that is taken; the default is half of the limit.", bytes(func(c *config) *int64 { return &c.arena.Size }, rmm.SuperblockSize, rmm.Granule)},
	allocationLimit,
}

// torchDocs says of PyTorch's options what its parser does not.
var torchDocs = map[string][3]string{ // default, want, doc
	"max_split_size_mb":                 {"", "an integer, at least large_segment_size_mb (20)", "Never split blocks above this size, and give them back before others."},
	"max_non_split_rounding_mb":         {"", "an integer, at least large_segment_size_mb (20)", "How much larger than the request an unsplit block may be; the default is large_segment_size_mb."},
	"garbage_collection_threshold":      {"", "a number above 0 and below 1", "From this part of the limit on, give back old idle blocks; needs a limit below the device's size."},
	"roundup_power2_divisions":          {"", "a power of two, or a list such as [256:1,512:2,>:4]", "Round sizes up to a part of the next power of two."},
	"expandable_segments":               {"false", wantFlag, "Map pages behind one growing segment per pool and stream, instead of fixed segments."},
	"large_segment_size_mb":             {"20", "an integer above 10, at most max_split_size_mb", "The segment for requests from 1 to 10 MiB."},
	"per_process_memory_fraction":       {"1", wantFraction, "The part of the device's memory that may be reserved, as memory_fraction sets it, which wins."},
	"backend":                           {"native", "native", "The other backend, cudaMallocAsync, is allocator async."},
	"release_lock_on_cudamalloc":        {"false", wantFlag, "Changes no address."},
	"pinned_use_cuda_host_register":     {"false", wantFlag, "Of host memory; changes no address."},
	"pinned_num_register_threads":       {"1", "a power of two, at most 128", "Of host memory; changes no address."},
	"pinned_use_background_threads":     {"false", wantFlag, "Of host memory; changes no address."},
	"pinned_reserve_segment_size_mb":    {"", "an integer of at least 1", "Of host memory; changes no address."},
	"graph_capture_record_stream_reuse": {"false", wantFlag, "Of captured graphs; changes no address here."},
	"throw_on_cudamalloc_oom":           {"false", wantFlag, "Refuse a request before the driver is asked where a new segment would pass per_process_memory_fraction, or the device. What is idle counts, and is not given back for it."},
	"expandable_segments_reserve":       {"", "a part of the device's memory such as 0.5, or GiB such as 40G", "The addresses that an expandable segment sets aside, and so the largest request; the default is 9/8 of the device, which is the most."},

	"expandable_segments_reserve_by_class": {"", "a list such as [serving:0.25,cache:8G]", "The same by classes that a program gives its streams, which no record tells; changes nothing here."},

	"pinned_free_catch_all":         {"false", wantFlag, "Of host memory; changes no address."},
	"pinned_max_round_threshold_mb": {"", "an integer of at least 0", "Of host memory; changes no address."},
	"pinned_max_cached_size_mb":     {"", "an integer of at least 0", "Of host memory; changes no address."},
}

// torchSince is the first release of PyTorch with an option, where that is known
// and matters: judged by when the change was proposed (pull requests 136174 of
// September 2024 and 172056 of January 2026) against the releases of the time, or
// by what installed releases take.
var torchSince = map[string]string{
	"max_non_split_rounding_mb": "2.6",
	"large_segment_size_mb":     "2.11",

	// What 2.11 refuses and 2.15 takes; which of the releases between them was the
	// first is not known.
	"throw_on_cudamalloc_oom":              "2.15",
	"expandable_segments_reserve":          "2.15",
	"expandable_segments_reserve_by_class": "2.15",
	"pinned_free_catch_all":                "2.15",
	"pinned_max_round_threshold_mb":        "2.15",
	"pinned_max_cached_size_mb":            "2.15",
}

// Since is the first release of the program with an option, such as "2.11"; ""
// where all that are in use have it, or none is known.
func (k *Kind) Since(option string) string {
	if k.Name != "torch" {
		return ""
	}
	return torchSince[option]
}

// ParseVersion reads a release such as "2.8" or "2.8.0+cu126".
func ParseVersion(text string) (major, minor int, ok bool) {
	a, b, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "v"), ".")
	if i := strings.IndexFunc(b, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		b = b[:i]
	}
	major, errA := strconv.Atoi(a)
	minor, errB := strconv.Atoi(b)
	return major, minor, found && errA == nil && errB == nil && major >= 0
}

// InRelease reports whether a release has an option. What is no release has all.
func (k *Kind) InRelease(option, release string) bool {
	since := k.Since(option)
	if since == "" || release == "" {
		return true
	}
	a, b, _ := ParseVersion(since)
	x, y, ok := ParseVersion(release)
	return !ok || x > a || x == a && y >= b
}

var torchOptions = makeTorchOptions()

func makeTorchOptions() []Option {
	var list []Option
	for _, name := range torch.OptionNames() {
		d := torchDocs[name]
		if d[1] == "" {
			d[1] = "a value that PyTorch's parser takes"
		}
		list = append(list, Option{name, d[0], d[1], d[2], func(c *config, v string) bool {
			if d[1] == wantFlag {
				b, ok := truth(v)
				if !ok {
					return false
				}
				v = map[bool]string{true: "True", false: "False"}[b]
			}
			if name == "backend" && v != "native" {
				return false
			}
			if _, err := torch.ParseSettings(name + ":" + v); err != nil || strings.ContainsAny(v, ",") && !strings.HasPrefix(v, "[") {
				return false
			}
			c.torch = append(c.torch, name+":"+v)
			return true
		}})
	}
	return append(list, Option{
		"memory_fraction", "", wantFraction, "The part of the device's memory that may be reserved (set_per_process_memory_fraction).",
		fraction(func(c *config) *float64 { return &c.fraction }),
	})
}
