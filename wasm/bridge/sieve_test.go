package bridge

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tideline/shared/draw"
)

// sifted takes a filter in until everything was looked at.
func sifted(t *testing.T, s *Session, text string) (slices int) {
	t.Helper()
	s.Ask("sift\t" + text)
	for {
		slices++
		var a struct {
			More    bool
			Changed bool
			Share   int
		}
		if err := json.Unmarshal(s.Ask("sifting"), &a); err != nil {
			t.Fatal(err)
		}
		if !a.More {
			if a.Share != 100 {
				t.Errorf("%q: done at %d %%", text, a.Share)
			}
			return slices
		}
		if slices > 10_000 {
			t.Fatalf("%q is never done", text)
		}
	}
}

// heads is what the lane of the main pool tells at an instant.
func heads(t *testing.T, s *Session, at int64) map[string]any {
	t.Helper()
	var a struct{ Lanes map[string]map[string]any }
	if err := json.Unmarshal(s.Ask("at\t"+itoa(at)+"p"), &a); err != nil {
		t.Fatal(err)
	}
	return a.Lanes["memory-"+itoa(int64(s.slots[Current].mainPool().Index))]
}

func TestTheLanesFollowTheFilter(t *testing.T) {
	s := opened(t, made(t, 60_000))
	p := s.slots[Current].mainPool()
	first, last := s.slots[Current].span()
	at, _ := p.PeakPoint(first, last+1)
	picture := func() []byte {
		s.Draw(Lanes, 968, 500, 1, first, last, 0)
		return bytes.Clone(s.Pixels(Lanes))
	}
	plain := picture()
	if heads(t, s, at)["passes"] != nil {
		t.Error("without a filter something passes")
	}
	s.Ask("sift\tkernel")
	if heads(t, s, at)["passes"] != "" {
		t.Error("before the filter looked it tells what passes")
	}
	sifted(t, s, "BLOCK1")
	filtered := picture()
	if bytes.Equal(plain, filtered) {
		t.Error("the filter changes no picture")
	}
	// What the head says is what the table says.
	head, _ := heads(t, s, at)["passes"].(string)
	var live struct {
		Figures []struct{ Name, Value string }
	}
	if err := json.Unmarshal(s.Ask("details\tlive\t"+itoa(at)+"p\t0\t1\t\tBLOCK1"), &live); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, f := range live.Figures {
		if f.Name == "Pass the filter" {
			want = f.Value
		}
	}
	if want == "" || !strings.HasPrefix(head, want+" of ") {
		t.Errorf("the head says %q, the table %q", head, want)
	}
	// Dropped, all is as it was.
	sifted(t, s, "")
	if !bytes.Equal(picture(), plain) {
		t.Error("a dropped filter leaves something behind")
	}
}

func TestAHitTellsWhetherItPasses(t *testing.T) {
	s := opened(t, made(t, 3000))
	first, last := s.slots[Current].span()
	s.Draw(Lanes, 968, 500, 1, first, last, 0)
	var lane *draw.Lane
	for i := range s.lanes {
		if s.lanes[i].Kind == draw.AddressLane && s.lanes[i].Pool == s.slots[Current].mainPool().Index {
			lane = &s.lanes[i]
		}
	}
	count := func(word string) (n int) {
		for x := 4; x < 960; x += 12 {
			for y := lane.Y + lane.H - 2; y > lane.Y; y -= 6 {
				if strings.Contains(string(s.Ask("hover\t"+itoa(int64(x))+"\t"+itoa(int64(y))+"\t0")), `"filter","`+word+`"`) {
					n++
				}
			}
		}
		return n
	}
	if count("matches")+count("does not match") != 0 {
		t.Error("without a filter hits tell of it")
	}
	s.Ask("sift\tblock1")
	s.Draw(Lanes, 968, 500, 1, first, last, 0)
	if yes, no := count("matches"), count("does not match"); yes == 0 || no == 0 {
		t.Errorf("%d hits match, %d do not", yes, no)
	}
}

// A filter holds for what comes later, and for another timeline.
func TestTheFilterHoldsForWhatComesLater(t *testing.T) {
	file := made(t, 60_000)
	s := NewSession()
	s.Ask("reset\t0\tfile\tlive")
	s.Ask("sift\tblock1")
	s.Ask("sifting") // nothing is there yet
	half := len(file) / 2
	if err := s.Feed(Current, file[:half]); err != nil {
		t.Fatal(err)
	}
	s.Ask("status")
	sifted(t, s, "block1")
	if err := s.Feed(Current, file[half:]); err != nil {
		t.Fatal(err)
	}
	s.Ask("finish\t0")
	s.Ask("status")
	sifted(t, s, "block1")
	fresh := opened(t, file)
	sifted(t, fresh, "block1")
	first, last := fresh.slots[Current].span()
	for i := range int64(20) {
		at := first + (last-first)*i/20
		if a, b := heads(t, s, at)["passes"], heads(t, fresh, at)["passes"]; a != b || a == "" {
			t.Fatalf("at %d: %v, want %v", at, a, b)
		}
	}
	s.Ask("reset\t0\tanother\tfile")
	if err := s.Feed(Current, made(t, 3000)); err != nil {
		t.Fatal(err)
	}
	s.Ask("status")
	sifted(t, s, "block1")
	if got, _ := heads(t, s, 0)["passes"].(string); got == "" {
		t.Error("the filter is forgotten with another timeline")
	}
}
