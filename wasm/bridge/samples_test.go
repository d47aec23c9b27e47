package bridge

import (
	"bytes"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
)

// TestPlannedLanesAndTheirPool lists the lanes of a planned run: the arena
// right behind the pool that it is a block of, both named for people.
func TestPlannedLanesAndTheirPool(t *testing.T) {
	s := NewSession()
	run(t, s, "planned", strings.Replace(tiny, "mode=graph", "mode=planned", 1))
	ask(t, s, "status")
	var got []string
	for i := range s.lanes {
		name, sub := laneTitle(s.slots[Current].tl, &s.lanes[i])
		got = append(got, name+" "+sub)
	}
	const want = "Memory GPU:0, Addresses GPU:0, Arena memory GPU:0, Arena map GPU:0, Ops GPU:0"
	if list := strings.Join(got, ", "); !strings.HasPrefix(list, want) {
		t.Errorf("lanes %q, want %q first", list, want)
	}
}

// TestSamplesOfACard asks all that can be asked of a timeline of samples alone.
func TestSamplesOfACard(t *testing.T) {
	var file bytes.Buffer
	strs := new(event.Strings)
	w := timeline.NewWriter(&file, timeline.Options{Strings: strs})
	facts := event.Fields{{Key: "name", Value: "Tesla T4 #0"}, {Key: "kind", Value: "card"}}
	w.Emit(&event.Event{Kind: event.DeviceFacts, Text: strs.ID(facts.Encode()), Step: event.NoStep})
	for i := range int64(50) {
		w.Emit(&event.Event{Kind: event.Sample, Time: i * 1e6, Op: strs.ID("card memory used"), Size: (3 + i%2) << 30, Requested: 16 << 30, Step: event.NoStep})
		w.Emit(&event.Event{Kind: event.Sample, Time: i * 1e6, Op: strs.ID("card utilisation"), Size: 57, Requested: 100, Step: event.NoStep})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s := opened(t, file.Bytes())
	ask(t, s, "status")
	ask(t, s, "layout\tsample:0:80")
	_, last := s.slots[Current].span()
	s.Draw(Lanes, 400, 80, 1, 0, last, 0)
	lane := ask(t, s, "at\t3500000")["lanes"].(map[string]any)["sample"].(map[string]any)
	if lane["now"] != "4.00 GiB of 16.00 GiB" || lane["sub"] != "57 % utilisation" {
		t.Errorf("the lane's head says %v", lane)
	}
	hit := ask(t, s, "hover\t100\t60\t12250000")["hit"].(map[string]any)
	if hit["title"] != "card utilisation" {
		t.Errorf("under the pointer lies %v", hit)
	}
	var b bytes.Buffer
	for _, tab := range []string{"live", "chunks", "peak", "oom", "transfers", "compare", "twin", "log"} {
		ask(t, s, "details\t"+tab+"\t3500000\t0\t"+itoa(last)+"\tsample")
		b.Write(s.Ask("details\t" + tab + "\t3500000\t0\t" + itoa(last) + "\tsample"))
	}
	for _, want := range []string{"Tesla T4 #0: card memory used", "Highest samples in 40 parts"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the details say nothing of %q", want)
		}
	}
}
