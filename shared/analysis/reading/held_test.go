package reading

import (
	"strings"
	"testing"
)

func TestGrowthSentences(t *testing.T) {
	one := []Grower{{Name: "append a.py:1", Caller: "main m.py:2", PerRepeat: 1 << 20, Bytes: 4 << 20, Blocks: 4}}
	for _, c := range []struct {
		g    Growth
		want string
	}{
		{Growth{Pool: "p", Verdict: Steady, Repeats: 4, PerRepeat: 1 << 20, Growing: one}, "fell and rose 4 times, and what is left at its low points grows by 1.00 MiB each time.|append a.py:1, from main m.py:2, keeps 1.00 MiB more each time: 4.00 MiB in 4 blocks"},
		{Growth{Pool: "p", Verdict: KeptWhole, Repeats: 4, PerRepeat: 1 << 20, Released: 1 << 10}, "each time more was kept (1.00 MiB) than half of what was given back (1.00 KiB)"},
		{Growth{Pool: "p", Verdict: Spread, Repeats: 4, PerRepeat: 512}, "its low points rise by 512 B each time, of which no single stack"},
		{Growth{Pool: "p", Verdict: Levelled, Repeats: 22, Growing: []Grower{{Name: "x", Bytes: 1024, Until: 2}}}, "came to rest: a cache, or state that is made once, and no leak.|x rose to 1.00 KiB and grew no more after the 2nd time."},
		{Growth{Pool: "p", Verdict: NoGrowth, Repeats: 5}, "p: nothing grows."},
		{Growth{Pool: "p", Verdict: TooShort, Left: 1, LeftBlocks: 1}, ""},
	} {
		got := strings.Join(c.g.Sentences(), "|")
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.g.Verdict, got, c.want)
		}
		if (c.g.Short() != "") != (c.g.Verdict == TooShort) {
			t.Errorf("%s: %q", c.g.Verdict, c.g.Short())
		}
	}
	if s := (&Growth{Verdict: TooShort}).Short(); s != "" {
		t.Errorf("nothing is left, and yet: %q", s)
	}
	many := Growth{Verdict: Steady, Growing: make([]Grower, MaxLines+3)}
	if s := many.Sentences(); len(s) != MaxLines+2 || s[len(s)-1] != "3 more grow." {
		t.Error(s)
	}
	for n, want := range map[int64]string{1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 21: "21st", 113: "113th"} {
		if got := ordinal(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// A pinned pool of a few KiB beside a card's is not shown to people.
func TestSmallPoolsAreNotShown(t *testing.T) {
	r := Reading{
		Held:   []Held{{Pool: "big", At: "peak", Bytes: 1000, Blocks: 1, Unknown: 1000, UnknownBlocks: 1}, {Pool: "small", At: "peak", Bytes: 9}},
		Growth: []Growth{{Pool: "small", Verdict: NoGrowth}, {Pool: "big", Verdict: NoGrowth}},
		Copies: &Copies{Busy: 1, Of: 1000, Count: 1, LongestBytes: 4, LongestTime: 1},
	}
	rows := r.Added()
	if len(rows) != 3 || !strings.HasPrefix(rows[0].Label, "Who holds 1000 B of big") || rows[0].Value != "1000 B, 100 % in 1 block: no stack or op is known" ||
		!strings.HasPrefix(rows[1].Value, "big: nothing") || !strings.Contains(rows[2].Value, "take under 1 % of what was recorded") {
		t.Errorf("%q", rows)
	}
	if !strings.Contains(string(r.AppendJSON(nil)), `"held":[{"allocator":"big"`) || !strings.Contains(string(r.AppendJSON(nil)), `{"allocator":"small"`) {
		t.Error("not in the report for programs")
	}
}

func TestHeadings(t *testing.T) {
	for _, c := range []struct{ verdict, why, want string }{
		{"timeline", "It holds 5.", "It holds 5."},
		{"timeline", "", ""},
		{"balanced", "All is freed.", "Everything was given back: All is freed."},
		{"balanced", "", "Everything was given back"},
	} {
		r := Reading{Verdict: c.verdict, Why: c.why}
		if got := r.Headline(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
