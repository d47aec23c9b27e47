package synthetic_test

import (
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/protocol/synthetic"
)

func TestRunsAreConsistentAndRepeatable(t *testing.T) {
	for _, o := range []synthetic.Options{
		{Events: 30_000, Seed: 1},
		{Events: 30_000, Seed: 2, Dynamic: true},
		{Events: 30_000, Seed: 3, Dynamic: true, Devices: 3, Layers: 7},
	} {
		var sums [2]uint64
		for i := range sums {
			var strings event.Strings
			h := eventhash.New(&strings)
			kinds := map[event.Kind]int{}
			live := map[uint64]event.Event{}
			last := int64(0)
			n := synthetic.Generate(o, &strings, event.SinkFunc(func(e *event.Event) {
				h.Emit(e)
				kinds[e.Kind]++
				if e.Time < last {
					t.Fatalf("time goes back from %d to %d", last, e.Time)
				}
				last = e.Time
				switch e.Kind {
				case event.Alloc:
					if old, taken := live[e.Address]; taken || e.Address == 0 {
						t.Fatalf("allocated over %+v", old)
					}
					live[e.Address] = *e
				case event.Free:
					if of := live[e.Address]; of.Size != e.Size || of.Device != e.Device {
						t.Fatalf("%+v frees %+v", e, of)
					}
					delete(live, e.Address)
				default: // the other kinds hold no memory
				}
			}))
			if n < o.Events || n > o.Events+10_000 {
				t.Errorf("%d events, %d asked for", n, o.Events)
			}
			for _, k := range []event.Kind{event.Settings, event.DeviceFacts, event.RegionAdd, event.Alloc, event.TransferEnd, event.StallBegin, event.Metric, event.End} {
				if kinds[k] == 0 {
					t.Errorf("no event of kind %s", k)
				}
			}
			if kinds[event.Alloc]-kinds[event.Free] != len(live) {
				t.Errorf("%d allocs, %d frees, %d live", kinds[event.Alloc], kinds[event.Free], len(live))
			}
			sums[i] = h.Sum64()
		}
		if sums[0] != sums[1] {
			t.Errorf("two runs of %+v differ", o)
		}
	}
}

func BenchmarkGenerateMillion(b *testing.B) {
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		var strings event.Strings
		n := synthetic.Generate(synthetic.Options{Events: 1_000_000, Dynamic: true}, &strings, event.SinkFunc(func(*event.Event) {}))
		events += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
}
