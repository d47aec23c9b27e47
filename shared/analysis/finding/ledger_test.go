package finding_test

import (
	"os"
	"testing"

	"tideline/protocol/api/workfile"
	"tideline/protocol/event"
	"tideline/shared/analysis"
	"tideline/shared/analysis/finding"
	"tideline/shared/analysis/ledger"
	"tideline/shared/launch"
	"tideline/shared/store"
)

// TestTheLedgerOfAStoreIsThatOfTheEvents: the page and the command tell the
// same of a failure, and of no row that one has the other has none.
func TestTheLedgerOfAStoreIsThatOfTheEvents(t *testing.T) {
	for _, change := range []string{"", "devices.0.allocator=torch"} {
		text, err := os.ReadFile("../../../examples/oom-batch.yaml")
		if err != nil {
			t.Fatal(err)
		}
		w, problems := workfile.Parse(text)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if change != "" {
			w.Devices[0].Allocator = "torch"
		}
		strs := new(event.Strings)
		sums, tl := analysis.NewTimeline(strs), store.New(strs)
		var batch []event.Event
		if _, err := launch.Run(*w, launch.Options{Strings: strs, Sink: event.SinkFunc(func(e *event.Event) {
			sums.Emit(e)
			batch = append(batch, *e)
		})}); err != nil {
			t.Fatal(err)
		}
		tl.Append(batch)
		want := sums.Summary().Failures
		if len(want) != len(tl.OOMs()) || len(want) == 0 {
			t.Fatalf("%d failures, in the store %d", len(want), len(tl.OOMs()))
		}
		for i := range tl.OOMs() {
			o := &tl.OOMs()[i]
			got := finding.Ledger(tl, tl.Pools()[o.Pool], o.Moment, o)
			if got == nil || want[i].Ledger == nil || *got != *want[i].Ledger {
				t.Errorf("%q, failure %d: %+v, want %+v", change, i, got, want[i].Ledger)
				continue
			}
			if n := got.Row(ledger.Outside); !n.Known || n.N != 8<<20 {
				t.Errorf("%q: the context is %+v", change, n)
			}
		}
	}
}
