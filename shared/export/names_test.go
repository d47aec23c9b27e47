package export_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/export/chrome"
	"tideline/shared/export/pprof"
	"tideline/shared/ingest"
)

// holding is what lives at the end, by allocator: blocks and bytes.
func holding(t *testing.T, name string, b []byte, also func(*event.Strings) closer) map[string][2]int64 {
	t.Helper()
	in, err := ingest.Open(name, bytes.NewReader(b), ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	strs := new(event.Strings)
	w := also(strs)
	pools := map[event.AllocatorID]string{}
	live := map[[2]uint64]int64{}
	if err := in.Emit(strs, event.SinkFunc(func(e *event.Event) {
		w.Emit(e)
		k := [2]uint64{uint64(e.Allocator), e.Address}
		switch e.Kind {
		case event.AllocatorFacts:
			f, _ := event.ParseFields(strs.At(e.Text))
			pools[e.Allocator] = f.Text("name")
		case event.Alloc:
			live[k] = e.Size
		case event.Free:
			delete(live, k)
		default:
		}
	})); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string][2]int64{}
	for k, n := range live {
		h := got[pools[event.AllocatorID(k[0])]]
		got[pools[event.AllocatorID(k[0])]] = [2]int64{h[0] + 1, h[1] + n}
	}
	return got
}

type nothing struct{}

func (nothing) Emit(*event.Event) {}
func (nothing) Close() error      { return nil }

// TestAllocatorsAndBlocksReadBack: a trace and a profile of a log name its
// allocator and hold as many blocks of as many bytes.
func TestAllocatorsAndBlocksReadBack(t *testing.T) {
	b, err := os.ReadFile("../../examples/files/cifar-2023.log")
	if err != nil {
		t.Fatal(err)
	}
	for to, write := range map[string]func(io.Writer, *event.Strings) closer{
		"x.json":  func(w io.Writer, s *event.Strings) closer { return chrome.NewWriter(w, s) },
		"x.pb.gz": func(w io.Writer, s *event.Strings) closer { return pprof.NewWriter(w, s, pprof.Options{At: -1}) },
	} {
		var file bytes.Buffer
		want := holding(t, "cifar-2023.log", b, func(s *event.Strings) closer { return write(&file, s) })
		got := holding(t, to, file.Bytes(), func(*event.Strings) closer { return nothing{} })
		if len(want) != 1 || want["GPU_0_bfc"][0] != 31 || len(got) != 1 || got["GPU_0_bfc"] != want["GPU_0_bfc"] {
			t.Errorf("%s: %v, want %v", to, got, want)
		}
	}
}

// TestAnEmptyProfileIsOurs: it is not taken for another program's.
func TestAnEmptyProfileIsOurs(t *testing.T) {
	var file bytes.Buffer
	if err := pprof.NewWriter(&file, new(event.Strings), pprof.Options{At: -1}).Close(); err != nil {
		t.Fatal(err)
	}
	in, err := ingest.Open("x.pb.gz", &file, ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Readings) != 1 || in.Readings[0].Name != "pprof profile of a timeline" {
		t.Errorf("%+v", in.Readings)
	}
}
