package kinds_test

import (
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/stream"
)

const mib = 1 << 20

func TestEveryNameAndAliasIsFoundOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds.All() {
		for _, n := range append([]string{k.Name}, k.Aliases...) {
			if seen[n] {
				t.Errorf("%s names two kinds", n)
			}
			seen[n] = true
			if got, err := kinds.ByName(strings.ToUpper(n)); err != nil || got != k {
				t.Errorf("%s: %v, %v", n, got, err)
			}
		}
		if k.Doc == "" || (k.Label() != "") != k.Modelled || k.Modelled != strings.Contains(k.Doc, "modelled") {
			t.Errorf("%s does not say what it is: %q", k.Name, k.Doc)
		}
	}
	if _, err := kinds.ByName("jemalloc"); err == nil || !strings.Contains(err.Error(), "bfc, torch, ort, async, rmm-pool, rmm-binning, rmm-arena, system, direct") {
		t.Error(err)
	}
}

func TestEveryOptionTakesItsDefaultAndRefusesNonsense(t *testing.T) {
	for _, k := range kinds.All() {
		seen := map[string]bool{}
		for _, o := range k.Options {
			if seen[o.Name] || o.Doc == "" || o.Want == "" {
				t.Errorf("%s %s: %+v", k.Name, o.Name, o)
			}
			seen[o.Name] = true
			if o.Default != "" {
				if err := k.Check([]kinds.Setting{{Name: o.Name, Value: o.Default}}); err != nil {
					t.Errorf("its own default: %v", err)
				}
			}
			err := k.Check([]kinds.Setting{{Name: o.Name, Value: "perhaps"}})
			var oe *kinds.OptionError
			if !errors.As(err, &oe) || oe.Option != o.Name || oe.Value != "perhaps" || oe.Want != o.Want || !strings.Contains(err.Error(), o.Want) {
				t.Errorf("%s %s: %v", k.Name, o.Name, err)
			}
		}
		var oe *kinds.OptionError
		if err := k.Check([]kinds.Setting{{Name: "colour", Value: "red"}}); !errors.As(err, &oe) || !oe.Unknown || !strings.Contains(err.Error(), "colour") {
			t.Error(err)
		}
	}
}

func TestParseSetting(t *testing.T) {
	if s, err := kinds.ParseSetting(" growth = true "); err != nil || s != (kinds.Setting{Name: "growth", Value: "true"}) {
		t.Errorf("%v %v", s, err)
	}
	for _, bad := range []string{"growth", "=true", ""} {
		if _, err := kinds.ParseSetting(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// One setting for every option that changes what an allocator does.
var telling = map[string][]string{
	"bfc":         {"growth=true", "garbage_collection=false", "fragmentation_fraction=0.1", "profile=classic"},
	"torch":       {"expandable_segments=true", "max_split_size_mb=20", "roundup_power2_divisions=[1:4,>:8]", "garbage_collection_threshold=0.5", "memory_fraction=0.5", "large_segment_size_mb=11", "per_process_memory_fraction=0.5"},
	"ort":         {"arena_extend_strategy=same_as_requested", "initial_chunk_size_bytes=4MiB", "max_dead_bytes_per_chunk=1MiB", "max_power_of_two_extend_bytes=8MiB", "enable_memory_arena_shrinkage=true", "use_device_allocator_for_initializers=true", "cross_stream=true", "profile=plugin"},
	"async":       {"release_threshold=0", "reuse_allow_opportunistic=false", "reuse_allow_internal_dependencies=false", "reuse_follow_event_dependencies=false", "deterministic=true", "page=64KiB", "prime=8MiB"},
	"rmm-pool":    {"initial_pool_size=8MiB", "maximum_pool_size=32MiB", "allocation_limit=4MiB"},
	"rmm-binning": {"min_size_exponent=8 max_size_exponent=16", "min_size_exponent=17 max_size_exponent=18 allocation_limit=20MiB"},
	"rmm-arena":   {"arena_size=48MiB", "allocation_limit=8MiB"},
}

// Every kind under every option leads random lives, with several streams where
// it knows them, and no operation sequence breaks a rule of the judge.
func TestEveryKindAndOptionObeysTheRules(t *testing.T) {
	for _, k := range kinds.All() {
		for _, set := range append([]string{""}, telling[k.Name]...) {
			t.Run(k.Name+" "+set, func(t *testing.T) {
				var settings []kinds.Setting
				for word := range strings.FieldsSeq(set) {
					s, err := kinds.ParseSetting(word)
					if err != nil {
						t.Fatal(err)
					}
					settings = append(settings, s)
				}
				for seed := range uint64(12) {
					if err := check.Life(check.Seeded(seed, 250), subject(k, settings)); err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
			})
		}
	}
}

func subject(k *kinds.Kind, settings []kinds.Setting) check.Subject {
	const limit = 64 * mib
	var order stream.Order
	s := check.Subject{
		Rules: check.Rules{Granule: 64, Limit: limit},
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			return k.New(kinds.Env{Limit: limit, Order: &order, Observer: obs}, settings)
		},
		Extra: func(w *check.Watch, _ check.Draw) { w.A.(*kinds.Instance).EndStep() },
	}
	switch k.Name {
	case "torch": // its figures have tests of their own, and blocks of other streams are its callers' business
		s.Rules.Page = 2 * mib
		s.Remaps = true
	case "async":
		s.Rules.Page = 2 * mib
		s.Opportunistic = true
		for _, x := range settings {
			if n, err := event.ParseBytes(x.Value); err == nil && x.Name == "page" {
				s.Rules.Page = n
			}
			// Of two settings the later holds.
			if x.Name == "reuse_allow_opportunistic" {
				s.Opportunistic = x.Value == "true"
			}
			if x.Name == "deterministic" && x.Value == "true" {
				s.Opportunistic = false
			}
		}
		s.CountsRequested, s.Remaps = true, true
	case "ort":
		s.SameStream = true
	}
	if k.Name == "ort" || k.Name == "async" || strings.HasPrefix(k.Name, "rmm") {
		s.Order = &order
		s.Use = func(a alloc.Allocator, id stream.ID) { a.(*kinds.Instance).UseStream(id) }
	}
	return s
}

func TestWhatAnAllocatorCannotBeMadeOf(t *testing.T) {
	space, err := alloc.NewSpace(alloc.SpaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, set string
		env       kinds.Env
		want      string
	}{
		{"bfc", "", kinds.Env{}, "growth=true"},
		{"rmm-arena", "", kinds.Env{}, "arena_size"},
		{"async", "", kinds.Env{Driver: space}, "maps pages"},
		{"torch", "expandable_segments=true", kinds.Env{Driver: space}, "maps pages"},
		{"rmm-pool", "initial_pool_size=1GiB", kinds.Env{Limit: mib}, "above the maximum"},
	} {
		k, err := kinds.ByName(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		var settings []kinds.Setting
		if c.set != "" {
			s, err := kinds.ParseSetting(c.set)
			if err != nil {
				t.Fatal(err)
			}
			settings = append(settings, s)
		}
		if _, err := k.New(c.env, settings); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.kind, c.set, err, c.want)
		}
	}
}

func TestTheLimitHoldsForEveryKind(t *testing.T) {
	for _, k := range kinds.All() {
		a, err := k.New(kinds.Env{Limit: 32 * mib, Card: alloc.NewCard(1 << 30)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range 64 {
			if _, ok := a.Allocate(alloc.Request{Bytes: mib, NoRetry: true}); ok {
				n++
			}
		}
		if n < 16 || n > 32 || a.Stats().Pool > 32*mib {
			t.Errorf("%s: %d blocks of 1 MiB, pool %d", k.Name, n, a.Stats().Pool)
		}
		a.Close()
	}
}
