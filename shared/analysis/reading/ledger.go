package reading

import "tideline/shared/analysis/ledger"

// Ledger is where a device's memory is, as the report for programs has it; null
// for nil.
func Ledger(l *ledger.Ledger) Value {
	if l == nil {
		return Null()
	}
	var f Facts
	f.Int("device_total_bytes", l.Total)
	for r := range ledger.Row(ledger.NumRows) {
		a := l.Row(r)
		f.IntIf(r.Key(), a.N, a.Known)
	}
	f.Bool("rounded", l.Rounded)
	return Object(f)
}
