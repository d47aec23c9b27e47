package ingest

import (
	"strings"
	"testing"

	"tideline/shared/golden"
)

const (
	foundSmall = "I gpu_device.cc:1618] Found device 0 with properties: \nname: Tesla T4 major: 7 minor: 5\ntotalMemory: 14.76GiB freeMemory: 363.69MiB\nI gpu_device.cc:1418] Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 52 MB memory) -> physical GPU (device: 0, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5)\n"
	cublas     = "E cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\n"
)

// smallPool is the end of a dump of 52.56 MiB, with the copy that failed.
func smallPool(t *testing.T) string {
	t.Helper()
	inputs, _ := golden.Case(t, "07-tf-bfc-2021-limit-55-mb")
	for _, b := range inputs {
		return string(b)
	}
	t.Fatal("no input")
	return ""
}

// TestTheStartBesideADump: the first lines tell where the dump's limit is from.
func TestTheStartBesideADump(t *testing.T) {
	text, err := ReadText("x", strings.NewReader(foundSmall+smallPool(t)))
	if err != nil {
		t.Fatal(err)
	}
	all := text.All()
	if len(all) != 1 || all[0].Cause != "other_process_before_start" || !strings.Contains(all[0].Why, "only 363.69 MiB of the device's 14.76 GiB were free") {
		t.Errorf("%d readings, first %+v", len(all), all[0])
	}
	if card, _ := all[0].Facts.Get("card"); card.Text != "Tesla T4" {
		t.Errorf("%+v", card)
	}
}

// TestALibraryBesideADump: a copy that failed is a face of the dump, a library
// is a reading of its own that counts with the dump's pool.
func TestALibraryBesideADump(t *testing.T) {
	dump := smallPool(t)
	text, err := ReadText("x", strings.NewReader(strings.Replace(foundSmall, "363.69MiB", "600.00MiB", 1)+dump+"\n"+cublas))
	if err != nil {
		t.Fatal(err)
	}
	if len(text.Readings) != 1 {
		t.Fatalf("%d readings beside the dump", len(text.Readings))
	}
	r := text.Readings[0]
	pool, _ := r.Facts.Get("pool_bytes")
	left, _ := r.Facts.Get("left_bytes")
	if r.Kind != "library-message" || pool.Int != 55115776 || left.Int != 600<<20-55115776 {
		t.Errorf("%+v", r)
	}
	text, err = ReadText("x", strings.NewReader(dump+"\nInternalError: Dst tensor is not initialized.\n"))
	if err != nil || len(text.Readings) != 0 {
		t.Errorf("%d readings, %v", len(text.Readings), err)
	}
}
