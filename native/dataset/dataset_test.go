package dataset

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

func TestDigitsAreWhole(t *testing.T) {
	train, held, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if train.Len() != TrainCount || held.Len() != HeldOutCount || train.Len() != 1438 || held.Len() != 359 {
		t.Errorf("%d to train on, %d held out", train.Len(), held.Len())
	}
	var perClass [2][Classes]int
	for i, d := range []*Digits{train, held} {
		if len(d.Images) != d.Len()*Side*Side {
			t.Errorf("%d pixels for %d images", len(d.Images), d.Len())
		}
		for _, l := range d.Labels {
			perClass[i][l]++
		}
	}
	// The class sizes that the data set's description gives.
	want := [Classes]int{178, 182, 177, 183, 181, 182, 181, 179, 174, 180}
	for c, n := range want {
		if got := perClass[0][c] + perClass[1][c]; got != n {
			t.Errorf("%d images of a %d, want %d", got, c, n)
		}
		if perClass[1][c] < 20 {
			t.Errorf("only %d images of a %d are held out", perClass[1][c], c)
		}
	}
}

func TestFirstImageIsAZero(t *testing.T) {
	train, _, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if got := train.Image(0)[:8]; train.Labels[0] != 0 || string(got) != string([]uint8{0, 0, 5, 13, 9, 1, 0, 0}) {
		t.Errorf("label %d, first row %v", train.Labels[0], got)
	}
}

func TestReadNamesTheBadLine(t *testing.T) {
	good := strings.Repeat("0,", 64) + "3\n"
	for name, c := range map[string]struct{ text, want string }{
		"short":     {good + "1,2,3\n", "line 2: 3 fields, want 65"},
		"pixel":     {good + good + "17" + good[1:], "line 3, field 1: \"17\" is not a number from 0 to 16"},
		"negative":  {"-1" + good[1:], "line 1, field 1"},
		"label":     {strings.Repeat("0,", 64) + "10\n", "field 65: \"10\" is not a number from 0 to 9"},
		"no number": {strings.Repeat("0,", 64) + "x\n", "field 65: \"x\""},
		"too long":  {strings.Repeat("0", 1<<17), "token too long"},
	} {
		if _, err := read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(strings.Repeat("0,", 64) + "3\n")
	f.Add("1,2\n\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := read(strings.NewReader(s)); err == nil && len(d.Images) != d.Len()*Side*Side {
			t.Errorf("%d pixels for %d images", len(d.Images), d.Len())
		}
	})
}

// level is what a grey level becomes.
func level(v float64) float32 { return (float32(v) - Mean) * (1 / Deviation) }

func TestScale(t *testing.T) {
	image := make([]uint8, Side*Side)
	for i := range image {
		image[i] = uint8(2 * (i % Side)) // a ramp to the right
	}
	same := make([]float32, Side*Side)
	Scale(same, image, Side)
	for i, v := range same {
		if v != level(float64(image[i])) {
			t.Errorf("the same size changes pixel %d: %v", i, v)
		}
	}
	for _, size := range []int{28, 32} {
		big := make([]float32, size*size)
		Scale(big, image, size)
		for i, v := range big {
			pos := (float64(i%size)+0.5)*Side/float64(size) - 0.5
			want := level(2 * min(max(pos, 0), Side-1))
			if d := v - want; d > 1e-5 || d < -1e-5 {
				t.Fatalf("size %d, pixel %d: %v, want %v", size, i, v, want)
			}
		}
	}
}

func TestPixelsOfTheTrainingSetAreCentred(t *testing.T) {
	train, _, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{8, 28, 32} {
		image := make([]float32, size*size)
		var sum, squares, n float64
		for i := range train.Len() {
			Scale(image, train.Image(i), size)
			for _, v := range image {
				sum += float64(v)
				squares += float64(v) * float64(v)
				n++
			}
		}
		mean, deviation := sum/n, math.Sqrt(squares/n)
		// Interpolation flattens, so only the true size has a deviation of 1.
		if mean < -0.01 || mean > 0.01 || deviation > 1.0001 || deviation < 0.8 || size == 8 && deviation < 0.9999 {
			t.Errorf("size %d: mean %v, deviation %v", size, mean, deviation)
		}
	}
}

func BenchmarkScale32(b *testing.B) {
	train, _, err := Load()
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]float32, 32*32)
	b.ReportAllocs()
	for b.Loop() {
		Scale(dst, train.Image(0), 32)
	}
}

func TestTheFileIsTheOneThatTheReadmeNames(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(digitsGz)); !strings.Contains(string(readme), sum) {
		t.Errorf("README.md does not have the file's SHA-256, %s", sum)
	}
}
