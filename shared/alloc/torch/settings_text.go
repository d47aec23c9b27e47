package torch

import (
	"strconv"
	"strings"
)

// Set changes one option, as a settings string would; true and false may also
// be written small. A failure changes nothing. Contradictions between options
// are found by Validate.
func (s *Settings) Set(option, value string) error {
	switch value {
	case "true":
		value = "True"
	case "false":
		value = "False"
	}
	p := &parser{tokens: tokens(option + ":" + value)}
	next := *s
	if err := p.option(&next); err != nil {
		return err
	}
	if p.more() {
		return &SettingError{Option: option, Value: value, Want: "one value"}
	}
	*s = next
	return nil
}

// String is the settings as a settings string; what is at its default is left
// out.
func (s *Settings) String() string {
	var parts []string
	add := func(option, value string) { parts = append(parts, option+":"+value) }
	megabytes := func(option string, bytes int64) {
		if bytes != 0 {
			add(option, strconv.FormatInt(bytes/mib, 10))
		}
	}
	truth := func(option string, on bool) {
		if on {
			add(option, "True")
		}
	}
	if s.Backend != Native {
		add("backend", s.Backend.String())
	}
	megabytes("max_split_size_mb", s.MaxSplit)
	megabytes("max_non_split_rounding_mb", s.MaxNonSplitRounding)
	if s.GarbageCollection != 0 {
		add("garbage_collection_threshold", strconv.FormatFloat(s.GarbageCollection, 'g', -1, 64))
	}
	if list := s.divisionList(); list != "" {
		add("roundup_power2_divisions", list)
	}
	truth("expandable_segments", s.Expandable)
	megabytes("large_segment_size_mb", s.LargeSegment)
	if s.Fraction != 0 {
		add("per_process_memory_fraction", strconv.FormatFloat(s.Fraction, 'g', -1, 64))
	}
	truth("release_lock_on_cudamalloc", s.ReleaseLock)
	truth("pinned_use_cuda_host_register", s.HostRegister)
	if s.RegisterThreads != 0 {
		add("pinned_num_register_threads", strconv.FormatInt(s.RegisterThreads, 10))
	}
	truth("pinned_use_background_threads", s.BackgroundThreads)
	megabytes("pinned_reserve_segment_size_mb", s.PinnedReserve)
	truth("graph_capture_record_stream_reuse", s.GraphCaptureReuses)
	truth("throw_on_cudamalloc_oom", s.Preempt)
	if s.Reserve != (Reserve{}) {
		add("expandable_segments_reserve", s.Reserve.String())
	}
	if s.ReserveByClass != "" {
		add("expandable_segments_reserve_by_class", s.ReserveByClass)
	}
	truth("pinned_free_catch_all", s.PinnedCatchAll)
	most := func(option string, m Most) {
		if m.Set {
			add(option, strconv.FormatInt(m.Bytes/mib, 10))
		}
	}
	most("pinned_max_round_threshold_mb", s.PinnedMaxRound)
	most("pinned_max_cached_size_mb", s.PinnedMaxCached)
	return strings.Join(parts, ",")
}

// divisionList is a number where all slots agree, else a list of every change.
func (s *Settings) divisionList() string {
	d := s.Divisions
	if d == [divisionSlots]int64{} {
		return ""
	}
	same := true
	for _, n := range d {
		same = same && n == d[0]
	}
	if same {
		return strconv.FormatInt(d[0], 10)
	}
	b := []byte{'['}
	for i, n := range d {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, 1<<i, 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}
