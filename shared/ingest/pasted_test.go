package ingest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/analysis/reading"
)

// pastes are what pasting does to a text without taking anything away.
var pastes = []struct {
	name   string
	change func(lines []string) []string
}{
	{"indented", each(func(s string) string { return "    " + s })},
	{"indented by tabs", each(func(s string) string { return "\t" + s })},
	{"quoted twice", each(func(s string) string { return "> > " + s })},
	{"quoted without a blank", each(func(s string) string { return ">" + s })},
	{"escaped for a page", each(func(s string) string {
		return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(s)
	})},
	{"docker compose", each(func(s string) string { return "trainer_1  | " + s })},
	{"kubernetes", each(func(s string) string { return "2026-03-04T10:11:12.123456789Z stderr F " + s })},
	{"kubectl --prefix", each(func(s string) string { return "[pod/train-0/main] " + s })},
	{"journald", each(func(s string) string { return "Mar 04 10:11:12 node7 python[4242]: " + s })},
	{"rank", each(func(s string) string { return "[1,0]<stderr>:" + s })},
	{"ray", each(func(s string) string { return "(train_fn pid=4242) " + s })},
	{"torchrun", each(func(s string) string { return "[rank0]: " + s })},
	{"slurm -l", each(func(s string) string { return "0: " + s })},
	{"colours", each(func(s string) string { return "\x1b[31m" + s + "\x1b[0m" })},
	{"trailing blanks", each(func(s string) string { return s + "   " })},
	{"blank lines between", each(func(s string) string { return s + "\n" })},
	{"fenced", func(l []string) []string { return append(append([]string{"```"}, l...), "```") }},
}

func each(f func(string) string) func([]string) []string {
	return func(l []string) []string {
		out := make([]string, len(l))
		for i, s := range l {
			out[i] = f(s)
		}
		return out
	}
}

// casesOfTexts gives the lines of the inputs of each case that is a text.
func casesOfTexts(t *testing.T) map[string][][]string {
	t.Helper()
	out := map[string][][]string{}
	for _, c := range cases(t) {
		if textKinds[c.Kind] == 0 {
			continue
		}
		for _, name := range c.Inputs {
			b, err := os.ReadFile(filepath.Join(c.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			s := strings.TrimSuffix(strings.ReplaceAll(string(b), "\r", ""), "\n")
			out[c.ID] = append(out[c.ID], strings.Split(s, "\n"))
		}
	}
	return out
}

func readLines(name string, texts [][]string, change func([]string) []string) []*reading.Reading {
	var in []io.Reader
	for _, l := range texts {
		in = append(in, bytes.NewReader([]byte(strings.Join(change(l), "\n")+"\n")))
	}
	text, err := ReadText(name, in...)
	if err != nil {
		return nil
	}
	return text.All()
}

func asItIs(l []string) []string { return l }

// differences lists the facts that are told otherwise than in the whole text.
func differences(got, want *reading.Reading) (out []string) {
	if got.Verdict != want.Verdict {
		out = append(out, fmt.Sprintf("verdict %s, want %s", got.Verdict, want.Verdict))
	}
	for _, f := range want.Facts {
		v, ok := got.Facts.Get(f.Name)
		a, b := string(v.AppendJSON(nil)), string(f.Value.AppendJSON(nil))
		if (!ok || a != b) && f.Name != "missing" && f.Name != "source" {
			out = append(out, fmt.Sprintf("%s = %.200s, want %.200s", f.Name, a, b))
		}
	}
	return out
}

// TestCasesPastedInManyWays: no way of pasting changes what a text says.
func TestCasesPastedInManyWays(t *testing.T) {
	for id, texts := range casesOfTexts(t) {
		if !sentences(id) {
			continue
		}
		want := readLines(id, texts, asItIs)
		if len(want) != 1 {
			t.Fatalf("%s: %d readings", id, len(want))
		}
		for _, w := range pastes {
			got := readLines(id, texts, w.change)
			if len(got) != 1 {
				t.Errorf("%s, %s: %d readings", id, w.name, len(got))
				continue
			}
			for _, d := range differences(got[0], want[0]) {
				t.Errorf("%s, %s: %s", id, w.name, d)
			}
		}
	}
}

// sentences: texts of allocators and compilers, and figures of a loop. Tables
// and rows are held where their readers are.
func sentences(id string) bool {
	return dumps(id) || strings.Contains(id, "-tf-") || strings.Contains(id, "-eval-grows")
}

// dumps: texts of one failure.
func dumps(id string) bool {
	return strings.Contains(id, "-tf-bfc-") || strings.Contains(id, "-jax-") || strings.Contains(id, "-xla-")
}

// wrapped breaks lines at a width, as a terminal or a mail program does.
func wrapped(width int) func([]string) []string {
	return func(l []string) (out []string) {
		for _, s := range l {
			for len(s) > width {
				out = append(out, s[:width])
				s = s[width:]
			}
			out = append(out, s)
		}
		return out
	}
}

// wrappedAtBlanks breaks lines between words.
func wrappedAtBlanks(width int) func([]string) []string {
	return func(l []string) (out []string) {
		for _, s := range l {
			for len(s) > width {
				i := strings.LastIndexByte(s[:width+1], ' ')
				if i <= 0 || strings.TrimSpace(s[:i]) == "" {
					break
				}
				out = append(out, s[:i])
				s = s[i+1:]
			}
			out = append(out, s)
		}
		return out
	}
}

// TestCasesWrapped: lines that are broken at a width are put together again.
func TestCasesWrapped(t *testing.T) {
	for id, texts := range casesOfTexts(t) {
		if !sentences(id) {
			continue
		}
		want := readLines(id, texts, asItIs)
		for name, change := range map[string]func([]string) []string{
			"80": wrapped(80), "100": wrapped(100), "120": wrapped(120), "132": wrapped(132),
			"words 76": wrappedAtBlanks(76), "words 80": wrappedAtBlanks(80), "words 120": wrappedAtBlanks(120),
		} {
			if name == "words 76" && strings.Contains(id, "-eval-grows") {
				continue // each line is broken at the same place, so that nothing tells how
			}
			got := readLines(id, texts, change)
			if len(got) != 1 {
				t.Errorf("%s, wrapped %s: %d readings", id, name, len(got))
				continue
			}
			for _, d := range differences(got[0], want[0]) {
				t.Errorf("%s, wrapped %s: %s", id, name, d)
			}
		}
	}
}

// weaker are verdicts that a part may give where the whole gives another: less
// is known, and nothing is wrong.
var weaker = map[string]string{"leak_many_equal_chunks": "full", "host_pinned_limit": "full", "padding_expansion": "program_exceeds_device"}

// lesser: a part tells less than the whole, and nothing else.
func lesser(got, want *reading.Reading, d string) bool {
	if strings.Contains(d, " = null, want") {
		return true
	}
	if strings.HasPrefix(d, "verdict ") {
		v := got.Verdict
		return strings.HasPrefix(v, "undetermined") || v == "full_or_fragmented_by_bar" || v == weaker[want.Verdict]
	}
	name, _, _ := strings.Cut(d, " = ")
	switch name {
	case "requested_bytes": // of the rounded text, or up to the granule
		exact, _ := got.Facts.Get("requested_bytes_exact")
		basis, _ := got.Facts.Get("requested_bytes_basis")
		return !exact.Bool || strings.Contains(basis.Text, "255")
	case "in_use_text", "sum_of_listed_chunks", "internal_waste_text", "truncated", "format_variant", "requested_bytes_basis", "requested_bytes_exact",
		"findings", "certain", "assumed", "other_faces", "chunk_list_complete", "peak_buffers", "biggest_peak_buffer_text", "allocations":
		return true
	}
	return strings.HasPrefix(name, "listed_")
}

// TestCasesCut: a part of a text tells the same figures as the whole, or none.
func TestCasesCut(t *testing.T) {
	for id, texts := range casesOfTexts(t) {
		if !dumps(id) {
			continue
		}
		want := readLines(id, texts, asItIs)
		for tenth := 1; tenth < 10; tenth++ {
			for name, change := range map[string]func([]string) []string{
				"head": func(l []string) []string { return l[:len(l)*tenth/10] },
				"tail": func(l []string) []string { return l[len(l)*tenth/10:] },
				"middle": func(l []string) []string {
					return append(append([]string{}, l[:len(l)*tenth/20]...), l[len(l)-len(l)*tenth/20:]...)
				},
			} {
				for _, got := range readLines(id, texts, change) {
					for _, d := range differences(got, want[0]) {
						if !lesser(got, want[0], d) {
							t.Errorf("%s, %s at %d0 %%: %s", id, name, tenth, d)
						}
					}
				}
			}
		}
	}
}

// TestCasesTwice: a text pasted twice tells one failure, or the same one twice.
func TestCasesTwice(t *testing.T) {
	for id, texts := range casesOfTexts(t) {
		if !dumps(id) {
			continue
		}
		want := readLines(id, texts, asItIs)
		got := readLines(id, texts, func(l []string) []string { return append(append([]string{}, l...), l...) })
		if len(got) == 0 || len(got) > 2 {
			t.Errorf("%s, twice: %d readings", id, len(got))
		}
		for _, g := range got {
			for _, d := range differences(g, want[0]) {
				if d != "repeated = 2, want 1" {
					t.Errorf("%s, twice: %s", id, d)
				}
			}
		}
	}
}

// TestTwoProcessesAtOnce: the lines of two programs that one collector took, in
// turns, are told apart.
func TestTwoProcessesAtOnce(t *testing.T) {
	all := casesOfTexts(t)
	for a, one := range all {
		for b, other := range all {
			if a >= b || !strings.Contains(a, "-tf-bfc-") || !strings.Contains(b, "-tf-bfc-") {
				continue
			}
			wantA, wantB := readLines(a, one, asItIs), readLines(b, other, asItIs)
			var mixed []string
			for i := range max(len(one[0]), len(other[0])) {
				if i < len(one[0]) {
					mixed = append(mixed, "worker-0 | "+one[0][i])
				}
				if i < len(other[0]) {
					mixed = append(mixed, "worker-1 | "+other[0][i])
				}
			}
			got := readLines(a+" and "+b, [][]string{mixed}, asItIs)
			if len(got) != 2 {
				t.Errorf("%s and %s: %d readings", a, b, len(got))
				continue
			}
			for _, want := range []*reading.Reading{wantA[0], wantB[0]} {
				best := differences(got[0], want)
				if d := differences(got[1], want); len(d) < len(best) {
					best = d
				}
				for _, d := range best {
					t.Errorf("%s and %s: %s", a, b, d)
				}
			}
		}
	}
}
