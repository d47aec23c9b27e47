package rerun

import (
	"strings"
	"testing"

	"tideline/protocol/event"
)

// asked is all pieces of an answer, as fields.
func asked(t *testing.T, s *Session, text string) (out []event.Fields) {
	t.Helper()
	if wrong := s.Ask(text); wrong != "" {
		t.Fatal(wrong)
	}
	for {
		piece := s.Next()
		if piece == "" {
			return out
		}
		f, err := event.ParseFields(piece)
		if err != nil {
			t.Fatalf("%v in %q", err, piece)
		}
		out = append(out, f)
	}
}

// workloadOf is a demo's workload.
func workloadOf(t *testing.T, id string) string {
	t.Helper()
	for _, d := range demos {
		if d.id == id {
			return d.fields
		}
	}
	t.Fatalf("no demo %s", id)
	return ""
}

func TestWhatWouldHaveHelped(t *testing.T) {
	for id, want := range map[string]struct{ finding, helps string }{
		"leak":           {"leak", "keep="},
		"wasteful-dtype": {"wasteful_dtype", "train.precision=float32"},
		"oom-batch":      {"out_of_memory", "train.microbatches=2"},
		"stall":          {"input_bound", "input.map.parallel=8"},
		"transfers":      {"copies", "placement.rules=none"},
	} {
		var s Session
		list := asked(t, &s, workloadOf(t, id))
		first, last := list[0], list[len(list)-1]
		named := false
		for _, f := range first {
			named = named || strings.HasSuffix(f.Key, ".id") && f.Value == want.finding
		}
		if !named || last.Text("over") != "true" {
			t.Errorf("%s: begins %v, ends %v", id, first, last)
		}
		helps := false
		for _, f := range list[1 : len(list)-1] {
			if f.Text("helps") == "true" && f.Text("passed") != "true" {
				t.Errorf("%s: %s is offered and fails", id, f.Text("set"))
			}
			helps = helps || f.Text("helps") == "true" && f.Text("set") == want.helps
		}
		if !helps {
			t.Errorf("%s: %s is not among what helps: %v", id, want.helps, list)
		}
		if s.Next() != "" {
			t.Errorf("%s: there is more after the end", id)
		}
	}
}

func TestAnotherQuestionEndsTheFirst(t *testing.T) {
	var s Session
	if s.Next() != "" {
		t.Error("an answer to no question")
	}
	if wrong := s.Ask("model=abacus\n"); !strings.Contains(wrong, "abacus") {
		t.Errorf("%q", wrong)
	}
	if wrong := s.Ask(workloadOf(t, "leak")); wrong != "" {
		t.Fatal(wrong)
	}
	s.Next()
	list := asked(t, &s, workloadOf(t, "stall"))
	if !strings.Contains(list[0].Encode(), "input_bound") {
		t.Errorf("%v", list[0])
	}
}
