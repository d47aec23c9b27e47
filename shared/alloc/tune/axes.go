package tune

import (
	"slices"
	"sort"
	"strconv"

	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/rmm"
)

// Axis is one option and the values that are tried beside its default.
type Axis struct {
	Option string
	Values []string
	// Note says which values these are, where they are not all that there are.
	Note string
}

// LeftOut is an option that is not tried.
type LeftOut struct{ Option, Why string }

// OfLimit as a value stands for the limit of each replay, in whole granules: a
// pool that takes all at once.
const OfLimit = "limit"

// most is how many values of a size are tried where there are more.
const most = 24

// Axes are the options of a kind that can matter to a trace, with values that
// its sizes and streams suggest, and the options that are left out, because a
// release of the program lacks them among other reasons; release is "" for the
// newest. Together they are all options of the kind.
func Axes(t *contest.Trace, k *kinds.Kind, release string) ([]Axis, []LeftOut) {
	f := factsOf(t)
	var axes []Axis
	var out []LeftOut
	for _, o := range k.Options {
		if why := leftOut[k.Name+" "+o.Name]; why != "" {
			out = append(out, LeftOut{o.Name, why})
			continue
		}
		if !k.InRelease(o.Name, release) {
			out = append(out, LeftOut{o.Name, "not in " + release + ", but since " + k.Since(o.Name)})
			continue
		}
		values, note := f.values(k.Name, o.Name)
		if len(values) == 0 {
			if note == "" {
				note = "no values are known to try"
			}
			out = append(out, LeftOut{o.Name, note})
			continue
		}
		axes = append(axes, Axis{o.Name, values, note})
	}
	return axes, out
}

const (
	noAddress = "changes no address"
	isALimit  = "it is a limit itself"
)

var leftOut = map[string]string{
	"bfc profile":                                "it says which program runs, not how it is set",
	"ort profile":                                "it says which program runs, not how it is set",
	"torch memory_fraction":                      isALimit,
	"torch per_process_memory_fraction":          isALimit,
	"torch backend":                              "the other backend is allocator async",
	"torch release_lock_on_cudamalloc":           noAddress,
	"torch pinned_use_cuda_host_register":        noAddress,
	"torch pinned_num_register_threads":          noAddress,
	"torch pinned_use_background_threads":        noAddress,
	"torch pinned_reserve_segment_size_mb":       noAddress,
	"torch graph_capture_record_stream_reuse":    noAddress,
	"torch pinned_free_catch_all":                noAddress,
	"torch pinned_max_round_threshold_mb":        noAddress,
	"torch pinned_max_cached_size_mb":            noAddress,
	"torch throw_on_cudamalloc_oom":              "it only refuses earlier",
	"torch expandable_segments_reserve":          "it only bounds the largest request",
	"torch expandable_segments_reserve_by_class": noAddress,
	"async page":                                 "it is a choice of the driver's makers",
	"async deterministic":                        "it is two of the other options together",
	"rmm-pool maximum_pool_size":                 isALimit,
	"rmm-pool allocation_limit":                  isALimit,
	"rmm-binning maximum_pool_size":              isALimit,
	"rmm-binning allocation_limit":               isALimit,
	"rmm-arena allocation_limit":                 isALimit,
}

// facts are what of a trace the values go by.
type facts struct {
	sizes      []int64 // of requests, ascending, each once
	floor      int64
	streams    bool
	parameters bool
	steps      bool
}

func factsOf(t *contest.Trace) *facts {
	f := &facts{floor: t.Floor, streams: t.Streams > 1}
	seen := map[int64]bool{}
	t.Each(func(c *contest.Call) {
		switch c.Kind {
		case contest.Allocate:
			f.parameters = f.parameters || c.Parameter
			if c.Bytes > 0 && !seen[c.Bytes] {
				seen[c.Bytes] = true
				f.sizes = append(f.sizes, c.Bytes)
			}
		case contest.EndStep:
			f.steps = true
		case contest.Free, contest.GiveBack:
		}
	})
	ascending(f.sizes)
	return f
}

func (f *facts) largest() int64 {
	if len(f.sizes) == 0 {
		return 0
	}
	return f.sizes[len(f.sizes)-1]
}

// values are those of one option; none where it cannot matter to this trace,
// which the note then says.
func (f *facts) values(kind, option string) (values []string, note string) {
	const mib = 1 << 20
	switch option {
	case "growth", "expandable_segments":
		return []string{"true"}, ""
	case "garbage_collection":
		return []string{"false"}, ""
	case "fragmentation_fraction":
		return []string{"0.001", "0.01", "0.05", "0.1", "0.25", "0.5", "1"}, "seven fractions"
	case "max_split_size_mb":
		return f.splits()
	case "max_non_split_rounding_mb":
		return sized(20, f.largest()/mib+20, 32, 64, 128, 256, 512, 1024), "powers of two; it needs max_split_size_mb"
	case "garbage_collection_threshold":
		return []string{"0.6", "0.7", "0.8", "0.9"}, "four fractions, with the limit as a part of a larger card's memory"
	case "roundup_power2_divisions":
		return []string{"2", "4", "8", "16", "32"}, "the same number for all sizes"
	case "large_segment_size_mb":
		return []string{"11", "12", "16", "24", "32", "48", "64"}, "seven sizes"
	case "arena_extend_strategy":
		return []string{"same_as_requested"}, ""
	case "initial_chunk_size_bytes":
		return append(bytes(256, f.floor, 64<<10, 256<<10, 4*mib, 16*mib, 64*mib, 256*mib), strconv.FormatInt(max(256, up(f.floor, 256)), 10)), "powers of two below what is wanted at once, and that"
	case "max_dead_bytes_per_chunk":
		return bytes(0, 1<<62, 1, mib, 8*mib, 32*mib, 512*mib), "five sizes"
	case "initial_growth_chunk_size_bytes":
		if !f.steps {
			return nil, "the requests tell of no steps, so that nothing shrinks"
		}
		return bytes(0, 1<<62, mib, 16*mib, 64*mib), "three sizes; it needs enable_memory_arena_shrinkage"
	case "max_power_of_two_extend_bytes":
		return bytes(0, max(2*f.floor, 4*mib), mib, 4*mib, 16*mib, 64*mib, 256*mib), "powers of two"
	case "enable_memory_arena_shrinkage":
		if !f.steps {
			return nil, "the requests tell of no steps, so that nothing shrinks"
		}
		return []string{"true"}, ""
	case "use_device_allocator_for_initializers":
		if !f.parameters {
			return nil, "the requests tell of no parameters"
		}
		return []string{"true"}, ""
	case "cross_stream", "reuse_follow_event_dependencies", "reuse_allow_opportunistic", "reuse_allow_internal_dependencies":
		if !f.streams {
			return nil, "all requests are on one stream"
		}
		return []string{strconv.FormatBool(option == "cross_stream")}, ""
	case "release_threshold":
		return []string{"0", strconv.FormatInt(up(f.floor, 2*mib), 10)}, "the driver's default, and what is wanted at once"
	case "prime":
		return []string{strconv.FormatInt(max(2*mib, up(f.floor, 2*mib)), 10)}, "what is wanted at once"
	case "initial_pool_size":
		return []string{strconv.FormatInt(max(rmm.Granule, up(f.floor, rmm.Granule)), 10), OfLimit}, "what is wanted at once, and the limit"
	case "arena_size":
		return []string{OfLimit}, "the limit"
	case "min_size_exponent":
		return []string{"8", "10", "12", "14", "16", "18", "20"}, "even numbers"
	case "max_size_exponent":
		return []string{"8", "10", "12", "14", "16", "18", "20", "22", "24"}, "even numbers"
	}
	return nil, "no values are known to try for " + kind
}

// splits are the values of max_split_size_mb that can make a difference: whole
// MiB up to the largest segment, above which no block is too large to split. If
// there are many, those at which a request changes sides come before the rest.
func (f *facts) splits() (values []string, note string) {
	const mib, least = 1 << 20, 20
	top := max(least, up(f.largest(), 2*mib)/mib)
	if f.largest() < 10*mib {
		return nil, "no block is above 20 MiB"
	}
	if top-least < most {
		for v := int64(least); v <= top; v++ {
			values = append(values, strconv.FormatInt(v, 10))
		}
		return values, "all that make a difference"
	}
	var list []int64
	for v := int64(32); v < top; v *= 2 {
		list = append(list, v)
	}
	var edges []int64
	for _, n := range f.sizes {
		for _, v := range []int64{n/mib + 1, up(n, mib) / mib} {
			if v >= least && v <= top && !slices.Contains(edges, v) {
				edges = append(edges, v)
			}
		}
	}
	list = append(append(list, least, top), spread(edges, most-len(list)-2)...)
	ascending(list)
	for _, v := range slices.Compact(list) {
		values = append(values, strconv.FormatInt(v, 10))
	}
	return values, strconv.Itoa(len(values)) + " of the " + strconv.FormatInt(top-least+1, 10) + " that can make a difference"
}

// ascending sorts a list. Its lists are short: slices.Sort, compiled for this
// type alone, would be 12 KB of the browser's module.
func ascending(list []int64) {
	sort.SliceStable(list, func(i, j int) bool { return list[i] < list[j] })
}

// spread picks n of a list, evenly.
func spread(list []int64, n int) []int64 {
	if len(list) <= n {
		return list
	}
	picked := make([]int64, 0, n)
	for i := range n {
		picked = append(picked, list[i*len(list)/n])
	}
	return picked
}

// sized are those of the numbers that lie above least and below top.
func sized(least, top int64, list ...int64) []string {
	var values []string
	for _, v := range list {
		if v > least && v < top {
			values = append(values, strconv.FormatInt(v, 10))
		}
	}
	return values
}

func bytes(least, top int64, list ...int64) []string { return sized(least, top, list...) }

func up(n, granule int64) int64 { return (n + granule - 1) / granule * granule }

// at are the settings under a limit.
func (c candidate) at(limit int64) []kinds.Setting {
	for i, s := range c.settings {
		if s.Value != OfLimit {
			continue
		}
		fixed := slices.Clone(c.settings)
		for j := i; j < len(fixed); j++ {
			if fixed[j].Value == OfLimit {
				fixed[j].Value = strconv.FormatInt(limit&^(rmm.Granule-1), 10)
			}
		}
		return fixed
	}
	return c.settings
}
