package ingest

import (
	"fmt"
	"strings"
	"testing"

	"tideline/protocol/event"
)

// TestFiguresOverTime: what repeats in a text is told as samples, at the times
// of the text or else at its steps and rows.
func TestFiguresOverTime(t *testing.T) {
	type sample struct {
		dev  event.DeviceID
		time int64
		name string
		size int64
		step int32
	}
	for _, c := range []struct {
		name, text string
		over, note bool
		want       []sample
	}{
		{"steps without times", "[10/50] max mem: 100\n[20/50] max mem: 110\n[30/50] max mem: 130\n", true, true, []sample{
			{0, 10e6, "max mem", 100 << 20, 10}, {0, 20e6, "max mem", 110 << 20, 20}, {0, 30e6, "max mem", 130 << 20, 30},
		}},
		{"steps with times", "2024-03-01 12:00:00,500 step 1 gpu_mem: 1.5 GiB\n2024-03-01 12:00:02,500 step 2 gpu_mem: 2.5 GiB\n2024-03-01 12:00:03,000 step 3 gpu_mem: 2 GiB\n", true, false, []sample{
			{0, 0, "gpu_mem", 3 << 29, 1}, {0, 2e9, "gpu_mem", 5 << 29, 2}, {0, 25e8, "gpu_mem", 2 << 30, 3},
		}},
		{"a clock set back", "2024-03-01 12:00:05 step 1 gpu_mem: 1 GiB\n2024-03-01 12:00:02 step 2 gpu_mem: 2 GiB\n2024-03-01 12:00:03 step 3 gpu_mem: 2 GiB\n", true, true, []sample{
			{0, 1e6, "gpu_mem", 1 << 30, 1}, {0, 2e6, "gpu_mem", 2 << 30, 2}, {0, 3e6, "gpu_mem", 2 << 30, 3},
		}},
		{"a query that repeats", "timestamp, index, memory.used [MiB], memory.total [MiB]\n2024/03/01 12:00:00.000, 0, 10 MiB, 100 MiB\n2024/03/01 12:00:00.250, 1, 20 MiB, 100 MiB\n2024/03/01 12:00:05.000, 0, 30 MiB, 100 MiB\n2024/03/01 12:00:05.250, 1, 40 MiB, 100 MiB\n", true, false, []sample{
			{0, 0, "memory.used", 10 << 20, event.NoStep}, {1, 25e7, "memory.used", 20 << 20, event.NoStep}, {0, 5e9, "memory.used", 30 << 20, event.NoStep}, {1, 525e7, "memory.used", 40 << 20, event.NoStep},
		}},
		{"dmon", "# gpu     fb   bar1\n# Idx     MB     MB\n    0    100      2\n    0    120      2\n", true, true, []sample{
			{0, 0, "memory.used", 100 << 20, event.NoStep}, {0, 1e9, "memory.used", 120 << 20, event.NoStep},
		}},
		{"dmon with dates", "#Date       Time        gpu     fb\n#YYYYMMDD   HH:MM:SS    Idx     MB\n 20240301   12:00:00      0    100\n 20240301   12:00:07      0    120\n", true, false, []sample{
			{0, 0, "memory.used", 100 << 20, event.NoStep}, {0, 7e9, "memory.used", 120 << 20, event.NoStep},
		}},
		{"one state", "index, memory.used [MiB], memory.total [MiB]\n0, 10 MiB, 100 MiB\n", false, false, nil},
	} {
		in, err := Open(c.name, strings.NewReader(c.text), Limits{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := in.Text.OverTime(); got != c.over {
			t.Errorf("%s: over time %v", c.name, got)
		}
		_, r := told(t, in)
		var got []sample
		note := false
		for _, e := range r.events {
			switch text := r.strs.At(e.Text); {
			case e.Kind == event.Sample && c.over:
				got = append(got, sample{e.Device, e.Time, r.strs.At(e.Op), e.Size, e.Step})
			case e.Kind == event.Log:
				note = note || strings.Contains(text, "tells no times")
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || note != c.note {
			t.Errorf("%s: %v, note %v, want %v", c.name, got, note, c.want)
		}
	}
}

// TestLongSeriesAreThinned: a monitor may run for weeks.
func TestLongSeriesAreThinned(t *testing.T) {
	var b strings.Builder
	b.WriteString("# gpu     fb   bar1\n# Idx     MB     MB\n")
	for i := range 50_000 {
		fmt.Fprintf(&b, "0 %d 2\n", i)
	}
	in, err := Open("x", strings.NewReader(b.String()), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	_, r := told(t, in)
	n, last := 0, event.Event{}
	for _, e := range r.events {
		if e.Kind == event.Sample {
			if n++; e.Size>>20 != e.Time/1e9 {
				t.Fatalf("row %d tells %d MiB", e.Time/1e9, e.Size>>20)
			}
			last = e
		}
	}
	if n < 4000 || n > 8192 || last.Time < 49_900e9 {
		t.Errorf("%d points up to %d", n, last.Time)
	}
}
