package peaks

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/zoo"
)

var update = flag.Bool("update", false, "write the page anew")

const page = "../../../docs/peaks.md"

// row is one line of the table of peaks.
type row struct {
	model string
	batch int
	runs  map[api.Mode]*recorded
	peaks map[api.Mode]*moment
	lives map[api.Mode]int64
}

func measureRow(t *testing.T, model string, batch int) *row {
	t.Helper()
	r := &row{model, batch, map[api.Mode]*recorded{}, map[api.Mode]*moment{}, map[api.Mode]int64{}}
	for _, mode := range peakModes {
		r.runs[mode] = measure(t, model, batch, mode)
		r.peaks[mode], r.lives[mode] = r.runs[mode].peak()
	}
	return r
}

// everything is set to check all models, which takes half a minute; otherwise
// the test measures those that take a moment.
var everything = os.Getenv("TIDELINE_PEAKS") != ""

// quick are models of every family, and batches that fit and do not.
var quick = map[string][]int{
	"mlp": peakBatches, "conv-2": peakBatches, "lenet5": peakBatches, "resnet18": peakBatches, "unet": peakBatches,
	"bert-2layer": peakBatches, "lstm": peakBatches, "resnet50": {32}, "bert-base": {32},
}

// The page tells what the models need now; -update writes its tables anew,
// and TIDELINE_PEAKS=all checks every row.
func TestPeaksAreThoseOnThePage(t *testing.T) {
	whole := *update || everything
	var rows []*row
	for _, model := range zoo.Names() {
		batches := peakBatches
		if !whole {
			batches = quick[model]
		}
		if testing.Short() && model != "lenet5" && model != "bert-2layer" {
			continue
		}
		for _, batch := range batches {
			rows = append(rows, measureRow(t, model, batch))
			checkRow(t, rows[len(rows)-1])
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	have := string(text)
	parts := []struct{ name, text string }{
		{"peaks", peaksTable(rows)}, {"reasons", reasonsList()}, {"differences", differences(t, rows)}, {"categories", categoriesTable(rows)},
	}
	want := have
	for _, p := range parts {
		if whole {
			want = replacePart(t, want, p.name, p.text)
		} else if line, ok := holdsLines(part(t, have, p.name), p.text); !ok {
			t.Errorf("%s is stale, it lacks %q: run go test ./shared/zoo/peaks -update and read the difference", page, line)
		}
	}
	switch {
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	case want != have:
		t.Errorf("%s is stale at %q: run go test ./shared/zoo/peaks -update and read the difference", page, firstDifference(have, want))
	}
	proseNames(t, want)
}

// holdsLines says whether a text has all lines of another, in their order, or
// which one is missing first.
func holdsLines(text, lines string) (missing string, ok bool) {
	for line := range strings.Lines(lines) {
		_, after, found := strings.Cut(text, line)
		if !found {
			return strings.TrimSuffix(line, "\n"), false
		}
		text = after
	}
	return "", true
}

// checkRow holds what the page says of all models.
func checkRow(t *testing.T, r *row) {
	t.Helper()
	planned, live := r.peaks[api.Planned].bytes, r.lives[api.Planned]
	if live != r.lives[api.Graph] {
		t.Errorf("%s at batch %d: tensors come to %d bytes planned and %d in the graph", r.model, r.batch, live, r.lives[api.Graph])
	}
	if live >= 1<<20 && float64(planned) > 1.005*float64(live) {
		t.Errorf("%s at batch %d: planned peak %d, the largest sum of live bytes %d", r.model, r.batch, planned, live)
	}
	if r.model == "unet" { // its labels lie beside an arena that is not full at that time
		labels := int64(r.batch) * 512 * 512 * 8
		if over := planned - live; over < labels || over > labels+1<<20 {
			t.Errorf("%s at batch %d: planned mode needs %d bytes more than its tensors, its labels have %d", r.model, r.batch, over, labels)
		}
	}
	for _, mode := range peakModes {
		sum, rounded := r.peaks[mode].categories()
		if r.peaks[mode].bytes > r.peaks[api.Eager].bytes {
			t.Errorf("%s at batch %d: %s needs more than eager", r.model, r.batch, mode)
		}
		if rounded < 0 || sum[event.Unknown] != 0 || sum[event.Parameter] == 0 || sum[event.OptimizerState] == 0 {
			t.Errorf("%s at batch %d, %s: categories %v, rounding %d", r.model, r.batch, mode, sum, rounded)
		}
	}
}

// marks are the lines around a part of the page.
func marks(name string) (begin, end string) {
	return "<!-- " + name + ": made by shared/zoo/peaks -->\n", "<!-- end of " + name + " -->"
}

func part(t *testing.T, doc, name string) string {
	t.Helper()
	begin, end := marks(name)
	_, after, ok := strings.Cut(doc, begin)
	text, _, ok2 := strings.Cut(after, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for %s: its marks are %q and %q", page, name, begin, end)
	}
	return text
}

// replacePart puts text between a part's marks.
func replacePart(t *testing.T, doc, name, text string) string {
	t.Helper()
	part(t, doc, name)
	begin, end := marks(name)
	before, after, _ := strings.Cut(doc, begin)
	_, after, _ = strings.Cut(after, end)
	return before + begin + "\n" + text + "\n" + end + after
}

func firstDifference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d: %s", i+1, w[i])
		}
	}
	return "its end"
}

// proseNames checks that the tensors of which the text speaks are in the
// tables.
func proseNames(t *testing.T, doc string) {
	t.Helper()
	prose, tables := "", ""
	for i, part := range strings.Split(doc, "<!-- ") {
		text, rest, marked := strings.Cut(part, " -->\n")
		switch {
		case i == 0 || !marked:
			prose += part
		case strings.HasPrefix(text, "end of "):
			prose += rest
		default:
			tables += rest
		}
	}
	names := regexp.MustCompile("`([a-z0-9_*]+/[A-Za-z0-9_*/:]+)`").FindAllStringSubmatch(prose, -1)
	if len(names) == 0 {
		t.Error("the text names no tensor")
	}
	for _, n := range names {
		if !strings.Contains(tables, n[1]) && !strings.HasPrefix(n[1], "shared/") {
			t.Errorf("the text speaks of %s, which is in no table", n[1])
		}
	}
}

// mib writes bytes as MiB, with as many digits as tell something.
func mib(n int64) string {
	x := float64(n) / (1 << 20)
	switch {
	case n == 0:
		return "0"
	case x < 1:
		return fmt.Sprintf("%.4f", x)
	case x < 100:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.1f", x)
}

func (r *row) cell(mode api.Mode) string {
	s := mib(r.peaks[mode].bytes)
	if !r.runs[mode].fits {
		s += " (does not fit)"
	}
	return s
}

func peaksTable(rows []*row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The pool's limit is %s MiB.\n\n", mib(rows[0].runs[api.Graph].limit))
	b.WriteString("| model | batch | eager | graph | planned | live | planned over live |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		live := r.lives[api.Planned]
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %.3f %% |\n", r.model, r.batch, r.cell(api.Eager), r.cell(api.Graph), r.cell(api.Planned),
			mib(live), 100*float64(r.peaks[api.Planned].bytes-live)/float64(live))
	}
	return b.String()
}

// shown are the categories of the table; the rest is counted as other.
var shown = []event.Category{
	event.Parameter, event.OptimizerState, event.Input, event.Activation, event.Gradient, event.ActivationGradient, event.Temporary,
}

func categoriesTable(rows []*row) string {
	var b strings.Builder
	for i, r := range rows {
		if i == 0 || rows[i-1].model != r.model {
			fmt.Fprintf(&b, "### %s\n\n| batch | mode | peak |", r.model)
			for _, c := range shown {
				fmt.Fprintf(&b, " %s |", c)
			}
			b.WriteString(" other | rounding | at op |\n|" + strings.Repeat(" --- |", len(shown)+6) + "\n")
		}
		for _, mode := range peakModes {
			m := r.peaks[mode]
			sum, rounded := m.categories()
			fmt.Fprintf(&b, "| %d | %s | %s |", r.batch, mode, r.cell(mode))
			other := m.bytes - rounded
			for _, c := range shown {
				fmt.Fprintf(&b, " %s |", mib(sum[c]))
				other -= sum[c]
			}
			fmt.Fprintf(&b, " %s | %s | `%s` |\n", mib(other), mib(rounded), m.op)
		}
		if i+1 == len(rows) || rows[i+1].model != r.model {
			b.WriteString("\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func reasonsList() string {
	var b strings.Builder
	for _, r := range reasons {
		fmt.Fprintf(&b, "- **%s**: %s\n", r.name, r.rule)
	}
	return b.String()
}

// compared is the batch at which differences are told.
const compared = 32

func differences(t *testing.T, rows []*row) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rows {
		if r.batch == compared {
			r.difference(t, &b)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (r *row) difference(t *testing.T, b *strings.Builder) {
	t.Helper()
	u := usesOf(t, r.model, r.batch)
	eager, graph := r.peaks[api.Eager], r.peaks[api.Graph]
	beside := u.beside(eager.op, r.runs[api.Graph])
	if beside == nil {
		t.Fatalf("%s: the graph has no moment beside %s", r.model, eager.op)
	}
	more, less := compare(u, eager, beside)
	fmt.Fprintf(b, "### %s at batch %d\n\nEager: %s at `%s`. Graph: %s", r.model, r.batch, mib(eager.bytes), eager.op, mib(beside.bytes))
	if beside.op == eager.op {
		b.WriteString(" at the same op")
	} else {
		fmt.Fprintf(b, " at `%s`, the last op before that one which it cannot run ahead of the backward pass", beside.op)
	}
	if graph.bytes == beside.bytes {
		b.WriteString(", its peak too")
	} else {
		fmt.Fprintf(b, "; its own peak, %s, is at `%s`", mib(graph.bytes), graph.op)
	}
	fmt.Fprintf(b, ". The %s between the two modes at that op:\n\n| | MiB | reason | largest |\n| --- | --- | --- | --- |\n", mib(eager.bytes-beside.bytes))
	more.write(b, "+", eager.bytes)
	less.write(b, "−", eager.bytes)
	b.WriteString("\n")
}

// tell is the part of a peak, as one in so many, that is worth a line.
const tell = 2000

// write adds a line for every reason, and one for all that is too little.
func (d *difference) write(b *strings.Builder, sign string, peak int64) {
	small := int64(0)
	for w := range numWhys {
		if d.bytes[w] < peak/tell {
			small += d.bytes[w]
			continue
		}
		var names []string
		groups := d.largest(w)
		for _, g := range groups[:min(4, len(groups))] {
			names = append(names, fmt.Sprintf("%s %s", g, mib(g.bytes)))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", sign, mib(d.bytes[w]), reasons[w].name, strings.Join(names, ", "))
	}
	if small > 0 {
		fmt.Fprintf(b, "| %s | %s | less than 1/%d of the peak each | |\n", sign, mib(small), tell)
	}
}

func TestAStalePageIsFound(t *testing.T) {
	page := "a\n| x | 1 |\n| y | 2 |\nz\n"
	for _, c := range []struct {
		lines, missing string
	}{
		{"| x | 1 |\nz\n", ""},
		{"| x | 2 |\n", "| x | 2 |"},
		{"| y | 2 |\n| x | 1 |\n", "| x | 1 |"}, // out of order
	} {
		if line, ok := holdsLines(page, c.lines); line != c.missing || ok != (c.missing == "") {
			t.Errorf("%q: missing %q, %v; want %q", c.lines, line, ok, c.missing)
		}
	}
}

// A block's reason, on made-up moments of a program of three ops: the forward
// op f, the backward op g that reads it, the update of w.
func TestReasonsFollowFromLives(t *testing.T) {
	u := &uses{
		at:   map[string]int{"f": 0, "g": 1, "later": 2, "update": 3},
		made: map[string]int{"f": 0, "g": 1, "later": 2}, read: map[string]int{"f": 1, "g": 3, "later": 3},
		forward: map[string]bool{"f": true}, taped: map[string]bool{"f": true}, applied: map[string]bool{"g": true},
	}
	gone, taken := fate{}, fate{takenBy: "later"}
	for _, c := range []struct {
		block block
		past  map[string]fate
		want  why
	}{
		{block{name: "f", category: event.Activation}, map[string]fate{"f": gone}, byTape},
		{block{name: "f", category: event.Activation}, map[string]fate{"f": taken}, byTape},
		{block{name: "g", category: event.Gradient}, map[string]fate{"g": gone}, byList},
		{block{name: "labels", category: event.Input}, nil, byLoop},
		{block{name: "later", category: event.ActivationGradient}, map[string]fate{"later": taken}, inPlace},
		{block{name: "later", category: event.ActivationGradient}, map[string]fate{"later": gone}, readAhead},
		{block{name: "later", category: event.ActivationGradient}, nil, queued},
	} {
		if got := u.eagerHolds(&c.block, 2, &moment{past: c.past}); got != c.want {
			t.Errorf("%s, %v: %s, want %s", c.block.name, c.past, reasons[got].name, reasons[c.want].name)
		}
	}
	for name, want := range map[string]why{"f": behind, "later": ahead, "unknown": otherwise} {
		now := 2
		if name == "later" {
			now = 1
		}
		if got := u.graphHolds(&block{name: name}, now); got != want {
			t.Errorf("the graph holds %s: %s, want %s", name, reasons[got].name, reasons[want].name)
		}
	}
}
