package dataset

import (
	"strings"
	"testing"
	"unsafe"

	"tideline/shared/program"
	"tideline/shared/zoo"
)

func tensors(tb testing.TB, model string, batch int) (images, labels *program.Value) {
	tb.Helper()
	p, err := zoo.Program(model, zoo.Options{Batch: batch})
	if err != nil {
		tb.Fatal(err)
	}
	return &p.Values[p.Inputs[0]], &p.Values[p.Inputs[1]]
}

func TestFillWritesWhatTheModelTakes(t *testing.T) {
	digits, err := Training()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range zoo.Models() {
		model := m.Name
		if m.Kind != zoo.Images || m.Task != zoo.Classify || m.Channels != 1 {
			continue
		}
		for _, d := range []Data{digits, Synthetic(2000)} {
			x, y := tensors(t, model, 3)
			images, labels := make([]int64, x.Bytes()/8), make([]int64, 3)
			elements := []int32{7, 1400, 7}
			if err := d.Fill(elements, 0, x, bytesOf(images)); err != nil {
				t.Fatal(err)
			}
			if err := d.Fill(elements, 1, y, bytesOf(labels)); err != nil {
				t.Fatal(err)
			}
			size := int(x.Shape[1])
			one := make([]float32, size*size)
			for i, e := range elements {
				label, err := d.Map(e, one, size)
				if err != nil || label != labels[i] || label < 0 || label >= Classes {
					t.Fatalf("%s: element %d has label %d, filled in as %d: %v", model, e, label, labels[i], err)
				}
				var sum float32
				for j, v := range floats(bytesOf(images))[i*size*size:][:size*size] {
					if v != one[j] || v < -1 || v > 2 {
						t.Fatalf("%s: element %d, pixel %d: %v, want %v", model, e, j, v, one[j])
					}
					sum += v
				}
				if sum == 0 {
					t.Errorf("%s: element %d is black", model, e)
				}
			}
		}
	}
}

// bytesOf gives memory that is aligned for the numbers in it.
func bytesOf(s []int64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*8)
}

func TestFillRefusesOtherTensors(t *testing.T) {
	d := Synthetic(10)
	x, y := tensors(t, "mlp", 2)
	buf := bytesOf(make([]int64, 2*28*28))
	for want, err := range map[string]error{
		"12 bytes given":   d.Fill([]int32{1}, 0, x, buf[:12]),
		"input 1, float32": d.Fill([]int32{1}, 1, x, buf),
		"input 0, int64":   d.Fill([]int32{1}, 0, y, buf),
		"with 3 elements":  d.Fill([]int32{1, 2, 3}, 0, x, buf),
		"element 10 of 10": d.Fill([]int32{10}, 0, x, buf),
		"element -1 of 10": d.Fill([]int32{-1}, 1, y, buf),
		"element 0 of 0":   Data{}.Fill([]int32{0}, 0, x, buf),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}
