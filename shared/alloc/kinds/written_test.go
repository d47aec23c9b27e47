package kinds_test

import (
	"slices"
	"strings"
	"testing"

	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/torch"
)

func TestSettingsAsTheirUsersWriteThem(t *testing.T) {
	for _, c := range []struct{ kind, set, want string }{
		{"torch", "expandable_segments=true max_split_size_mb=128", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128"},
		{"torch", "memory_fraction=0.5 garbage_collection_threshold=0.8", "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8|torch.cuda.set_per_process_memory_fraction(0.5)"},
		{"bfc", "growth=true", "TF_FORCE_GPU_ALLOW_GROWTH=true (JAX: XLA_PYTHON_CLIENT_PREALLOCATE=false)"},
		{"bfc", "garbage_collection=false", "TF_ENABLE_GPU_GARBAGE_COLLECTION=false"},
		{"ort", "arena_extend_strategy=same_as_requested cross_stream=true", "OrtArenaCfg arena_extend_strategy=same_as_requested|cross_stream=true"},
		{"rmm-arena", "arena_size=1GiB", "arena_memory_resource arena_size=1GiB"},
		{"system", "", ""},
	} {
		k, err := kinds.ByName(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		var settings []kinds.Setting
		for word := range strings.FieldsSeq(c.set) {
			s, err := kinds.ParseSetting(word)
			if err != nil {
				t.Fatal(err)
			}
			settings = append(settings, s)
		}
		lines := kinds.Written(k, settings)
		if got := strings.Join(lines, "|"); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.set, got, c.want)
		}
		// What is written for PyTorch is what its parser takes.
		for _, line := range lines {
			if _, conf, ok := strings.Cut(line, "PYTORCH_CUDA_ALLOC_CONF="); ok {
				if _, err := torch.ParseSettings(conf); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if !slices.Equal(kinds.Written(kinds.All()[0], nil), nil) {
		t.Error("the default is written somehow")
	}
}
