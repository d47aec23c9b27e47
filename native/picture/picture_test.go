package picture

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/shared/draw"
	"tideline/shared/store"
)

var update = flag.Bool("update", false, "write the pictures anew")

func run(tb testing.TB, o synthetic.Options) *store.Timeline {
	tb.Helper()
	tl := store.New(nil)
	var es []event.Event
	synthetic.Generate(o, tl.Strings(), event.SinkFunc(func(e *event.Event) { es = append(es, *e) }))
	tl.Append(es)
	return tl
}

// The pictures are compared pixel by pixel: the same timeline gives the same
// bytes on every machine.
func TestPicturesAreThoseKept(t *testing.T) {
	short := run(t, synthetic.Options{Events: 6_000, Seed: 1, Dynamic: true, Layers: 12})
	other := run(t, synthetic.Options{Events: 6_000, Seed: 2, Dynamic: true, Layers: 8})
	long := run(t, synthetic.Options{Events: 120_000, Seed: 3, Dynamic: true})
	first, last := short.Span()
	third := (last - first) / 3
	for _, c := range []struct {
		name string
		tl   *store.Timeline
		o    Options
	}{
		{"short-light", short, Options{W: 480, H: 320}},
		{"short-dark", short, Options{W: 480, H: 320, Theme: draw.Dark()}},
		{"short-zoomed", short, Options{W: 480, H: 320, T0: first + third, T1: first + third + third/6}},
		{"short-ghost-2x", short, Options{W: 640, H: 400, DPR: 2, Base: other}},
		{"short-filtered-light", short, Options{W: 480, H: 320, Filter: "BLOCK1"}},
		{"short-filtered-dark", short, Options{W: 480, H: 320, Filter: "BLOCK1", Theme: draw.Dark()}},
		{"zoomed-filtered-2x", short, Options{W: 640, H: 400, DPR: 2, T0: first + third, T1: first + third + third/6, Filter: "Matmul:0"}},
		{"long-filtered-light", long, Options{W: 480, H: 320, Filter: "block0"}},
		{"long-filtered-dark", long, Options{W: 480, H: 320, Filter: "gradients", Theme: draw.Dark()}},
		{"long-tiles", long, Options{W: 480, H: 320, Theme: draw.Dark()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Draw(c.tl, c.o)
			file := filepath.Join("testdata", c.name+".png")
			if *update {
				var b bytes.Buffer
				if err := Encode(&b, got); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if got.W != want.W || got.H != want.H {
				t.Fatalf("drawn %d x %d, kept %d x %d", got.W, got.H, want.W, want.H)
			}
			differ := 0
			for o := 0; o < len(got.Pix); o += 4 {
				if !bytes.Equal(got.Pix[o:o+4], want.Pix[o:o+4]) {
					if differ == 0 {
						t.Errorf("pixel (%d,%d) is %v, was %v", o/4%got.W, o/4/got.W, got.Pix[o:o+4], want.Pix[o:o+4])
					}
					differ++
				}
			}
			if differ > 0 {
				t.Errorf("%d of %d pixels differ from %s; look at both, then renew it with -update", differ, got.W*got.H, file)
			}
		})
	}
}
