package xspace

import (
	"bytes"
	"os"
	"testing"

	"tideline/shared/analysis/profiler"
	"tideline/shared/golden"
)

var caseIDs = []string{"34-tf-xspace-2020-alexnet-step", "35-tf-xspace-2020-resnet-near-limit"}

func readCase(tb testing.TB, id string) (*Space, []byte) {
	tb.Helper()
	inputs, description := golden.Case(tb, id)
	for _, b := range inputs {
		s, err := Read(bytes.NewReader(b), 0)
		if err != nil {
			tb.Fatal(err)
		}
		return s, description
	}
	tb.Fatal("no input")
	return nil, nil
}

func TestRealProfilesGiveTheExpectedNumbers(t *testing.T) {
	for _, id := range caseIDs {
		t.Run(id, func(t *testing.T) {
			s, description := readCase(t, id)
			r := s.Reading()
			golden.CheckCase(t, description, r.AppendJSON(nil))
		})
	}
}

// TestTheProfilersPage: the stock page's figures of the same files.
func TestTheProfilersPage(t *testing.T) {
	for i, want := range []struct{ peak, capacity int64 }{{1573133568, 14640891840}, {13955346688, 15469833088}} {
		s, _ := readCase(t, caseIDs[i])
		pages := profiler.Of(s.ProfilerEvents())
		if len(pages) != 2 || pages[0].Memory != "GPU_0_bfc" || pages[0].PeakBytes != want.peak || pages[0].Capacity != want.capacity {
			t.Errorf("%s: %d pages, the first %s with peak %d of %d, want %+v",
				caseIDs[i], len(pages), pages[0].Memory, pages[0].PeakBytes, pages[0].Capacity, want)
		}
	}
}

// TestTheKeptCase is for machines that have only the repository.
func TestTheKeptCase(t *testing.T) {
	const dir = "testdata/cases/34/"
	description, err := os.ReadFile(dir + "case.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "profile.xplane.pb.gz")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Read(bytes.NewReader(b), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := x.Reading()
	golden.CheckCase(t, description, r.AppendJSON(nil))
}
