package kinds

import (
	"strings"

	"tideline/shared/alloc/torch"
)

// Written is settings as the program's user writes them, a line each: an
// environment variable, a field of a configuration, an argument. What has no
// other form is written OPTION=VALUE.
func Written(k *Kind, settings []Setting) []string {
	var lines, conf []string
	for _, s := range settings {
		switch name := k.Name + " " + s.Name; {
		case k.Name == "torch" && s.Name == "memory_fraction":
			lines = append(lines, "torch.cuda.set_per_process_memory_fraction("+s.Value+")")
		case k.Name == "torch":
			conf = append(conf, s.Name+":"+torchValue(s.Value))
		case name == "bfc growth":
			lines = append(lines, "TF_FORCE_GPU_ALLOW_GROWTH="+s.Value+" (JAX: XLA_PYTHON_CLIENT_PREALLOCATE="+opposite(s.Value)+")")
		case written[name] != "":
			lines = append(lines, written[name]+s.Value)
		default:
			lines = append(lines, s.String())
		}
	}
	if len(conf) > 0 {
		names := torch.SettingsVariables()
		lines = append([]string{names[len(names)-1] + "=" + strings.Join(conf, ",")}, lines...)
	}
	return lines
}

// written is what stands before an option's value.
var written = map[string]string{
	"bfc garbage_collection":                    "TF_ENABLE_GPU_GARBAGE_COLLECTION=",
	"bfc fragmentation_fraction":                "GPUOptions.experimental.internal_fragmentation_fraction=",
	"ort arena_extend_strategy":                 "OrtArenaCfg arena_extend_strategy=",
	"ort initial_chunk_size_bytes":              "OrtArenaCfg initial_chunk_size_bytes=",
	"ort max_dead_bytes_per_chunk":              "OrtArenaCfg max_dead_bytes_per_chunk=",
	"ort initial_growth_chunk_size_bytes":       "OrtArenaCfg initial_growth_chunk_size_bytes=",
	"ort max_power_of_two_extend_bytes":         "OrtArenaCfg max_power_of_two_extend_bytes=",
	"ort enable_memory_arena_shrinkage":         "run option memory.enable_memory_arena_shrinkage for the device: ",
	"ort use_device_allocator_for_initializers": "session option session.use_device_allocator_for_initializers: ",
	"async release_threshold":                   "cudaMemPoolAttrReleaseThreshold=",
	"async reuse_follow_event_dependencies":     "cudaMemPoolReuseFollowEventDependencies=",
	"async reuse_allow_opportunistic":           "cudaMemPoolReuseAllowOpportunistic=",
	"async reuse_allow_internal_dependencies":   "cudaMemPoolReuseAllowInternalDependencies=",
	"async prime":                               "one allocation, freed at once, of bytes: ",
	"rmm-pool initial_pool_size":                "pool_memory_resource initial_pool_size=",
	"rmm-pool maximum_pool_size":                "pool_memory_resource maximum_pool_size=",
	"rmm-pool allocation_limit":                 "limiting_resource_adaptor allocation_limit=",
	"rmm-binning min_size_exponent":             "binning_memory_resource min_size_exponent=",
	"rmm-binning max_size_exponent":             "binning_memory_resource max_size_exponent=",
	"rmm-binning initial_pool_size":             "pool_memory_resource initial_pool_size=",
	"rmm-binning maximum_pool_size":             "pool_memory_resource maximum_pool_size=",
	"rmm-binning allocation_limit":              "limiting_resource_adaptor allocation_limit=",
	"rmm-arena arena_size":                      "arena_memory_resource arena_size=",
	"rmm-arena allocation_limit":                "limiting_resource_adaptor allocation_limit=",
}

// torchValue writes flags as Python does.
func torchValue(v string) string {
	if b, ok := truth(v); ok && v != "0" && v != "1" {
		if b {
			return "True"
		}
		return "False"
	}
	return v
}

func opposite(v string) string {
	if b, _ := truth(v); b {
		return "false"
	}
	return "true"
}
