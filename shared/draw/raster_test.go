package draw

import (
	"math/rand/v2"
	"testing"
)

// Whatever is drawn, nothing outside of the canvas may change.
func TestShapesStayInsideTheCanvas(t *testing.T) {
	img := NewImage(40, 30)
	for i := range img.Pix {
		img.Pix[i] = 7
	}
	c := img.canvas(Rect{10, 8, 15, 12})
	r := rand.New(rand.NewPCG(1, 1))
	at := func() int { return r.IntN(60) - 20 }
	for range 3000 {
		c.rect(at(), at(), at(), at(), 0xff0000ff)
		c.shade(at(), at(), at(), at(), 0xff00ff00, 99)
		c.column(at(), at(), at(), 0xff123456)
		c.hatch(at(), r.IntN(50), at(), at(), 1+r.IntN(5), 0xff654321, 128)
		c.triangle(at(), at(), r.IntN(9), 0xffffffff)
		c.disc(float64(at()), float64(at()), 4, 0xffabcdef)
		c.dashes(r.IntN(9), at(), 1, 3, 2, 0xff777777)
	}
	for y := range img.H {
		for x := range img.W {
			in := x >= 10 && x < 25 && y >= 8 && y < 20
			if o := y*img.Stride + 4*x; !in && img.Pix[o] != 7 {
				t.Fatalf("pixel (%d,%d) outside of the canvas changed", x, y)
			} else if in && img.Pix[o+3] != 255 {
				t.Fatalf("pixel (%d,%d) is not opaque", x, y)
			}
		}
	}
}

func TestMixEndsAtItsEnds(t *testing.T) {
	p, q := rgb(0x102030).pixel(), rgb(0xf0e0d0).pixel()
	if got := mix(p, q, 0); got != p {
		t.Errorf("weight 0: %08x, want %08x", got, p)
	}
	if got := mix(p, q, 256); got != q {
		t.Errorf("weight 256: %08x, want %08x", got, q)
	}
	if got, want := mix(p, q, 128), rgb(0x808080).pixel(); got != want {
		t.Errorf("weight 128: %08x, want %08x", got, want)
	}
}

func TestRectFillsExactlyItsPixels(t *testing.T) {
	for w := range 40 {
		img := NewImage(50, 6)
		c := img.canvas(Rect{0, 0, 50, 6})
		c.rect(3, 1, 3+w, 5, 0xffffffff)
		n := 0
		for o := 0; o < len(img.Pix); o += 4 {
			if img.Pix[o] != 0 {
				n++
			}
		}
		if n != w*4 {
			t.Errorf("a rectangle of %d x 4 filled %d pixels", w, n)
		}
	}
}
