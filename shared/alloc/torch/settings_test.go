package torch_test

import (
	"errors"
	"strings"
	"testing"

	"tideline/shared/alloc/torch"
)

func TestEveryOptionIsRead(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		text string
		want torch.Settings
	}{
		{"", torch.Settings{}},
		{"   ", torch.Settings{}},
		{"max_split_size_mb:128", torch.Settings{MaxSplit: 128 * mib}},
		{" max_split_size_mb : 20 ", torch.Settings{MaxSplit: 20 * mib}},
		{"max_split_size_mb:64,max_split_size_mb:32", torch.Settings{MaxSplit: 32 * mib}},
		{"max_non_split_rounding_mb:30", torch.Settings{MaxNonSplitRounding: 30 * mib}},
		{"garbage_collection_threshold:0.8", torch.Settings{GarbageCollection: .8}},
		{"expandable_segments:True", torch.Settings{Expandable: true}},
		{"expandable_segments:True,expandable_segments:False", torch.Settings{}},
		{"large_segment_size_mb:12", torch.Settings{LargeSegment: 12 * mib}},
		{"max_split_size_mb:16,large_segment_size_mb:16", torch.Settings{MaxSplit: 16 * mib, LargeSegment: 16 * mib}},
		{"large_segment_size_mb:12,max_non_split_rounding_mb:13", torch.Settings{LargeSegment: 12 * mib, MaxNonSplitRounding: 13 * mib}},
		{"per_process_memory_fraction:0.25", torch.Settings{Fraction: .25}},
		{"backend:native", torch.Settings{}},
		{"backend:cudaMallocAsync", torch.Settings{Backend: torch.MallocAsync}},
		{"release_lock_on_cudamalloc:True", torch.Settings{ReleaseLock: true}},
		{"release_lock_on_hipmalloc:True", torch.Settings{ReleaseLock: true}},
		{"pinned_use_cuda_host_register:True,pinned_num_register_threads:8", torch.Settings{HostRegister: true, RegisterThreads: 8}},
		{"pinned_use_hip_host_register:True", torch.Settings{HostRegister: true}},
		{"pinned_use_background_threads:True", torch.Settings{BackgroundThreads: true}},
		{"pinned_reserve_segment_size_mb:3", torch.Settings{PinnedReserve: 3 * mib}},
		{"graph_capture_record_stream_reuse:True", torch.Settings{GraphCaptureReuses: true}},
		{"throw_on_cudamalloc_oom:True", torch.Settings{Preempt: true}},
		{"expandable_segments_reserve:0.5", torch.Settings{Reserve: torch.Reserve{Value: .5}}},
		{"expandable_segments_reserve:40G", torch.Settings{Reserve: torch.Reserve{Value: 40, GiB: true}}},
		{"expandable_segments_reserve:1e20g", torch.Settings{Reserve: torch.Reserve{Value: 1e20, GiB: true}}},
		{"expandable_segments_reserve_by_class:[serving: 0.25, cache:8G]", torch.Settings{ReserveByClass: "[serving:0.25,cache:8G]"}},
		{"expandable_segments_reserve_by_class:[a:1,]", torch.Settings{ReserveByClass: "[a:1]"}},
		{"expandable_segments_reserve_by_class:[]", torch.Settings{ReserveByClass: "[]"}},
		{"pinned_free_catch_all:True", torch.Settings{PinnedCatchAll: true}},
		{"pinned_max_round_threshold_mb:128", torch.Settings{PinnedMaxRound: torch.Most{Bytes: 128 * mib, Set: true}}},
		{"pinned_max_cached_size_mb:0", torch.Settings{PinnedMaxCached: torch.Most{Set: true}}},
		{
			"garbage_collection_threshold:0.6,max_split_size_mb:128,expandable_segments:False",
			torch.Settings{GarbageCollection: .6, MaxSplit: 128 * mib},
		},
	} {
		got, err := torch.ParseSettings(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

func TestEveryOptionNameIsKnown(t *testing.T) {
	for _, name := range torch.OptionNames() {
		_, err := torch.ParseSettings(name + ":?")
		var e *torch.SettingError
		if !errors.As(err, &e) || e.Option != name || e.Value != "?" || e.Want == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDivisionsOfEverySize(t *testing.T) {
	const mib = int64(1) << 20
	for _, c := range []struct {
		text string
		want map[int64]int64 // MiB to divisions
	}{
		{"roundup_power2_divisions:4", map[int64]int64{1: 4, 64: 4, 32768: 4, 1 << 20: 4}},
		{"roundup_power2_divisions:1", map[int64]int64{1: 1, 32768: 1}},
		{
			"roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]",
			map[int64]int64{1: 8, 32: 8, 64: 8, 127: 8, 128: 2, 256: 4, 511: 4, 512: 2, 1024: 4, 2048: 1, 4096: 1, 32768: 1, 65536: 1},
		},
		{
			"roundup_power2_divisions:[128:8,256:16,512:1,2048:8,>:2]",
			map[int64]int64{64: 8, 128: 8, 256: 16, 512: 1, 1024: 0, 2048: 8, 4096: 2, 8192: 2, 32768: 2},
		},
		{"roundup_power2_divisions: [ 256 : 1 , 512 : 2 ]", map[int64]int64{1: 1, 256: 1, 512: 2, 1024: 0}},
		{"roundup_power2_divisions:[65536:8]", map[int64]int64{1: 8, 32768: 8}},
		{"roundup_power2_divisions:[]", map[int64]int64{1: 0}},
		{"roundup_power2_divisions:2,roundup_power2_divisions:[4:0,8:16]", map[int64]int64{1: 0, 4: 0, 8: 16, 16: 2}},
	} {
		s, err := torch.ParseSettings(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
		for size, want := range c.want {
			if got := s.DivisionsFor(size * mib); got != want {
				t.Errorf("%q: %d divisions at %d MiB, want %d", c.text, got, size, want)
			}
		}
		if s.DivisionsFor(1) != s.DivisionsFor(mib) {
			t.Errorf("%q: sizes below 1 MiB take the first slot", c.text)
		}
	}
}

func TestWrongSettingsSayWhatWasExpected(t *testing.T) {
	for _, c := range []struct{ text, option, value, want string }{
		{"max_split:3", "", "max_split", "one of the options"},
		{":", "", ":", "one of the options"},
		{"max_split_size_mb", "max_split_size_mb", "", `":"`},
		{"max_split_size_mb:", "max_split_size_mb", "", "integer"},
		{"max_split_size_mb:19", "max_split_size_mb", "19", "at least the large segment size, 20"},
		{"max_split_size_mb:0", "max_split_size_mb", "0", "integer"},
		{"max_split_size_mb:-5", "max_split_size_mb", "-5", "integer"},
		{"max_split_size_mb:12.5", "max_split_size_mb", "12.5", "integer"},
		{"max_split_size_mb:128MB", "max_split_size_mb", "128MB", "integer"},
		{"max_split_size_mb:99999999999999999999", "max_split_size_mb", "99999999999999999999", "integer"},
		{"max_split_size_mb=128", "", "max_split_size_mb=128", "one of the options"},
		{"max_split_size_mb:128 expandable_segments:True", "max_split_size_mb", "128expandable_segments", "integer"},
		{"max_split_size_mb:128;", "max_split_size_mb", "128;", "integer"},
		{"max_split_size_mb:128,large_segment_size_mb:256", "max_split_size_mb", "128", "256"},
		{"max_non_split_rounding_mb:19", "max_non_split_rounding_mb", "19", "at least the large segment size, 20"},
		{"max_non_split_rounding_mb:22,large_segment_size_mb:24", "max_non_split_rounding_mb", "22", "at least the large segment size, 24"},
		{"large_segment_size_mb:9", "large_segment_size_mb", "9", "above 10"},
		{"large_segment_size_mb:10", "large_segment_size_mb", "10", "above 10"},
		{"per_process_memory_fraction:0", "per_process_memory_fraction", "0", "above 0 and at most 1"},
		{"per_process_memory_fraction:1.5", "per_process_memory_fraction", "1.5", "above 0 and at most 1"},
		{"garbage_collection_threshold:0", "garbage_collection_threshold", "0", "above 0 and below 1"},
		{"garbage_collection_threshold:1", "garbage_collection_threshold", "1", "above 0 and below 1"},
		{"garbage_collection_threshold:nan", "garbage_collection_threshold", "nan", "above 0"},
		{"garbage_collection_threshold:", "garbage_collection_threshold", "", "above 0"},
		{"roundup_power2_divisions:3", "roundup_power2_divisions", "3", "power of two"},
		{"roundup_power2_divisions:0", "roundup_power2_divisions", "0", "power of two"},
		{"roundup_power2_divisions:4294967296", "roundup_power2_divisions", "4294967296", "power of two"},
		{"roundup_power2_divisions:[4:4294967296]", "roundup_power2_divisions", "4294967296", "power of two"},
		{"roundup_power2_divisions:[3:4]", "roundup_power2_divisions", "3", "size in MiB"},
		{"roundup_power2_divisions:[4:3]", "roundup_power2_divisions", "3", "power of two for 4"},
		{"roundup_power2_divisions:[4:4", "roundup_power2_divisions", "", "] after 4:4"},
		{"roundup_power2_divisions:[4:4 8:8]", "roundup_power2_divisions", "48", "0 or a power of two"},
		{"roundup_power2_divisions:[4]", "roundup_power2_divisions", "]", `":"`},
		{"roundup_power2_divisions:[", "roundup_power2_divisions", "", "size in MiB"},
		{"expandable_segments:true", "expandable_segments", "true", "True or False"},
		{"expandable_segments:1", "expandable_segments", "1", "True or False"},
		{"expandable_segments:True:True", "expandable_segments", ":", "comma"},
		{"expandable_segments:True,,", "", ",", "one of the options"},
		{"backend:cuda", "backend", "cuda", "native or cudaMallocAsync"},
		{"pinned_num_register_threads:3", "pinned_num_register_threads", "3", "power of two"},
		{"pinned_num_register_threads:256", "pinned_num_register_threads", "256", "at most 128"},
		{"pinned_reserve_segment_size_mb:0", "pinned_reserve_segment_size_mb", "0", "at least 1"},
		{"throw_on_cudamalloc_oom:1", "throw_on_cudamalloc_oom", "1", "True or False"},
		{"pinned_free_catch_all:true", "pinned_free_catch_all", "true", "True or False"},
		{"pinned_max_round_threshold_mb:x", "pinned_max_round_threshold_mb", "x", "at least 0"},
		{"pinned_max_cached_size_mb:99999999999999999999", "pinned_max_cached_size_mb", "99999999999999999999", "integer"},
		{"expandable_segments_reserve:abc", "expandable_segments_reserve", "abc", "such as 0.5"},
		{"expandable_segments_reserve:G", "expandable_segments_reserve", "G", "such as 0.5"},
		{"expandable_segments_reserve:4GG", "expandable_segments_reserve", "4GG", "such as 0.5"},
		{"expandable_segments_reserve:0", "expandable_segments_reserve", "0", "such as 0.5"},
		{"expandable_segments_reserve:-1", "expandable_segments_reserve", "-1", "such as 0.5"},
		{"expandable_segments_reserve:inf", "expandable_segments_reserve", "inf", "such as 0.5"},
		{"expandable_segments_reserve:nan", "expandable_segments_reserve", "nan", "such as 0.5"},
		{"expandable_segments_reserve_by_class:0.5", "expandable_segments_reserve_by_class", "0.5", `"["`},
		{"expandable_segments_reserve_by_class:[a:0.25", "expandable_segments_reserve_by_class", "", "] after a:0.25"},
		{"expandable_segments_reserve_by_class:[a:0.25,b:12X]", "expandable_segments_reserve_by_class", "12X", "such as 0.5"},
		{"expandable_segments_reserve_by_class:[:1]", "expandable_segments_reserve_by_class", ":", "class's name"},
		{"expandable_segments_reserve_by_class:[a:1,,b:1]", "expandable_segments_reserve_by_class", ",", "class's name"},
	} {
		_, err := torch.ParseSettings(c.text)
		var e *torch.SettingError
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if e.Option != c.option || e.Value != c.value || !strings.Contains(e.Want, c.want) {
			t.Errorf("%q: %+v, want %+v", c.text, e, c)
		}
		if !strings.Contains(e.Error(), e.Want) || !strings.Contains(e.Error(), e.Option) {
			t.Errorf("%q: %v", c.text, e)
		}
	}
}

func TestTheNewerVariableWins(t *testing.T) {
	if v := torch.SettingsVariables(); len(v) != 2 || v[0] != "PYTORCH_ALLOC_CONF" || v[1] != "PYTORCH_CUDA_ALLOC_CONF" {
		t.Error(v)
	}
}

func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"", "max_split_size_mb:128", "roundup_power2_divisions:[64:8,128:2,256:4,512:2,1024:4,>:1]",
		"garbage_collection_threshold:0.8,expandable_segments:True", "large_segment_size_mb:12,max_split_size_mb:12",
		"backend:native,release_lock_on_hipmalloc:False", "[[[]]],:,:", "roundup_power2_divisions:[",
		"max_non_split_rounding_mb:9223372036854775807",
		"throw_on_cudamalloc_oom:True,expandable_segments_reserve:40G,pinned_max_cached_size_mb:0",
		"expandable_segments_reserve_by_class:[a:0.25,b:8g],expandable_segments_reserve:1e-300",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := torch.ParseSettings(text)
		if err != nil {
			var e *torch.SettingError
			if !errors.As(err, &e) || e.Want == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Fatalf("%q was read, but is not valid: %v", text, err)
		}
		if again, err := torch.ParseSettings(s.String()); err != nil || again != s {
			t.Fatalf("%q is written %q and read as %+v, %v", text, s.String(), again, err)
		}
		for _, n := range []int64{1, 511, 513, 1 << 20, 1<<20 + 1, 3 << 30, 1 << 59} {
			if r := s.Round(n); r < n || r%torch.Granule != 0 || s.Segment(r) < r {
				t.Fatalf("%q: %d is rounded to %d in a segment of %d", text, n, r, s.Segment(r))
			}
		}
	})
}

func TestSettingsAreWrittenAsTheyAreRead(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"expandable_segments:True,max_split_size_mb:128": "max_split_size_mb:128,expandable_segments:True",
		"roundup_power2_divisions:4":                     "roundup_power2_divisions:4",
		"garbage_collection_threshold:0.80":              "garbage_collection_threshold:0.8",
		"backend:cudaMallocAsync":                        "backend:cudaMallocAsync",
		"pinned_num_register_threads:4":                  "pinned_num_register_threads:4",
		"release_lock_on_hipmalloc:True":                 "release_lock_on_cudamalloc:True",
		"large_segment_size_mb:12,max_split_size_mb:12":  "max_split_size_mb:12,large_segment_size_mb:12",
		"pinned_reserve_segment_size_mb:5":               "pinned_reserve_segment_size_mb:5",
		"max_non_split_rounding_mb:22":                   "max_non_split_rounding_mb:22",
		"per_process_memory_fraction:.50":                "per_process_memory_fraction:0.5",
		"graph_capture_record_stream_reuse:True":         "graph_capture_record_stream_reuse:True",
		"pinned_use_background_threads:True":             "pinned_use_background_threads:True",
		"pinned_use_cuda_host_register:True":             "pinned_use_cuda_host_register:True",
		"roundup_power2_divisions:[64:8,128:2,>:1]": "roundup_power2_divisions:[1:8,2:8,4:8,8:8,16:8,32:8,64:8,128:2," +
			"256:1,512:1,1024:1,2048:1,4096:1,8192:1,16384:1,32768:1]",
	} {
		s, err := torch.ParseSettings(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
		if again, err := torch.ParseSettings(s.String()); err != nil || again != s {
			t.Errorf("%q is read as %+v, %v", s.String(), again, err)
		}
	}
}

func TestOneOptionCanBeSet(t *testing.T) {
	var s torch.Settings
	for _, c := range []struct{ option, value, want string }{
		{"expandable_segments", "true", ""},
		{"max_split_size_mb", "64", ""},
		{"roundup_power2_divisions", "[64:8,>:2]", ""},
		{"expandable_segments", "false", ""},
		{"expandable_segments", "perhaps", "True or False"},
		{"expandable_segments", "True,max_split_size_mb:1", "one value"},
		{"expandable", "True", "one of the options"},
		{"max_split_size_mb", "", "integer"},
	} {
		err := s.Set(c.option, c.value)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s=%s: %v, want %q", c.option, c.value, err, c.want)
		}
	}
	if s.Expandable || s.MaxSplit != 64<<20 || s.DivisionsFor(64<<20) != 8 || s.DivisionsFor(128<<20) != 2 {
		t.Errorf("%+v", s)
	}
}
