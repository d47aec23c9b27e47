package main

import (
	"cmp"
	"fmt"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/store"
)

type diffCmd struct {
	A    string `arg:"" help:"File to compare from: a timeline, or a snapshot, profile or log of another program."`
	B    string `arg:"" help:"File to compare with."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run compares two inputs of any kind by what they tell of allocators.
func (d *diffCmd) Run(c *console) error {
	a, err := sideOf(c, d.A)
	if err != nil {
		return err
	}
	b, err := sideOf(c, d.B)
	if err != nil {
		return err
	}
	if err := compatible(a, b); err != nil {
		return err
	}
	if !d.JSON {
		c.say("A is %s, B is %s.\n", a, b)
	}
	x := compare(a.sums, b.sums)
	if !a.ours() || !b.ours() {
		x.withoutNothing()
	}
	x.compareHolders(a, b)
	return x.print(c, d.JSON, [3]string{"A", "B", "B − A"})
}

// summaryOf reads a whole timeline for a verb.
func summaryOf(c *console, verb, name string) (*analysis.Summary, error) {
	var t *analysis.Timeline
	_, err := readWhole(c, verb, name, func(strs *event.Strings) event.Sink {
		t = analysis.NewTimeline(strs)
		return t
	})
	if err != nil {
		return nil, err
	}
	return t.Summary(), nil
}

// readWhole gives all events of a file to a sink.
func readWhole(c *console, verb, name string, sink func(*event.Strings) event.Sink) (*input, error) {
	in, err := openTimeline(verb, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.file.Close() }() // it was only read
	if err := in.replay(sink); err != nil {
		return nil, err
	}
	in.printDamage(c)
	return in, nil
}

// comparison is two runs side by side.
type comparison struct {
	Changed []settingChange `json:"settings,omitempty"`
	Rows    []comparedRow   `json:"rows"`
	EndA    string          `json:"end_a"`
	EndB    string          `json:"end_b"`
	OOMA    int             `json:"out_of_memory_a"` // how many requests failed
	OOMB    int             `json:"out_of_memory_b"`
	// Holders are compared by diff alone.
	Holders []comparedHolders `json:"holders,omitempty"`
	Untold  []untold          `json:"untold,omitempty"`
}

type settingChange struct {
	Field string `json:"field"`
	A     string `json:"a"`
	B     string `json:"b"`
}

type comparedRow struct {
	What string `json:"what"`
	Unit string `json:"unit"` // bytes, nanoseconds, count
	A    int64  `json:"a"`
	B    int64  `json:"b"`
}

func compare(a, b *analysis.Summary) *comparison {
	x := &comparison{Changed: changedSettings(a.Settings, b.Settings), OOMA: len(a.Failures), OOMB: len(b.Failures), EndA: endWord(a), EndB: endWord(b)}
	x.row("steps", "count", a.Steps, b.Steps)
	x.row("time", "nanoseconds", a.Nanos, b.Nanos)
	for _, pair := range allocatorPairs(a, b) {
		p, q := pair.a, pair.b
		name := pair.name()
		x.row(name+" peak in use", "bytes", p.PeakInUse, q.PeakInUse)
		x.row(name+" peak reserved", "bytes", p.PeakReserved, q.PeakReserved)
		if p.Reported || q.Reported {
			x.row("  of the blocks that are listed", "count", p.Allocs-p.Frees, q.Allocs-q.Frees)
			continue
		}
		for cat := range event.NumCategories {
			if p.PeakByCategory[cat] != 0 || q.PeakByCategory[cat] != 0 {
				x.row("  at the peak: "+event.Category(cat).String(), "bytes", p.PeakByCategory[cat], q.PeakByCategory[cat])
			}
		}
		x.row(name+" allocations", "count", p.Allocs, q.Allocs)
	}
	x.compareTransfers(a, b)
	x.row("stalls", "count", a.Stalls.Count, b.Stalls.Count)
	x.row("stalled", "nanoseconds", a.Stalls.Nanos, b.Stalls.Nanos)
	return x
}

func (x *comparison) row(what, unit string, a, b int64) {
	x.Rows = append(x.Rows, comparedRow{what, unit, a, b})
}

func (x *comparison) compareTransfers(a, b *analysis.Summary) {
	sum := func(s *analysis.Summary, cause event.TransferCause) (n, bytes int64) {
		for _, t := range s.Transfers {
			if t.Cause == cause {
				return t.Count, t.Bytes
			}
		}
		return 0, 0
	}
	for cause := event.CauseUnknown; ; cause++ {
		if _, known := event.ParseTransferCause(cause.String()); !known {
			return
		}
		na, ba := sum(a, cause)
		nb, bb := sum(b, cause)
		if na > 0 || nb > 0 {
			x.row("transfers, "+cause.String(), "bytes", ba, bb)
		}
	}
}

func endWord(s *analysis.Summary) string {
	if !s.Ended {
		return "cut short"
	}
	return s.End.String()
}

// allocatorPair is an allocator of each run that go together; of one that the
// other run does not have, the other is empty.
type allocatorPair struct{ a, b analysis.AllocatorSummary }

func (p *allocatorPair) name() string {
	n := cmp.Or(p.a.Name, p.b.Name)
	if p.a.Name != "" && p.b.Name != "" && p.a.Name != p.b.Name {
		n = p.a.Name + " → " + p.b.Name
	}
	if in := cmp.Or(p.a.Within, p.b.Within); in != "" {
		n += ", inside " + in
	}
	return n
}

// allocatorPairs puts the allocators of both side by side, those of a first.
func allocatorPairs(a, b *analysis.Summary) (out []allocatorPair) {
	taken := make([]bool, len(b.Allocators))
	for i, j := range store.Counterparts(seats(a), seats(b)) {
		p := allocatorPair{a: a.Allocators[i]}
		if j >= 0 {
			p.b, taken[j] = b.Allocators[j], true
		}
		out = append(out, p)
	}
	for j, q := range b.Allocators {
		if !taken[j] {
			out = append(out, allocatorPair{b: q})
		}
	}
	return out
}

func seats(s *analysis.Summary) (out []store.Seat) {
	for i := range s.Allocators {
		x := &s.Allocators[i]
		out = append(out, store.Seat{Name: x.Name, Device: x.Device, Accelerator: !strings.Contains(x.Device, "CPU"), Planned: x.Within != ""})
	}
	return out
}

func changedSettings(a, b event.Fields) []settingChange {
	if len(a) == 0 || len(b) == 0 { // a log does not tell how it was run
		return nil
	}
	var out []settingChange
	for _, f := range a {
		if v, ok := b.Get(f.Key); !ok || v != f.Value {
			out = append(out, settingChange{f.Key, f.Value, v})
		}
	}
	for _, f := range b {
		if _, ok := a.Get(f.Key); !ok {
			out = append(out, settingChange{f.Key, "", f.Value})
		}
	}
	return out
}

// print writes the comparison under the words for the first, the second and
// the second less the first.
func (x *comparison) print(c *console, asJSON bool, words [3]string) error {
	if asJSON {
		return printJSON(c, x)
	}
	for _, s := range x.Changed {
		c.say("%s: %s -> %s\n", s.Field, orDefault(s.Field, s.A), orDefault(s.Field, s.B))
	}
	var t table
	t.row("", words[0], words[1], words[2])
	if x.EndA != "" || x.EndB != "" {
		t.row("ended", x.EndA, x.EndB, "")
	}
	for _, r := range x.Rows {
		switch r.Unit {
		case "bytes":
			t.row(r.What, size(r.A), size(r.B), change(r.A, r.B))
		case "nanoseconds":
			t.row(r.What, span(r.A), span(r.B), signed(span, r.B-r.A))
		default:
			t.row(r.What, fmt.Sprint(r.A), fmt.Sprint(r.B), signed(func(n int64) string { return fmt.Sprint(n) }, r.B-r.A))
		}
	}
	t.row("requests out of memory", fmt.Sprint(x.OOMA), fmt.Sprint(x.OOMB), signed(func(n int64) string { return fmt.Sprint(n) }, int64(x.OOMB-x.OOMA)))
	t.print(c)
	for _, u := range x.Untold {
		c.say("%s tells nothing of %s: its zeros are unknown.\n", u.By, u.Allocator)
	}
	for i := range x.Holders {
		x.Holders[i].print(c, words)
	}
	return nil
}

// orDefault is a setting's value, or what it means to leave it out. A run's
// settings have all defaults but those that turn something off.
func orDefault(field, value string) string {
	if value != "" {
		return value
	}
	switch field[strings.LastIndexByte(field, '.')+1:] {
	case "growth":
		return "false"
	case "held", "shuffle", "prefetch", "cost":
		return "0"
	case "train":
		return "off"
	default: // limits, and fields of a device or a rule that is not there
		return "none"
	}
}

func signed(show func(int64) string, n int64) string {
	switch {
	case n > 0:
		return "+" + show(n)
	case n < 0:
		return "−" + show(-n)
	}
	return "0"
}
