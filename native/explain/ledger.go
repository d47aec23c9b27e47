package explain

import (
	"bufio"
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/finding"
	"tideline/shared/analysis/ledger"
	"tideline/shared/analysis/pins"
)

// keepLedgers notes where the memory of each allocator's card was at its peak.
func (rep *report) keepLedgers() {
	first, last := rep.tl.Span()
	most := int64(0)
	for _, p := range rep.tl.Pools() {
		at, bytes := p.PeakPoint(first, last+1)
		l := finding.Ledger(rep.tl, p, p.Fullest(at), nil)
		if l == nil || bytes == 0 {
			continue
		}
		if rep.ledgers == nil {
			rep.ledgers = map[event.AllocatorID]*ledger.Ledger{}
		}
		rep.ledgers[p.Allocator] = l
		if bytes > most {
			most, rep.fullest = bytes, l
		}
	}
}

// costs is what an allocator of a card held beyond what was asked for at most.
func (rep *report) costs(a *analysis.AllocatorSummary) string {
	if rep.ledgers[a.ID] == nil || a.Cost() < a.PeakReserved/100 {
		return ""
	}
	return fmt.Sprintf("; %s were asked for at most, the other %s are the allocator's cost", event.FormatBytes(a.Floor), event.FormatBytes(a.Cost()))
}

// ledgerText says where all of a card's memory was.
func ledgerText(w *bufio.Writer, l *ledger.Ledger, when string) {
	if l == nil {
		return
	}
	fmt.Fprintf(w, "\n%s%s\n", l.Title(), when)
	for _, x := range l.Lines() {
		fmt.Fprintf(w, "  %11s  %s\n", event.FormatBytes(x.Bytes), x.Name)
	}
}

// ledgerTable is the same on the page.
func ledgerTable(l *ledger.Ledger, when string) heldTable {
	t := heldTable{Title: l.Title() + when}
	for _, x := range l.Lines() {
		t.Rows = append(t.Rows, heldRow{Name: x.Name, Bytes: event.FormatBytes(x.Bytes), Width: int(100 * max(x.Bytes, 0) / l.Total)})
	}
	return t
}

// pins are the regions that little keeps.
func (f *failure) pins() []pins.Pin {
	if f.recorded != nil {
		return f.recorded.Pins
	}
	return f.Pins()
}

// pinLines tell of those that keep most, where the pool is in pieces for it.
func (f *failure) pinLines() (out []string) {
	list := f.pins()
	if f.Verdict != analysis.Fragmented && f.Verdict != analysis.OtherProcess || pins.Idle(list) < f.Pool.N/50 {
		return nil
	}
	for i := range list {
		if i == mostPins {
			break
		}
		out = append(out, list[i].Line())
	}
	return out
}

const (
	mostPins = 4
	pinTitle = "Regions kept by few bytes, which can neither be given back nor used as one"
)

const atPeak = " at the peak"
