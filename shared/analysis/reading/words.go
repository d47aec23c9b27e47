package reading

import "strings"

// phrases are verdicts in the words of people. Most are their own words once
// their underscores are gone, and are not listed.
var phrases = map[string]string{
	"limit_too_low":               "The limit is too low",
	"other_process":               "Another process holds the memory",
	"host_pinned_limit":           "Pinned host memory is at its limit",
	"retryable":                   "A request that came too early",
	"request_exceeds_device":      "The request is larger than the device",
	"not_a_memory_problem":        "Not a memory problem",
	"leak_many_equal_chunks":      "A leak of equal chunks",
	"full_or_fragmented_by_bar":   "Full or fragmented",
	"fragmented_pool_or_cached":   "Free, but cached in a pool or held by others",
	"fragmented_segment_tails":    "Fragmented: what is idle is the rest of segments in use",
	"driver_refused_despite_free": "The driver refused although memory is free",
	"undetermined_truncated":      "Not certain",
	"undetermined_no_state":       "Not certain",
	"undetermined_no_request":     "Not certain",
	"arena_growth_exact":          "The arena grows by what is asked for",
	"arena_growth_rounding":       "The arena grows in rounded steps",
	"arena_limit":                 "The arena is at its limit",
	"balanced":                    "Everything was given back",
	"device_already_full":         "The device was full already",
	"device_refused_shared_card":  "The device refused: somebody else holds its memory",
	"failure_then_smaller_retry":  "A request failed, a smaller one did not",
	"hidden_holder":               "Memory is held by something that is not listed",
	"accumulating_processes":      "Processes pile up",
	"zombie_holder":               "A process that is gone still holds memory",
	"explained":                   "All memory is accounted for",
	"leak_growth_per_step":        "Memory grows with every step",
	"no_growth":                   "Memory does not grow",
	"padding_expansion":           "Padding makes tensors larger",
	"program_exceeds_device":      "The program is larger than the device",
	"parse_only":                  "What the text says",
	"no_room_for_library":         "No room was left for a library",
	"no_room_for_cache":           "No room was left for the cache",
	"host_out_of_memory":          "Killed for lack of host memory",
	"ops_on_cpu":                  "Ops on the CPU between ops on the GPU",
	"all_on_cpu":                  "Everything ran on the CPU",
	"ops_on_gpu":                  "What a GPU can run is on it",
	"placement_refused":           "An op cannot be where it was put",
}

// Phrase is a verdict as people read it; reports for programs have the
// identifier itself.
func Phrase(verdict string) string {
	if p, ok := phrases[verdict]; ok || verdict == "" {
		return p
	}
	s := strings.ReplaceAll(verdict, "_", " ")
	return strings.ToUpper(s[:1]) + s[1:]
}
