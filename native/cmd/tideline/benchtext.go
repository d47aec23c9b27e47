package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"tideline/native/bench"
)

// printBench prints the lines as a table, group by group.
func printBench(c *console, lines []bench.Line) {
	var t table
	t.row("what", "time", "heap allocations", "ratio", "note")
	group := ""
	for i := range lines {
		l := &lines[i]
		if l.Group != group {
			group = l.Group
			t.row("")
			t.row(group)
		}
		x := cells(l)
		t.row("  "+x[0], x[1], x[2], x[3], x[4])
	}
	t.print(c)
}

// cells are what, time, heap allocations, ratio and note of a line.
func cells(l *bench.Line) [5]string {
	out := [5]string{l.What, "", "", "", l.Note}
	if l.Per != "" {
		out[1] = took(l.Nanos) + " a " + l.Per
		if strings.ContainsAny(l.Per[:1], "aeio") {
			out[1] = took(l.Nanos) + " an " + l.Per
		}
	}
	switch {
	case l.Allocs >= 0.005:
		out[2] = fmt.Sprintf("%.2f", l.Allocs)
	case l.Allocs >= 0:
		out[2] = "0"
	}
	if l.To != "" {
		out[3] = fmt.Sprintf("%.2f of %s", l.Ratio, l.To)
	}
	return out
}

// took is a duration in nanoseconds, in the unit that suits it.
func took(nanos float64) string {
	switch {
	case nanos >= 1e9:
		return fmt.Sprintf("%.2f s", nanos/1e9)
	case nanos >= 1e6:
		return fmt.Sprintf("%.2f ms", nanos/1e6)
	case nanos >= 1e4:
		return fmt.Sprintf("%.1f µs", nanos/1e3)
	}
	return fmt.Sprintf("%.1f ns", nanos)
}

// The lines between which a document has the tables.
const (
	benchBegin = "<!-- made by tideline bench -->\n"
	benchEnd   = "<!-- end of tideline bench -->\n"
)

// writeInto renews the tables of a document.
func writeInto(path string, lines []bench.Line) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	before, rest, ok := strings.Cut(string(text), benchBegin)
	_, after, ok2 := strings.Cut(rest, benchEnd)
	if !ok || !ok2 {
		return fmt.Errorf("write the tables into %s: it has no place for them, which is between %q and %q", path, benchBegin, benchEnd)
	}
	doc := before + benchBegin + "\n" + circumstances(time.Now()) + "\n" + markdown(lines) + benchEnd + after
	if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
		return fmt.Errorf("write the tables: %w", err)
	}
	return nil
}

// circumstances says when and on what was measured, and how busy that was.
func circumstances(now time.Time) string {
	s := fmt.Sprintf("%s, %s on %s/%s, %d cores", now.UTC().Format("2006-01-02 15:04 UTC"), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, name, ok := strings.Cut(string(info), "model name\t: "); ok {
			name, _, _ = strings.Cut(name, "\n")
			s += " of " + name
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(load)); len(f) >= 3 {
			s += fmt.Sprintf("; load at the end %s, %s, %s over 1, 5 and 15 minutes", f[0], f[1], f[2])
		}
	}
	return s + ".\n"
}

// markdown is the lines as a table for each group.
func markdown(lines []bench.Line) string {
	var b strings.Builder
	group := ""
	for i := range lines {
		l := &lines[i]
		if l.Group != group {
			group = l.Group
			fmt.Fprintf(&b, "### %s\n\n| what | time | heap allocations | ratio | note |\n| --- | --- | --- | --- | --- |\n", strings.ToUpper(group[:1])+group[1:])
		}
		x := cells(l)
		fmt.Fprintf(&b, "| %s |\n", strings.Join(x[:], " | "))
		if i+1 == len(lines) || lines[i+1].Group != group {
			b.WriteString("\n")
		}
	}
	return b.String()
}
