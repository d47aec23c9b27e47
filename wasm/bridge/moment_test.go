package bridge

import (
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/store"
)

// total sums a column of the n-th table of an answer.
func total(t *testing.T, answer map[string]any, caption, column string) (sum float64) {
	t.Helper()
	for _, x := range answer["tables"].([]any) {
		table := x.(map[string]any)
		if !strings.HasPrefix(table["caption"].(string), caption) {
			continue
		}
		for i, c := range table["columns"].([]any) {
			if c.(map[string]any)["name"] == column {
				for _, row := range table["rows"].([]any) {
					sum += row.(map[string]any)["c"].([]any)[i].(float64)
				}
				return sum
			}
		}
	}
	t.Fatalf("no column %q of a table %q", column, caption)
	return 0
}

func figureOf(t *testing.T, answer map[string]any, name string) string {
	t.Helper()
	for _, x := range answer["figures"].([]any) {
		if f := x.(map[string]any); f["name"] == name {
			return f["value"].(string)
		}
	}
	t.Fatalf("no figure %q in %v", name, answer["figures"])
	return ""
}

// At the cursor of a failure everything shows what was held when the request
// failed, and not what was left once its step was unwound.
func TestTheCursorOfAFailureShowsTheFailure(t *testing.T) {
	s := NewSession()
	run(t, s, "oom", strings.Replace(tiny, "batch=16", "batch=6000", 1))
	sl := s.slots[Current]
	o := sl.tl.OOMs()[0]
	m, err := event.ParseChunkMap(sl.tl.Text(o.ChunkMap))
	if err != nil || len(m) == 0 {
		t.Fatalf("the failure has no chunk map: %v", err)
	}
	_, used, _, largest := m.Totals()
	p := sl.tl.Pools()[o.Pool]
	if p.At(o.Time).InUse == used {
		t.Fatal("the step was not unwound: this run tests nothing")
	}
	lane := "memory-" + itoa(int64(o.Pool))
	at := itoa(int64(ask(t, s, "next-oom\t-1\t1")["t"].(float64)))
	tab := func(name string) map[string]any { return ask(t, s, "details\t"+name+"\t"+at+"\t0\t1\t"+lane) }
	if got := total(t, tab("oom"), "What held the memory", "Bytes"); int64(got) != used {
		t.Errorf("what held the memory sums to %v, want the %d in use", got, used)
	}
	if got := total(t, tab("oom"), "Where the 256.00 MiB of the card were", "Bytes"); int64(got) != 256<<20 {
		t.Errorf("where the card's memory was sums to %v", got)
	}
	advice, _ := tab("oom")["advice"].([]any)
	if len(advice) == 0 || !strings.Contains(advice[0].(string), "batch") && !strings.Contains(advice[0].(string), "smaller") {
		t.Errorf("the advice on a batch too many is %v", advice)
	}
	for _, name := range []string{"oom", "live", "chunks"} {
		if got := figureOf(t, tab(name), "In use"); got != size(used) {
			t.Errorf("%s: %s in use, want %s", name, got, size(used))
		}
	}
	if got := figureOf(t, tab("chunks"), "Largest hole"); got != size(largest) {
		t.Errorf("largest hole %s, want %s", got, size(largest))
	}
	if got := total(t, tab("live"), "Live allocations", "Size"); int64(got) != used && len(p.LiveIn(nil, o.Moment)) <= maxRows {
		t.Errorf("live allocations sum to %v, want %d", got, used)
	}
	ask(t, s, "status") // lists the lanes
	heads := ask(t, s, "at\t"+at)["lanes"].(map[string]any)
	if got := heads[lane].(map[string]any)["now"]; got != size(used)+" in use" {
		t.Errorf("the lane's head says %v, want %s", got, size(used))
	}
}

// A peak is the highest that its nanosecond reaches, wherever it is shown.
func TestThePeakIsTheSameEverywhere(t *testing.T) {
	for _, fields := range []string{tiny, strings.Replace(tiny, "batch=16", "batch=6000", 1)} {
		s := NewSession()
		run(t, s, "x", fields)
		sl := s.slots[Current]
		p := sl.mainPool()
		first, last := sl.span()
		_, most := p.PeakPoint(first, last+1)
		lane := "memory-" + itoa(int64(p.Index))
		at := itoa(int64(ask(t, s, "peak\t"+lane)["t"].(float64))) + "p"
		want := size(most)
		tab := func(name string) map[string]any { return ask(t, s, "details\t"+name+"\t"+at+"\t0\t1\t"+lane) }
		for _, x := range [][2]string{{"peak", "Peak in use"}, {"live", "In use"}, {"chunks", "In use"}} {
			if got := figureOf(t, tab(x[0]), x[1]); got != want {
				t.Errorf("%s: %s, want the peak, %s", x[0], got, want)
			}
		}
		if got := total(t, tab("peak"), "By op", "Bytes"); int64(got) != most {
			t.Errorf("by op: %v, want %d", got, most)
		}
		if got := total(t, tab("peak"), "Where the 256.00 MiB of the card were", "Bytes"); int64(got) != 256<<20 {
			t.Errorf("where the card's memory was sums to %v", got)
		}
		ask(t, s, "status") // lists the lanes
		heads := ask(t, s, "at\t"+at)["lanes"].(map[string]any)[lane].(map[string]any)
		if heads["now"] != want+" in use" {
			t.Errorf("the lane's head says %v, want %s", heads["now"], want)
		}
		var sum float64
		for _, n := range heads["legend"].(map[string]any) {
			sum += n.(float64)
		}
		if int64(sum) != most {
			t.Errorf("the legend sums to %v, want %d", sum, most)
		}
	}
}

// The two tables of the peak tell the same of each category.
func TestThePeakByOpAgreesWithThePeakByCategory(t *testing.T) {
	s := NewSession()
	run(t, s, "x", tiny)
	p := s.slots[Current].mainPool()
	first, last := s.slots[Current].span()
	pk := p.Peak(first, last+1, 1<<20)
	var sums store.Categories
	for _, x := range pk.Top {
		sums[x.Category] += x.Bytes
	}
	if sums != pk.ByCategory {
		t.Errorf("by op: %v, by category: %v", sums, pk.ByCategory)
	}
}
