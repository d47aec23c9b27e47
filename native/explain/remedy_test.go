package explain

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/ingest/snapshot/synthetic"
)

// oomSnapshot is a snapshot of 20 segments of 50 MiB, whose lower halves are idle,
// on a device of 1000 MiB that was asked for 100 MiB more.
func oomSnapshot(t *testing.T, keep int) []byte {
	t.Helper()
	const mib = 1 << 20
	h := torch.NewHistory(keep)
	a, err := torch.New(torch.NewDevice(alloc.NewCard(1000*mib), 0x7f0000000000), torch.Options{Tracer: h})
	if err != nil {
		t.Fatal(err)
	}
	must := func(bytes int64) uint64 {
		b, ok := a.AllocateOn(torch.Request{Bytes: bytes})
		if !ok {
			t.Fatal(a.Failure())
		}
		return b.Address
	}
	free := func(addr uint64) {
		if err := a.Free(addr); err != nil {
			t.Fatal(err)
		}
	}
	var whole, low []uint64
	for range 20 {
		whole = append(whole, must(50*mib))
	}
	for _, addr := range whole {
		free(addr)
		low = append(low, must(25*mib))
		must(25 * mib)
	}
	for _, addr := range low {
		free(addr)
	}
	if _, ok := a.AllocateOn(torch.Request{Bytes: 100 * mib}); ok {
		t.Fatal("served")
	}
	var b bytes.Buffer
	if err := synthetic.Record(&b, a.Snapshot(), h.Entries(), ""); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func squeezed(t *testing.T, file []byte, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Explain("oom.pickle", bytes.NewReader(file), &b, o); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestWhatServesIsVerifiedByReplay(t *testing.T) {
	const serves = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True would have served the request, with"
	const least = "The least reduction: the request must shrink by 75.00 MiB (78643200 bytes)"
	for _, keep := range []int{1 << 20, 31} {
		file := oomSnapshot(t, keep)
		text := squeezed(t, file, Options{})
		for _, want := range []string{"Verified by replay", serves, least, "the request fails as recorded"} {
			if !strings.Contains(text, want) {
				t.Errorf("keep %d: lacks %q:\n%s", keep, want, text)
			}
		}
		if assumed := strings.Contains(text, "if it came about as is assumed") && strings.Contains(text, "Assumed: "); assumed == (keep > 100) {
			t.Errorf("keep %d: assumes %v:\n%s", keep, assumed, text)
		}
		if text := squeezed(t, file, Options{NoReruns: true}); strings.Contains(text, "replay") || strings.Contains(text, "least") {
			t.Errorf("without reruns:\n%s", text)
		}
		var doc struct {
			Readings []struct {
				Trials []struct {
					Setting string
					Serves  bool
					Spare   *int64
				}
				Least int64 `json:"least_reduction"`
			}
		}
		if err := json.Unmarshal([]byte(squeezed(t, file, Options{JSON: true})), &doc); err != nil {
			t.Fatal(err)
		}
		r := doc.Readings[0]
		if len(r.Trials) == 0 || !r.Trials[0].Serves || r.Trials[0].Spare == nil || r.Least != 75<<20 {
			t.Errorf("keep %d: %+v", keep, r)
		}
	}
}
