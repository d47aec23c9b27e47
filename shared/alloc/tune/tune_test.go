package tune_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/tune"
	"tideline/shared/golden"
)

func entry(tb testing.TB, name string, settings ...string) contest.Entry {
	tb.Helper()
	k, err := kinds.ByName(name)
	if err != nil {
		tb.Fatal(err)
	}
	e := contest.Entry{Kind: k}
	for _, text := range settings {
		s, err := kinds.ParseSetting(text)
		if err != nil {
			tb.Fatal(err)
		}
		e.Settings = append(e.Settings, s)
	}
	return e
}

func parse(tb testing.TB, text string) *contest.Trace {
	tb.Helper()
	x, err := contest.FromTrace(strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func load(tb testing.TB, name string) *contest.Trace {
	tb.Helper()
	f, err := os.ReadFile(filepath.Join(golden.Dir(tb, "bfc"), name+".trace.gz"))
	if err != nil {
		tb.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(f))
	if err != nil {
		tb.Fatal(err)
	}
	x, err := contest.FromTrace(z)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

// random is a program of so many calls whose blocks are of up to most bytes.
func random(tb testing.TB, seed uint64, calls int, most int64) *contest.Trace {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(seed, 11))
	var b strings.Builder
	b.WriteString("bfc-trace 1\no limit 1099511627776\n")
	var live []int
	for i := range calls {
		if len(live) > 0 && rnd.IntN(5) < 2 {
			j := rnd.IntN(len(live))
			fmt.Fprintf(&b, "f %d\n", live[j])
			live = slices.Delete(live, j, j+1)
			continue
		}
		fmt.Fprintf(&b, "a %d %d\n", i, 1+rnd.Int64N(1+most>>rnd.IntN(6)))
		live = append(live, i)
	}
	return parse(tb, b.String())
}

func serves(x *contest.Trace, e contest.Entry, limit int64) bool {
	r := x.Run(e, contest.Options{Limit: limit})
	return r.Served()
}

// Where a descent proves its limit, trying every limit finds the same.
func TestAProvenLimitIsTheOneThatTryingAllFinds(t *testing.T) {
	const mib = 1 << 20
	cases := []contest.Entry{entry(t, "torch"), entry(t, "torch", "max_split_size_mb=24"), entry(t, "async"), entry(t, "async", "release_threshold=0")}
	islands, seeds := 0, uint64(6)
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		x := random(t, seed, 120, 60*mib)
		for _, e := range cases {
			l, _ := tune.SmallestLimit(x, e, tune.Options{})
			if !l.Proven || !l.Complete() || l.Limit%(2*mib) != 0 || l.Below != l.Limit-1 {
				t.Fatalf("seed %d, %s: %+v", seed, e.Title(), l)
			}
			// All multiples of 2 MiB, of which these two take their memory.
			least := int64(0)
			for limit := l.Limit + 400*mib; limit >= x.Floor; limit -= 2 * mib {
				switch served := serves(x, e, limit); {
				case served && least == 0 && limit > l.Limit:
				case !served && least == 0:
					least = limit + 2*mib
				case served && least > 0:
					islands++ // below a limit that fails
				}
				if least == 0 && limit-2*mib < x.Floor {
					least = limit
				}
			}
			if least != l.Limit {
				t.Errorf("seed %d, %s: %d, trying all finds %d", seed, e.Title(), l.Limit, least)
			}
		}
	}
	if islands == 0 {
		t.Log("no lower limit served where a higher one failed")
	}
}

// A replay that reached r bytes under a limit is the replay of all from r on.
func TestWhatAReplayReachedStandsForTheLimitsInBetween(t *testing.T) {
	for seed := range uint64(10) {
		x := random(t, seed, 200, 40<<20)
		rnd := rand.New(rand.NewPCG(seed, 5))
		for _, e := range []contest.Entry{entry(t, "torch"), entry(t, "torch", "max_split_size_mb=20", "roundup_power2_divisions=4"), entry(t, "async"), entry(t, "direct")} {
			limit := x.Floor + rnd.Int64N(x.Floor/2)
			a := x.Run(e, contest.Options{Limit: limit})
			if !a.Served() {
				continue
			}
			for _, l := range []int64{a.PeakReserved, a.PeakReserved + rnd.Int64N(limit-a.PeakReserved+1)} {
				if b := x.Run(e, contest.Options{Limit: l}); fmt.Sprint(a) != fmt.Sprint(b) {
					t.Errorf("seed %d, %s: under %d %+v\nunder %d %+v", seed, e.Title(), limit, a, l, b)
				}
			}
		}
	}
}

// Whatever the method: the limit serves, the next lower one does not, and no
// limit tried above fails.
func TestALimitServesAndItsNeighbourDoesNot(t *testing.T) {
	traces := map[string]*contest.Trace{"growth-ladder": load(t, "growth-ladder"), "oom-fragmented": load(t, "oom-fragmented"), "nlp-varlen": load(t, "nlp-varlen")}
	for name, x := range traces {
		for _, e := range append(contest.Matrix(), entry(t, "rmm-binning", "min_size_exponent=8", "max_size_exponent=12")) {
			if name == "nlp-varlen" && (len(e.Settings) > 0 || testing.Short()) {
				continue
			}
			l, replays := tune.SmallestLimit(x, e, tune.Options{})
			if !l.Complete() || replays == 0 || l.Limit < x.Floor || l.Below >= l.Limit {
				t.Errorf("%s, %s: %+v after %d replays", name, e.Title(), l, replays)
				continue
			}
			if !serves(x, e, l.Limit) || serves(x, e, l.Below) {
				t.Errorf("%s, %s: %+v is not so", name, e.Title(), l)
			}
			if l.Below != l.Limit-l.Granule && l.Below >= x.Floor {
				t.Errorf("%s, %s: %+v: the neighbour is a granule away", name, e.Title(), l)
			}
			if !l.Proven && l.Probed == 0 {
				t.Errorf("%s, %s: %+v is neither proven nor probed", name, e.Title(), l)
			}
		}
	}
}

func TestNoLimitServesWhatNoneCan(t *testing.T) {
	x := parse(t, "bfc-trace 1\no limit 1048576\na 0 1000\na 1 9223372036854775807\n")
	for _, k := range kinds.All() {
		if l, _ := tune.SmallestLimit(x, contest.Entry{Kind: k}, tune.Options{}); l.Limit != 0 || l.Complete() {
			t.Errorf("%s: %+v", k.Name, l)
		}
		if a := tune.Best(x, k, tune.Options{Calls: 100000}); a.Best.Least.Limit != 0 || a.Improved() && a.Best.Least.Limit == 0 {
			t.Errorf("%s: %+v", k.Name, a.Best)
		}
	}
	nothing := parse(t, "bfc-trace 1\no limit 1048576\n")
	if l, n := tune.SmallestLimit(nothing, entry(t, "bfc"), tune.Options{}); l.Limit != 0 || n != 0 {
		t.Errorf("%+v %d", l, n)
	}
}

// Every option of every kind is tried or left out for a reason, once, and what
// is tried is taken.
func TestEveryOptionIsTriedOrLeftOut(t *testing.T) {
	var strs event.Strings
	rec := contest.NewRecorder(&strs)
	for _, e := range []event.Event{
		{Kind: event.AllocatorFacts, Size: 1 << 34},
		{Kind: event.Alloc, Address: 1 << 20, Size: 90 << 20, Requested: 90 << 20, Category: event.Parameter},
		{Kind: event.Alloc, Address: 1 << 30, Size: 30 << 20, Requested: 30 << 20, Stream: event.StreamH2D},
		{Kind: event.StepEnd},
	} {
		rec.Emit(&e)
	}
	rich := rec.Traces()[0]
	poor := parse(t, "bfc-trace 1\no limit 1048576\na 0 1000\n")
	for _, k := range kinds.All() {
		for name, x := range map[string]*contest.Trace{"rich": rich, "poor": poor} {
			axes, out := tune.Axes(x, k, "")
			var names []string
			for _, a := range axes {
				names = append(names, a.Option)
				if len(a.Values) == 0 || len(a.Values) > 255 {
					t.Errorf("%s %s: %d values", k.Name, a.Option, len(a.Values))
				}
				for _, v := range a.Values {
					if v == tune.OfLimit {
						v = "1073741824"
					}
					settings := []kinds.Setting{{Name: a.Option, Value: v}}
					if a.Option == "max_non_split_rounding_mb" || a.Option == "large_segment_size_mb" {
						settings = append(settings, kinds.Setting{Name: "max_split_size_mb", Value: "2000"})
					}
					if err := k.Check(settings); err != nil {
						t.Errorf("%s %s=%s: %v", k.Name, a.Option, v, err)
					}
				}
			}
			for _, l := range out {
				names = append(names, l.Option)
				if l.Why == "" || strings.Contains(l.Why, "no values are known") {
					t.Errorf("%s, %s %s is left out for no reason: %q", name, k.Name, l.Option, l.Why)
				}
			}
			slices.Sort(names)
			if len(slices.Compact(names)) != len(k.Options) {
				t.Errorf("%s: %v", k.Name, names)
			}
		}
	}
}

// On small domains the best is what measuring every combination apart finds.
func TestTheBestIsWhatMeasuringAllFinds(t *testing.T) {
	for seed := range uint64(4) {
		x := random(t, seed, 60, 30<<20)
		for _, name := range []string{"bfc", "async", "rmm-pool", "rmm-arena"} {
			e := entry(t, name)
			a := tune.Best(x, e.Kind, tune.Options{})
			if a.Scope != tune.All || int64(a.Tried) != a.Combinations || !a.Best.Least.Complete() {
				t.Fatalf("seed %d, %s: %s, %d of %d", seed, name, a.Scope, a.Tried, a.Combinations)
			}
			if a.Best.Least.Limit > a.Default.Least.Limit || a.Improved() != (fmt.Sprint(a.Best) != fmt.Sprint(a.Default)) {
				t.Errorf("seed %d, %s: %+v, the default %+v", seed, name, a.Best, a.Default)
			}
			best := contest.Entry{Kind: e.Kind, Settings: a.Best.Settings}
			if !tune.Serves(x, best, a.Best.Least.Limit) || tune.Serves(x, best, a.Best.Least.Below) {
				t.Errorf("seed %d, %s: %+v is not so", seed, name, a.Best)
			}
			for _, axis := range a.Axes {
				for _, v := range axis.Values {
					if v == tune.OfLimit {
						continue
					}
					l, _ := tune.SmallestLimit(x, contest.Entry{Kind: e.Kind, Settings: []kinds.Setting{{Name: axis.Option, Value: v}}}, tune.Options{})
					if l.Complete() && l.Proven && l.Limit < a.Best.Least.Limit {
						t.Errorf("seed %d, %s %s=%s needs %d, the best %v %d", seed, name, axis.Option, v, l.Limit, a.Best.Settings, a.Best.Least.Limit)
					}
				}
			}
		}
	}
}

// Segments of 2 MiB cannot join in PyTorch's default: what expandable segments
// are for.
func TestTorchsBestForAGrowingProgram(t *testing.T) {
	var b strings.Builder
	b.WriteString("bfc-trace 1\no limit 17179869184\n")
	for i := range 24 {
		fmt.Fprintf(&b, "a %d %d\nf %d\n", i, (100+16*i)<<20, i)
	}
	x := parse(t, b.String())
	a := tune.Best(x, entry(t, "torch").Kind, tune.Options{})
	if a.Default.Least.Limit != 468<<20 || a.Default.At.PeakReserved <= 2<<30 {
		t.Errorf("default: %+v", a.Default)
	}
	// No setting needs less than the largest request; the one that holds least
	// under the recorded limit grows in place.
	if a.Best.Least.Limit != 468<<20 || a.Best.At.PeakReserved != 480<<20 && a.Best.At.PeakReserved != 468<<20 || a.Best.Settings[0].String() != "expandable_segments=true" {
		t.Errorf("%v %+v", a.Best.Settings, a.Best)
	}
}

func TestASearchEndsWhenItIsTold(t *testing.T) {
	x := load(t, "nlp-varlen")
	k := entry(t, "torch").Kind
	a := tune.Best(x, k, tune.Options{Calls: 3 * int64(x.Len())})
	if a.Scope != tune.Cut || a.Replays > 12 || a.Improved() && !a.Best.Least.Complete() {
		t.Errorf("%s after %d replays: %+v", a.Scope, a.Replays, a.Best)
	}
	asked := 0
	a = tune.Best(x, k, tune.Options{Stop: func() bool { asked++; return asked > 50 }})
	if a.Scope != tune.Cut || asked < 50 || asked > 60 {
		t.Errorf("%s, asked %d times", a.Scope, asked)
	}
}

// The same question has the same answer.
func TestAnswersAreRepeatable(t *testing.T) {
	x := random(t, 3, 80, 30<<20)
	for _, k := range kinds.All() {
		a, b := tune.Best(x, k, tune.Options{Calls: 100000}), tune.Best(x, k, tune.Options{Calls: 100000})
		if fmt.Sprint(*a) != fmt.Sprint(*b) {
			t.Errorf("%s: %+v\n%+v", k.Name, a, b)
		}
	}
}

// What a release lacks is left out of the search, and said to be.
func TestOptionsOfNewerReleasesAreLeftOut(t *testing.T) {
	k, err := kinds.ByName("torch")
	if err != nil {
		t.Fatal(err)
	}
	b := contest.NewBuilder(&contest.Trace{Kind: "torch"})
	b.Add(contest.Call{Kind: contest.Allocate, Bytes: 40 << 20})
	x := b.Trace()
	for release, want := range map[string][2]bool{
		"": {true, true}, "2.11.0+cu130": {true, true}, "2.8": {true, false}, "2.6.0": {true, false}, "2.5": {false, false}, "1.13": {false, false}, "3.0": {true, true},
	} {
		axes, out := tune.Axes(x, k, release)
		if len(axes)+len(out) != len(k.Options) {
			t.Errorf("%s: %d and %d of %d options", release, len(axes), len(out), len(k.Options))
		}
		for i, name := range []string{"max_non_split_rounding_mb", "large_segment_size_mb"} {
			if got := slices.ContainsFunc(axes, func(a tune.Axis) bool { return a.Option == name }); got != want[i] {
				t.Errorf("release %q: %s is tried: %v", release, name, got)
			}
		}
		for _, s := range tune.Best(x, k, tune.Options{Release: release}).Best.Settings {
			if !k.InRelease(s.Name, release) {
				t.Errorf("release %q: the best has %s", release, s)
			}
		}
	}
}
