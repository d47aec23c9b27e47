// Package picture writes what package draw paints as PNG files, for reports,
// the command line and tests. It draws nothing itself.
package picture

import (
	"fmt"
	"image"
	"image/png"
	"io"

	"tideline/shared/draw"
	"tideline/shared/store"
)

// Options say what a picture shows. Zero values choose: the whole run, 1280 x
// 720 pixels, the light theme.
type Options struct {
	W, H   int   // pixels
	T0, T1 int64 // nanoseconds; both 0: the whole run
	DPR    int   // device pixels for each CSS pixel
	Theme  *draw.Theme
	Base   *store.Timeline // drawn as a ghost line; nil for none
	// Filter dims what holds this text in no tensor, frame or op; "" dims nothing.
	Filter string
}

// View is the view that those options give of a timeline.
func (o Options) View(tl *store.Timeline) *draw.View {
	if o.W <= 0 || o.H <= 0 {
		o.W, o.H = 1280, 720
	}
	if o.Theme == nil {
		o.Theme = draw.Light()
	}
	if o.T0 == 0 && o.T1 == 0 {
		o.T0, o.T1 = tl.Span()
		// A little air, so that the last change is not cut off by the edge.
		o.T1 += (o.T1-o.T0)/200 + 1
	}
	o.DPR = max(o.DPR, 1)
	v := &draw.View{
		T0: o.T0, T1: o.T1, W: o.W, H: o.H, DPR: o.DPR, Theme: o.Theme, Base: o.Base,
		Lanes: draw.Layout(tl, o.H, 6*o.DPR, o.DPR),
	}
	if o.Filter == "" {
		return v
	}
	f := store.NewFilter(tl, o.Filter)
	for _, p := range tl.Pools() {
		part := store.NewPart(p, f)
		part.Advance(p.Points())
		v.Parts = append(v.Parts, part)
	}
	return v
}

// Draw paints a timeline.
func Draw(tl *store.Timeline, o Options) *draw.Image {
	v := o.View(tl)
	img := draw.NewImage(v.W, v.H)
	var r draw.Renderer
	r.Frame(img, tl, v)
	return img
}

// Encode writes an image as PNG.
func Encode(w io.Writer, img *draw.Image) error {
	m := &image.NRGBA{Pix: img.Pix, Stride: img.Stride, Rect: image.Rect(0, 0, img.W, img.H)}
	if err := png.Encode(w, m); err != nil {
		return fmt.Errorf("write a picture of %d x %d pixels: %w", img.W, img.H, err)
	}
	return nil
}

// Decode reads a PNG into an image.
func Decode(r io.Reader) (*draw.Image, error) {
	m, err := png.Decode(r)
	if err != nil {
		return nil, fmt.Errorf("read a picture: %w", err)
	}
	b := m.Bounds()
	img := draw.NewImage(b.Dx(), b.Dy())
	for y := range img.H {
		for x := range img.W {
			r, g, bl, a := m.At(b.Min.X+x, b.Min.Y+y).RGBA()
			o := y*img.Stride + 4*x
			img.Pix[o], img.Pix[o+1], img.Pix[o+2], img.Pix[o+3] = byte(r>>8), byte(g>>8), byte(bl>>8), byte(a>>8)
		}
	}
	return img, nil
}
