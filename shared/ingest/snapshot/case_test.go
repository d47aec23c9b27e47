package snapshot

import (
	"bytes"
	"os"
	"testing"

	"tideline/shared/golden"
)

var caseIDs = []string{
	"24-torch-snapshot-2025-small-model", "25-torch-snapshot-2025-llm-full-step", "26-torch-snapshot-2024-no-timestamps",
}

func readCase(t *testing.T, id string) (*Snapshot, []byte) {
	t.Helper()
	inputs, description := golden.Case(t, id)
	for _, b := range inputs {
		s, err := Read(bytes.NewReader(b), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s, description
	}
	t.Fatal("no input")
	return nil, nil
}

func TestRealSnapshotsGiveTheExpectedNumbers(t *testing.T) {
	for _, id := range caseIDs {
		t.Run(id, func(t *testing.T) {
			s, description := readCase(t, id)
			r := s.Reading()
			golden.CheckCase(t, description, r.AppendJSON(nil))
			if s.Skipped() != 0 || s.Stacks() == 0 {
				t.Errorf("%d entries skipped, %d stacks", s.Skipped(), s.Stacks())
			}
		})
	}
}

// TestTheKeptCase is for machines that have only the repository.
func TestTheKeptCase(t *testing.T) {
	const dir = "testdata/cases/24/"
	description, err := os.ReadFile(dir + "case.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "snapshot.pickle")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Read(bytes.NewReader(b), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := x.Reading()
	golden.CheckCase(t, description, r.AppendJSON(nil))
}
