package explain

import (
	"bufio"
	"fmt"

	"tideline/protocol/event"
	"tideline/shared/analysis/finding"
	"tideline/shared/analysis/ledger"
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

const atPeak = " at the peak"
