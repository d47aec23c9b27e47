package contest

import "tideline/shared/alloc/kinds"

// Entry is one allocator of a contest.
type Entry struct {
	Kind     *kinds.Kind
	Settings []kinds.Setting
}

// Title is the kind with its settings.
func (e Entry) Title() string { return kinds.Title(e.Kind, e.Settings) }

// Matrix are all kinds with their defaults and with the few settings that tell
// most. Async comes twice over: what depends on timing lies between its row and
// its deterministic one.
func Matrix() []Entry {
	telling := map[string][]kinds.Setting{
		"bfc":   {{Name: "growth", Value: "true"}},
		"torch": {{Name: "expandable_segments", Value: "true"}, {Name: "max_split_size_mb", Value: "128"}, {Name: "roundup_power2_divisions", Value: "8"}},
		"ort":   {{Name: "arena_extend_strategy", Value: "same_as_requested"}},
		"async": {{Name: "deterministic", Value: "true"}, {Name: "release_threshold", Value: "0"}},
	}
	var list []Entry
	for _, k := range kinds.All() {
		list = append(list, Entry{Kind: k})
		for _, s := range telling[k.Name] {
			list = append(list, Entry{k, []kinds.Setting{s}})
		}
	}
	return list
}

// Compare replays the trace through every entry.
func (t *Trace) Compare(entries []Entry, o Options) []Result {
	results := make([]Result, len(entries))
	for i, e := range entries {
		results[i] = t.Run(e, o)
	}
	return results
}
