package analysis_test

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis"
	"tideline/shared/golden"
)

// utilisation replays a recorded program on PyTorch's allocator and takes its
// figures as a run's summary has them.
func utilisation(t *testing.T, name string) analysis.AllocatorSummary {
	t.Helper()
	f, err := os.Open(filepath.Join(golden.Dir(t, "pytorch-allocator"), name+".trace.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a, err := torch.New(torch.NewDevice(alloc.NewCard(0), 0), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	at := map[string]uint64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		row := strings.Split(lines.Text(), ",")
		if len(row) < 2 || row[0] != "a" && row[0] != "f" && row[0] != "e" {
			continue // the head
		}
		switch row[0] {
		case "a":
			n, err := strconv.ParseInt(row[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			b, ok := a.AllocateOn(torch.Request{Bytes: n})
			if !ok {
				t.Fatalf("%s: %d bytes were refused", name, n)
			}
			at[row[1]] = b.Address
		case "f":
			if err := a.Free(at[row[1]]); err != nil {
				t.Fatal(err)
			}
		default:
			a.EmptyCache()
		}
	}
	st := a.Stats()
	return analysis.AllocatorSummary{PeakInUse: st.PeakInUse, PeakReserved: st.PeakPool}
}

// TestUtilisationOfRecordedPrograms: PyTorch reserves 3.14 GB for 0.91 GB of a
// batch that grows, and twice as much where small tensors come before large ones
// as the other way round.
func TestUtilisationOfRecordedPrograms(t *testing.T) {
	for name, want := range map[string][2]int64{
		"training-growing-batch": {906256384, 3143630848},
		"large-then-small":       {134217728, 134217728},
		"small-then-large":       {134217728, 268435456},
	} {
		a := utilisation(t, name)
		if a.PeakInUse != want[0] || a.PeakReserved != want[1] {
			t.Errorf("%s: %d of %d, want %d of %d", name, a.PeakInUse, a.PeakReserved, want[0], want[1])
		}
		if u := a.Utilisation(); math.Abs(u-float64(want[0])/float64(want[1])) > 1e-12 {
			t.Errorf("%s: utilisation %g", name, u)
		}
	}
}

// TestInternalWasteOfOddRequestsToTorch: 1,000 requests of 257 bytes take 512
// each, as in TensorFlow's allocator, though the granule is another.
func TestInternalWasteOfOddRequestsToTorch(t *testing.T) {
	a, err := torch.New(torch.NewDevice(alloc.NewCard(0), 0), torch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for range 1000 {
		if _, ok := a.Allocate(alloc.Request{Bytes: 257}); !ok {
			t.Fatal("no memory")
		}
	}
	if x := analysis.Measure(a.ChunkMap()); x.InUse-x.Requested != 255_000 || x.Internal() != 255.0/512 {
		t.Errorf("%+v, internal %g", x, x.Internal())
	}
}
