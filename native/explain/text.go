package explain

import (
	"bufio"
	"fmt"
	"strings"
	"time"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	common "tideline/shared/analysis/reading"
	"tideline/shared/ingest/bfclog"
)

// maxShown is how many failures a terminal report shows in full; a log of a
// retry loop has hundreds of the same kind.
const maxShown = 3

func (rep *report) text(w *bufio.Writer, width int) {
	if rep.saved != nil {
		wrap(w, width, "", rep.savedWords())
		fmt.Fprintln(w)
		rep.readingsText(w, width)
		fmt.Fprintln(w)
	}
	if rep.run != nil {
		rep.runText(w, width)
		rep.findingsText(w, width)
	}
	for i := range rep.shownFailures() {
		if i == maxShown {
			rep.rest(w, width)
			break
		}
		if i > 0 || rep.run != nil {
			fmt.Fprintln(w)
		}
		rep.heading(w, i)
		rep.failures[i].text(w, width)
	}
	if rep.reruns != nil && len(rep.failures) > maxShown {
		rep.reruns.text(w, width)
	}
	if rep.saved == nil {
		rep.readingsText(w, width)
	}
	for _, n := range rep.notices {
		what := "a request that failed at first; no error by itself"
		if n.NotFailure {
			what = "the caller can do without; not an error"
		}
		wrap(w, width, "", fmt.Sprintf("Also %d× from %s: %s asked for %s (%s).", n.Count, lineOf(n.File, n.Line), orUnnamed(n.Allocator), n.Requested.Text, what))
	}
	if rep.cut != "" {
		wrap(w, width, "", "Note: "+rep.cut+".")
	}
}

// rest sums up the failures that are not shown.
func (rep *report) rest(w *bufio.Writer, width int) {
	count := map[analysis.Verdict]int{}
	var order []analysis.Verdict
	for i := maxShown; i < len(rep.failures); i++ {
		v := analysis.Verdict("unreadable")
		if r := rep.failures[i].Reading; r != nil {
			v = r.Verdict
		}
		if count[v] == 0 {
			order = append(order, v)
		}
		count[v]++
	}
	parts := make([]string, len(order))
	for i, v := range order {
		parts[i] = fmt.Sprintf("%d× %s", count[v], lower(common.Phrase(string(v))))
	}
	fmt.Fprintln(w)
	wrap(w, width, "", fmt.Sprintf("And %d more failures: %s. --json lists them all.", len(rep.failures)-maxShown, strings.Join(parts, ", ")))
}

func (rep *report) heading(w *bufio.Writer, i int) {
	f := &rep.failures[i]
	var where string
	if f.recorded == nil {
		where = rep.where(f.file, f.Line, len(rep.failures) > 1)
	} else {
		where = "At " + duration(f.recorded.Time)
		if f.recorded.Step >= 0 {
			// Events count from 0, people from 1.
			where += fmt.Sprintf(", step %d (%d done)", f.recorded.Step+1, f.recorded.Step)
		}
	}
	if f.Reading == nil {
		fmt.Fprintf(w, "%s: out of memory\n", where)
		return
	}
	fmt.Fprintf(w, "%s: %s ran out of memory\n", where, orUnnamed(f.Allocator))
}

func orUnnamed(name string) string {
	if name == "" {
		return "an unnamed allocator"
	}
	return name
}

func duration(n int64) string { return time.Duration(n).Round(time.Microsecond).String() }

func (f *failure) text(w *bufio.Writer, width int) {
	if f.Reading == nil {
		wrap(w, width, "  ", "The record of this failure cannot be read: "+f.recorded.Problem)
		return
	}
	why, open, next := f.words()
	if f.leak != "" {
		next = append([]string{f.leakAdvice()}, next...)
	}
	certain := f.certain()
	fmt.Fprintln(w)
	wrap(w, width, "", f.headline()+": "+why)
	fmt.Fprintln(w)
	f.table(w)
	f.picture(w, width)
	f.holders(w, width)
	list(w, width, pinTitle, f.pinLines())
	list(w, width, "Certain", certain)
	list(w, width, "Not known", open)
	if f.reruns != nil {
		f.reruns.text(w, width)
	}
	if f.replays != nil {
		replaysText(w, width, f.replays)
	}
	if f.reruns == nil || !f.reruns.helped() { // what is verified stands for what is not
		list(w, width, "What to do (not verified by a rerun)", next)
	}
}

// leakAdvice is what to do about a leak before anything else.
func (f *failure) leakAdvice() string {
	return "Find what keeps the results of " + f.culprit + " and let it go; a smaller batch or a larger limit only puts the end off."
}

// headline is the verdict in words; a leak that filled the card goes first.
func (f *failure) headline() string {
	if f.leak != "" {
		return "A leak filled the memory: " + f.leak + " " + common.Phrase(string(f.Verdict))
	}
	return common.Phrase(string(f.Verdict))
}

// lower is a phrase within a sentence.
func lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func list(w *bufio.Writer, width int, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, s := range items {
		wrap(w, width, "  - ", s)
	}
}

// wrap breaks a sentence into lines, the first with the given lead.
func wrap(w *bufio.Writer, width int, lead, s string) {
	line := lead
	for word := range strings.FieldsSeq(s) {
		if line != lead && len([]rune(line))+1+len([]rune(word)) > width {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", len(lead))
			lead = line
		}
		if line != lead {
			line += " "
		}
		line += word
	}
	fmt.Fprintln(w, line)
}

// table lists the amounts, with what is known about each.
func (f *failure) table(w *bufio.Writer) {
	for _, x := range f.figures() {
		if x.Label == "device" {
			fmt.Fprintf(w, "  %-14s %s\n", x.Label, x.Value)
			continue
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-14s %11s  %s", x.Label, x.Value, x.Note), " "))
	}
}

func (f *failure) figures() (out []figure) {
	row := func(name, value, note string) {
		if value != "" || note != "" {
			out = append(out, figure{name, value, note})
		}
	}
	row("asked for", f.asked(), f.askedNote())
	if limit := known(f.Limit.N, f.Limit.Known, f.LimitText); limit != "" {
		row("limit", limit, f.limitNote())
	} else if f.Device != "" {
		row("device", f.Device, "")
	}
	if f.Pool.Known {
		note := ""
		if f.Available.Known && f.Available.N >= 256 {
			note = event.FormatBytes(f.Available.N) + " more allowed"
		}
		switch f.Growth {
		case bfclog.Yes:
			note = join(note, "grows on demand")
		case bfclog.No:
			note = join(note, "taken at once")
		default:
		}
		row("pool", event.FormatBytes(f.Pool.N), note)
	}
	peak := ""
	if p := known(f.Peak.N, f.Peak.Known, f.PeakText); p != "" {
		peak = "peak " + p
	}
	row("in use", known(f.InUse.N, f.InUse.Known, f.InUseText), peak)
	free := ""
	if f.FreeIsOfLimit {
		free = "up to the limit"
	}
	row("free", known(f.Free.N, f.Free.Known, ""), free)
	row("largest hole", known(f.LargestFree.N, f.LargestFree.Known, f.LargestFreeText), f.holeNote())
	if f.HasFragmentation && f.Free.N > 0 {
		row("fragmentation", fmt.Sprintf("%.1f %%", 100*f.Fragmentation), "of the free bytes lie outside the largest hole")
	}
	return out
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

func known(n int64, ok bool, text string) string {
	if ok {
		return event.FormatBytes(n)
	}
	return spaced(text)
}

// spaced writes "132.16MiB" as "132.16 MiB".
func spaced(text string) string {
	i := strings.IndexAny(text, "KMGTPEB")
	if i <= 0 {
		return text
	}
	return text[:i] + " " + text[i:]
}

func (f *failure) asked() string {
	if !f.Requested.Known {
		return "unknown"
	}
	if !f.Exact {
		return spaced(f.RequestedText)
	}
	return event.FormatBytes(f.Requested.N)
}

func (f *failure) askedNote() string {
	var parts []string
	if f.Requested.Known && f.Exact && f.Requested.N >= 1024 {
		parts = append(parts, fmt.Sprintf("%d bytes", f.Requested.N))
	}
	if f.Shape != nil {
		parts = append(parts, "tensor "+f.DType+shape(f.Shape))
	}
	if by := f.by(); by != "" {
		parts = append(parts, "by "+by)
	}
	return strings.Join(parts, ", ")
}

// by is who asked, as far as the input names anybody.
func (f *failure) by() string {
	switch {
	case f.ByOp != "":
		return "op " + f.ByOp
	case f.recorded != nil && f.Op != "":
		return "op " + f.Op
	case f.Node != "" && f.Op != "" && f.Node != f.Op:
		return f.Op + " op " + f.Node
	case f.Node != "":
		return f.Node
	case f.Op != "":
		return f.Op + " op"
	}
	return ""
}

func shape(dims []int64) string {
	return strings.ReplaceAll(fmt.Sprint(dims), " ", ",")
}

func (f *failure) limitNote() string {
	if f.Device != "" {
		return "of the allocator, on " + f.Device
	}
	return ""
}

func (f *failure) holeNote() string {
	note := ""
	if f.LargestFreeAt != 0 {
		note = fmt.Sprintf("at %x", f.LargestFreeAt)
	}
	if f.LargestFree.Known && f.Rounded.Known && f.Rounded.N > f.LargestFree.N {
		note = join(note, event.FormatBytes(f.Rounded.N-f.LargestFree.N)+" too small")
	}
	return note
}

// holders lists who holds the memory: by category and op where the run
// recorded it, by size where only a summary is there.
func (f *failure) holders(w *bufio.Writer, width int) {
	if r := f.recorded; r != nil {
		heldText(w, "Held at that moment, by category", r.ByKind, 6)
		heldText(w, "and by op", r.ByOp, 6)
		ledgerText(w, r.Ledger, "")
		return
	}
	heldText(w, "Held at that moment, by op", f.Holders, 6)
	for i, u := range f.Usage {
		if i == 0 {
			fmt.Fprintln(w, "\nHeld, as the error reports it")
		}
		if i == 6 {
			break
		}
		fmt.Fprintf(w, "  %11s  %s\n", spaced(u.Size.Text), u.Node)
	}
	if share, ok := f.DominantShare(); ok && share >= 0.25 {
		fmt.Fprintln(w)
		wrap(w, width, "", fmt.Sprintf("Held: %.1f %% of what is in use is %s of %s (%d bytes).",
			100*share, plural(f.DominantCount.N, "chunk"), event.FormatBytes(f.DominantSize.N), f.DominantSize.N))
	}
}

func heldText(w *bufio.Writer, title string, list []analysis.Held, most int) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for i, h := range list {
		if i == most {
			break
		}
		fmt.Fprintf(w, "  %11s  %s (%s)\n", event.FormatBytes(h.Bytes), h.Name, plural(h.Blocks, "block"))
	}
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// runText sums the run up before its failures.
func (rep *report) runText(w *bufio.Writer, width int) {
	s := rep.run
	end := "it was cut off before its end"
	if s.Ended {
		end = "ended: " + s.End.String()
	}
	fmt.Fprintf(w, "%s: %s in %s, %s; %s\n\n", rep.name, plural(s.Steps, "step"), duration(s.Nanos), plural(s.Events, "event"), end)
	if s.Ended && s.EndText != "" && s.End != event.EndOutOfMemory && s.End != event.EndDone {
		wrap(w, width, "  ", "Why: "+s.EndText)
		fmt.Fprintln(w)
	}
	for i := range s.Allocators {
		a := &s.Allocators[i]
		if a.Allocs == 0 && a.PeakReserved == 0 {
			continue
		}
		when := "at " + duration(a.PeakAt)
		if a.Reported {
			when = "as the log tells"
		}
		if a.Within != "" {
			wrap(w, width, "  ", fmt.Sprintf("%s: within %s, whose figures contain it; its tensors take %s at most", a.Name, a.Within, event.FormatBytes(a.PeakInUse)))
			continue
		}
		line := fmt.Sprintf("%s on %s: peak in use %s (%s), reserved %s", a.Name, a.Device,
			event.FormatBytes(a.PeakInUse), when, event.FormatBytes(a.PeakReserved))
		if a.Limit.Known {
			line += " of a limit of " + event.FormatBytes(a.Limit.N)
		}
		wrap(w, width, "  ", line+peakParts(a)+rep.costs(a))
	}
	for _, t := range s.Transfers {
		wrap(w, width, "  ", fmt.Sprintf("transfers, %s: %d, %s", t.Cause, t.Count, event.FormatBytes(t.Bytes)))
	}
	if s.Stalls.Count > 0 {
		wrap(w, width, "  ", fmt.Sprintf("waiting for input: %d×, %s", s.Stalls.Count, duration(s.Stalls.Nanos)))
	}
	if s.Lost > 0 {
		wrap(w, width, "  ", fmt.Sprintf("%d events are missing; the figures are those of the rest", s.Lost))
	}
	if len(rep.failures) == 0 {
		wrap(w, width, "  ", "No request failed for lack of memory.")
		ledgerText(w, rep.fullest, atPeak)
	}
}

// peakParts names what the peak consisted of, the largest three categories.
func peakParts(a *analysis.AllocatorSummary) string {
	type part struct {
		c event.Category
		n int64
	}
	var parts []part
	for c, n := range a.PeakByCategory {
		if n > 0 {
			parts = append(parts, part{event.Category(c), n})
		}
	}
	for i := range parts { // few: the simplest sort, stable in the category's order
		for j := i; j > 0 && parts[j].n > parts[j-1].n; j-- {
			parts[j], parts[j-1] = parts[j-1], parts[j]
		}
	}
	var words []string
	for i, p := range parts {
		if i == 3 {
			break
		}
		words = append(words, p.c.String()+" "+event.FormatBytes(p.n))
	}
	if len(words) == 0 {
		return ""
	}
	return "; at the peak " + strings.Join(words, ", ")
}
