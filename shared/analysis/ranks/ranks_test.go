package ranks

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

func TestRank(t *testing.T) {
	for name, want := range map[string]string{
		"rank3.pickle":                               "rank 3",
		"run_rank_3.pickle":                          "rank 3",
		"snapshot-rank-0012.pickle.gz":               "rank 12",
		"rank0_memory_snapshot.pickle":               "rank 0",
		"RANK=7.log":                                 "rank 7",
		"job.3.pickle":                               "rank 3",
		"memory_snapshot_5.pickle":                   "rank 5",
		"11.pickle":                                  "rank 11",
		"dp0-tp1.pickle":                             "dp 0 tp 1",
		"dump_pp1_tp03_dp0.pickle":                   "pp 1 tp 3 dp 0",
		"rank2/snapshot.pickle":                      "rank 2",
		"rank2/rank9_snapshot.pickle":                "rank 9",
		"node1/gpu0.log":                             "node 1 gpu 0",
		"local_rank_4.log":                           "local rank 4",
		"snapshot.pickle":                            "",
		"frank3.pickle":                              "",
		"run-20260311.pickle":                        "",
		"host.a_1234567.1700000000000.pt.trace.json": "",
		"": "",
	} {
		if got := Rank(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestBefore(t *testing.T) {
	list := []string{"dp 0 tp 1", "dp 0 tp 2", "dp 0 tp 10", "dp 1 tp 0", "rank 2", "rank 10", "rank 10 b"}
	for i := range list {
		for k := range list {
			if got := before(list[i], list[k]); got != (i < k) {
				t.Errorf("%q before %q: %v", list[i], list[k], got)
			}
		}
	}
}

const mib = 1 << 20

// program is a timeline whose blocks are freed at its end but the last, with a
// failure where fails is not 0.
func program(fails int64, blocks map[string]int64) *store.Timeline {
	strs := new(event.Strings)
	tl := store.New(strs)
	var list []event.Event
	facts := event.Fields{{Key: "name", Value: "/device:GPU:0"}, {Key: "kind", Value: "gpu"}}
	list = append(list, event.Event{Kind: event.DeviceFacts, Text: strs.ID(facts.Encode()), Step: event.NoStep})
	list = append(list, event.Event{Kind: event.AllocatorFacts, Text: strs.ID("name=GPU_0_torch\n"), Step: event.NoStep})
	list = append(list, event.Event{Kind: event.RegionAdd, Address: 1 << 32, Size: 4096 * mib, Requested: 4096 * mib, Step: event.NoStep})
	at := uint64(1 << 32)
	var first event.Event
	for _, who := range []string{"load", "forward", "gather"} {
		n := blocks[who] * mib
		if n == 0 {
			continue
		}
		e := event.Event{Kind: event.Alloc, Time: int64(len(list)), Address: at, Size: n, Requested: n, Op: strs.ID(who)}
		if first.Size == 0 {
			first = e
		}
		list = append(list, e)
		at += uint64(n)
	}
	if fails > 0 {
		list = append(list, event.Event{Kind: event.OutOfMemory, Time: int64(len(list)), Size: fails, Requested: fails, Cause: uint8(event.OOMFragmented), Op: strs.ID("step")})
	}
	list = append(list, event.Event{Kind: event.Free, Time: 100, Address: first.Address, Size: first.Size})
	tl.Append(list)
	return tl
}

func TestOf(t *testing.T) {
	r := Of("a", program(0, map[string]int64{"load": 100, "forward": 300}))
	if r.Peak != 400*mib || r.Reserved != 4096*mib || r.End != 300*mib || r.Hole != 3696*mib || r.Failed || r.Verdict != "" {
		t.Errorf("%+v", r)
	}
	r = Of("a", program(5000*mib, map[string]int64{"load": 100, "forward": 300}))
	if !r.Failed || r.Verdict != "fragmented" || r.Hole != 3696*mib || r.End != 300*mib {
		t.Errorf("%+v", r)
	}
	if r := Of("a", store.New(new(event.Strings))); r.Peak != Unknown || r.End != Unknown || r.Hole != Unknown || r.Failed {
		t.Errorf("nothing is known: %+v", r)
	}
}

// told joins what is said of four ranks, the third with other blocks.
func told(third map[string]int64, fails int64) string {
	var rows []Row
	for i := range 4 {
		b, f := map[string]int64{"load": 100, "forward": 300 + int64(i)}, int64(0)
		if i == 2 {
			b, f = third, fails
		}
		rows = append(rows, Of("rank_"+strconv.Itoa(i)+".pickle", program(f, b)))
	}
	return strings.Join(New(rows).Words(), "\n")
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		third map[string]int64
		fails int64
		want  string
	}{
		{map[string]int64{"load": 100, "forward": 302}, 0, "All 4 peak within 5 % of their median, 401.00 MiB."},
		{map[string]int64{"load": 100, "forward": 302, "gather": 150}, 0, "Rank 2 peaks at 552.00 MiB, 151.00 MiB (38 %) above the median of all, 401.00 MiB; gather holds 150.00 MiB there, and 0 B in the median of the others."},
		{map[string]int64{"load": 100, "forward": 100}, 0, "Rank 2 peaks at 200.00 MiB, 200.00 MiB (50 %) below the median of all, 400.00 MiB; forward holds 100.00 MiB there, and 301.00 MiB in the median of the others."},
		{map[string]int64{"load": 100}, 0, "Rank 2 peaks at 100.00 MiB, 300.00 MiB (75 %) below the median of all, 400.00 MiB; forward holds 0 B there, and 301.00 MiB in the median of the others."},
		{map[string]int64{"load": 100, "forward": 300}, 5000 * mib, "A request failed in rank 2, in the others none.\nAll 4 peak within 5 % of their median, 400.00 MiB."},
	} {
		if got := told(c.third, c.fails); got != c.want {
			t.Errorf("%v:\n%s\nwant\n%s", c.third, got, c.want)
		}
	}
}

// TestManyDiffer: of many ranks that differ the farthest are told of.
func TestManyDiffer(t *testing.T) {
	var rows []Row
	for i := range 16 {
		n := int64(100)
		if i > 9 {
			n += 10 * int64(i)
		}
		rows = append(rows, Of("r."+strconv.Itoa(i)+".pickle", program(9, map[string]int64{"forward": n})))
	}
	rows = append(rows, Unread("r.16.pickle", "r.16.pickle is empty. Try another one."))
	if s := rows[16].Says(); s != "Cannot be read: it is empty" {
		t.Errorf("says %q", s)
	}
	cut := Of("r.17.pickle", program(0, map[string]int64{"forward": 4000}))
	cut.Cut = "it ends too early"
	rows = append(rows, cut)
	if s := rows[17].Says(); s != "Not all of it was read: it ends too early" {
		t.Errorf("says %q", s)
	}
	got := New(rows).Words()
	if len(got) != 5 || got[0] != "A request failed in rank 0, rank 1, rank 2 and 13 more, in the others none." || !strings.HasPrefix(got[1], "Rank 15 peaks") || !strings.HasPrefix(got[3], "Rank 13 peaks") || !strings.HasPrefix(got[4], "3 more differ") {
		t.Errorf("%q", got)
	}
}

// TestLabels: ranks that do not tell all files apart tell none, but for those that
// cannot be read, which are marked here by a !.
func TestLabels(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"b_10.pickle b_2.pickle", "rank 2 rank 10"},
		{"b_10.pickle other.pickle", "b_10.pickle other.pickle"},
		{"A.md! b_10.pickle b_2.pickle! notes.md!", "rank 2 rank 10 A.md! notes.md!"},
		{"A.md! b.md!", "A.md! b.md!"},
		{"z/rank0.pickle a/rank0.pickle", "a/rank0.pickle z/rank0.pickle"},
		{"x.pickle x.pickle", "x.pickle x.pickle"},
	} {
		var rows []Row
		for name := range strings.FieldsSeq(c.names) {
			problem := ""
			if strings.HasSuffix(name, "!") {
				problem = "it is none"
			}
			rows = append(rows, Unread(name, problem))
		}
		table := New(rows)
		renamed := slices.Clone(rows)
		for i := range renamed {
			renamed[i].Rename(func(string) string { return "hidden" }, nil)
		}
		hidden := table.With(renamed)
		var got []string
		for _, i := range table.Order() {
			got = append(got, table.Label(i))
			if l := hidden.Label(i); l != "hidden" && !strings.HasPrefix(l, "rank") {
				t.Errorf("%s: %q is shown of a renamed file", c.names, l)
			}
		}
		if s := strings.Join(got, " "); s != c.want || table.Median() != Unknown || table.Told() != strings.HasPrefix(c.want, "rank") {
			t.Errorf("%s: %s, median %d", c.names, s, table.Median())
		}
	}
}

// TestAtMost: where only the largest holders of a file are known, one that is not
// among them may hold as much as the least of those, and no more is claimed.
func TestAtMost(t *testing.T) {
	var rows []Row
	for i := range 3 {
		r := Row{Name: "rank" + strconv.Itoa(i), Peak: 1000 * mib, cut: true, held: []holder{{"load", 500 * mib}, {"forward", 90 * mib}}}
		if i == 1 {
			r.Peak, r.held[1].name, r.held[1].bytes = 1300*mib, "gather", 400*mib
		}
		rows = append(rows, r)
	}
	want := "Rank 1 peaks at 1.27 GiB, 300.00 MiB (30 %) above the median of all, 1000.00 MiB; gather holds 400.00 MiB there, and at most 90.00 MiB in the median of the others."
	if got := strings.Join(New(rows).Words(), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	rows[1].held[1].bytes = 140 * mib // 50 of 300 are less than a fifth
	if got := strings.Join(New(rows).Words(), "\n"); strings.Contains(got, "gather") {
		t.Error(got)
	}
}

// TestTold: what a text tells counts more than what is made of it, and what was
// reserved at another moment than the peak is not said to have been then.
func TestTold(t *testing.T) {
	row := func(m Moment) [4]int64 {
		r := Of("a", program(0, map[string]int64{"load": 100, "forward": 300}))
		r.Told(m)
		return [4]int64{r.Peak, r.Reserved, r.End, r.Hole}
	}
	for m, want := range map[Moment][4]int64{
		{Unknown, Unknown, 5, 6}:    {400 * mib, 4096 * mib, 300 * mib, 3696 * mib},
		{9, 7, 8, 6}:                {9, Unknown, 7, 6},
		{7, 7, 8, Unknown}:          {7, 8, 7, 3696 * mib},
		{Unknown, 7, Unknown, 6}:    {7, Unknown, 7, 6},
		{Unknown, 0, 8, 6}:          {0, 8, 0, 6},
		{5, 7, 8, 6}:                {7, 8, 7, 6}, // rounded text may be a little off
		{9, 0, Unknown, Unknown}:    {9, Unknown, 0, 3696 * mib},
		{Unknown, Unknown, 5, 1000}: {400 * mib, 4096 * mib, 300 * mib, 3696 * mib},
	} {
		if got := row(m); got != want {
			t.Errorf("%+v: %v, want %v", m, got, want)
		}
	}
}

// TestPartOfAList: of a list that is cut no amount is taken.
func TestPartOfAList(t *testing.T) {
	strs := new(event.Strings)
	tl := store.New(strs)
	tl.Append([]event.Event{
		{Kind: event.AllocatorFacts, Text: strs.ID("name=GPU_0_bfc\npartial=true\n"), Step: event.NoStep},
		{Kind: event.Alloc, Time: 1, Address: 256, Size: 256, Requested: 256},
	})
	if r := Of("a", tl); r.Peak != Unknown || r.End != Unknown {
		t.Errorf("%+v", r)
	}
}
