package kinds_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/kinds"
)

// drawn are the values that a fuzzer's bytes choose from, by option. An option
// that takes true or false needs no entry.
var drawn = map[string]func(d check.Draw) string{
	"fragmentation_fraction":         func(d check.Draw) string { return parts(d, 1000) },
	"profile":                        func(d check.Draw) string { return [...]string{"current", "classic", "core", "plugin"}[d.Draw(4)] },
	"max_split_size_mb":              func(d check.Draw) string { return strconv.Itoa(20 + d.Draw(60)) },
	"max_non_split_rounding_mb":      func(d check.Draw) string { return strconv.Itoa(20 + d.Draw(60)) },
	"garbage_collection_threshold":   func(d check.Draw) string { return parts(d, 100) },
	"roundup_power2_divisions":       func(d check.Draw) string { return strconv.Itoa(1 << d.Draw(6)) },
	"large_segment_size_mb":          func(d check.Draw) string { return strconv.Itoa(10 + 2*d.Draw(16)) },
	"backend":                        func(check.Draw) string { return "native" },
	"pinned_num_register_threads":    func(d check.Draw) string { return strconv.Itoa(1 << d.Draw(8)) },
	"pinned_reserve_segment_size_mb": func(d check.Draw) string { return strconv.Itoa(1 + d.Draw(64)) },
	"pinned_max_round_threshold_mb":  func(d check.Draw) string { return strconv.Itoa(d.Draw(64)) },
	"pinned_max_cached_size_mb":      func(d check.Draw) string { return strconv.Itoa(d.Draw(64)) },
	"expandable_segments_reserve":    func(d check.Draw) string { return parts(d, 100) },

	"expandable_segments_reserve_by_class": func(d check.Draw) string { return "[a:" + parts(d, 100) + "]" },

	"memory_fraction":                 func(d check.Draw) string { return parts(d, 100) },
	"per_process_memory_fraction":     func(d check.Draw) string { return parts(d, 100) },
	"arena_extend_strategy":           func(d check.Draw) string { return strconv.Itoa(d.Draw(2)) },
	"initial_chunk_size_bytes":        size,
	"max_dead_bytes_per_chunk":        size,
	"initial_growth_chunk_size_bytes": size,
	"max_power_of_two_extend_bytes":   size,
	"release_threshold":               size,
	"page":                            func(d check.Draw) string { return strconv.Itoa(512 << d.Draw(13)) },
	"prime":                           size,
	"initial_pool_size":               granules,
	"maximum_pool_size":               granules,
	"arena_size":                      granules,
	"allocation_limit":                size,
	"min_size_exponent":               func(d check.Draw) string { return strconv.Itoa(8 + d.Draw(8)) },
	"max_size_exponent":               func(d check.Draw) string { return strconv.Itoa(8 + d.Draw(8)) },
}

func parts(d check.Draw, of int) string {
	return strconv.FormatFloat(float64(1+d.Draw(of-1))/float64(of), 'g', -1, 64)
}
func size(d check.Draw) string     { return strconv.Itoa(1 + d.Draw(64*mib)) }
func granules(d check.Draw) string { return strconv.Itoa(256 * (1 + d.Draw(1<<18))) }

// drawSettings draws some of a kind's options; false where they cannot be had
// together.
func drawSettings(d check.Draw, k *kinds.Kind) ([]kinds.Setting, bool) {
	var list []kinds.Setting
	for _, o := range k.Options {
		if d.Draw(3) > 0 {
			continue
		}
		f := drawn[o.Name]
		if f == nil {
			f = func(d check.Draw) string { return strconv.FormatBool(d.Draw(2) == 1) }
		}
		list = append(list, kinds.Setting{Name: o.Name, Value: f(d)})
	}
	a, err := k.New(kinds.Env{Limit: 64 * mib, Observer: alloc.NoObserver{}}, list)
	if err != nil {
		return list, false
	}
	a.Close()
	return list, true
}

// FuzzEveryKindAndOption leads lives of any allocator, by its name, with any of
// its options, by theirs, under the judge.
func FuzzEveryKindAndOption(f *testing.F) {
	all := kinds.All()
	for i := range all {
		for seed := range uint64(3) {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			b := []byte{byte(i)}
			for range 500 {
				b = append(b, byte(rnd.Uint32()))
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			t.Skip("long inputs only repeat short ones")
		}
		d := check.Fuzzed(b)
		k := all[d.Draw(len(all))]
		settings, ok := drawSettings(d, k)
		if !ok {
			return
		}
		if err := check.Life(d, subject(k, settings)); err != nil {
			t.Fatalf("%s: %v", kinds.Title(k, settings), err)
		}
	})
}

// TestTheFuzzerDrawsEveryOption: each option is set to something else than its
// default in some life, and in such a life the allocator can be made.
func TestTheFuzzerDrawsEveryOption(t *testing.T) {
	for _, k := range kinds.All() {
		made := map[string]bool{}
		for seed := range uint64(400) {
			if list, ok := drawSettings(check.Seeded(seed, 1), k); ok {
				for _, s := range list {
					made[s.Name] = true
				}
			}
		}
		for _, o := range k.Options {
			if !made[o.Name] {
				t.Errorf("%s %s is never drawn", k.Name, o.Name)
			}
			if drawn[o.Name] == nil && !strings.Contains(o.Want, "true or false") {
				t.Errorf("%s %s takes %s: say in drawn which values to fuzz", k.Name, o.Name, o.Want)
			}
		}
	}
}

// Seeded lives of what the fuzzer draws, so that every test run leads some.
func TestLivesUnderDrawnSettingsObeyTheRules(t *testing.T) {
	for i, k := range kinds.All() {
		for seed := range uint64(40) {
			d := check.Seeded(seed<<8|uint64(i), 150)
			settings, ok := drawSettings(d, k)
			if !ok {
				continue
			}
			if err := check.Life(d, subject(k, settings)); err != nil {
				t.Fatalf("%s, seed %d: %v", kinds.Title(k, settings), seed, err)
			}
		}
	}
}
