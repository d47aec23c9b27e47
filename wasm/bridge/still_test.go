package bridge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openExample opens one of the files that come with Tideline.
func openExample(t *testing.T, s *Session, name string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "examples", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	openLogAs(t, s, name, string(b), "file")
}

// TestASingleMomentIsDrawnAcross: a profile of an instant fills the lanes, and
// says nothing of free memory that it does not know.
func TestASingleMomentIsDrawnAcross(t *testing.T) {
	s := NewSession()
	openExample(t, s, "jax-memory.prof")
	st := ask(t, s, "status")
	slot := st["slots"].([]any)[0].(map[string]any)
	if slot["first"] != slot["last"] {
		t.Fatalf("the profile lasts from %v to %v", slot["first"], slot["last"])
	}
	at := ask(t, s, "at\t0")["lanes"].(map[string]any)
	for key, lane := range at {
		l := lane.(map[string]any)
		if strings.HasPrefix(key, "address") && (l["sub"] != "free memory is not told" || !strings.HasSuffix(l["now"].(string), " blocks")) {
			t.Errorf("%s: %v", key, l)
		}
	}
	chunks := ask(t, s, "details\tchunks\t0\t0\t1\t\t")
	if _, ok := chunks["strip"]; ok || !strings.Contains(chunks["text"].(string), "nothing can be said of holes") {
		t.Errorf("the chunk map says %v", chunks)
	}
}

// TestWhatNamesNoWorkloadIsComparedWithASecondFile: there is nothing to change
// and rerun, whatever settings of an allocator the file tells.
func TestWhatNamesNoWorkloadIsComparedWithASecondFile(t *testing.T) {
	for _, name := range []string{"small-model.pickle", "llm-step.pickle.gz", "rmm.csv"} {
		s := NewSession()
		openExample(t, s, name)
		if text := ask(t, s, "details\tcompare\t0\t0\t1\t\t")["text"].(string); !strings.Contains(text, "two files at once") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// TestBlocksFromBeforeTheRecording are counted apart from those without a stack.
func TestBlocksFromBeforeTheRecording(t *testing.T) {
	s := NewSession()
	openExample(t, s, "llm-step.pickle.gz")
	_, last := s.slots[Current].tl.Span()
	before := ask(t, s, "flame\tat\t"+itoa(last)+"\t0\t"+itoa(last)+"\t\t")["before"].([]any)
	if before[1].(float64) != 616 {
		t.Errorf("%v blocks were there before, want 616", before)
	}
}

// TestRowsAreNamedWithinTheirLane: their places are from the lane's upper edge.
func TestRowsAreNamedWithinTheirLane(t *testing.T) {
	s := NewSession()
	openExample(t, s, "alexnet.xplane.pb.gz")
	ask(t, s, "status") // which lists the lanes
	for i := range s.lanes {
		s.lanes[i].Y, s.lanes[i].H = 100*i, 90
	}
	named := 0
	for _, lane := range ask(t, s, "scales\t0\t1000")["lanes"].([]any) {
		for _, row := range lane.(map[string]any)["rows"].([]any) {
			named++
			if y := row.(map[string]any)["y"].(float64); y < 0 || y >= 90 {
				t.Errorf("%v lies outside of its lane", row)
			}
		}
	}
	if named == 0 {
		t.Error("no row has a name")
	}
}
