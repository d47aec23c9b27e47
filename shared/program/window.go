package program

import "slices"

// Window is the geometry of a convolution or pooling: NHWC images and the
// positions of a window on them.
type Window struct {
	N, H, W, C       int64 // the image side
	OutH, OutW, OutC int64 // the output side
	KH, KW           int64 // the window
	SH, SW           int64 // its strides
	PadTop, PadLeft  int64 // zeros before the first row and column
}

// Columns is the elements of one sample unrolled into the rows of a matrix:
// one row per output position, one column per element under the window.
func (w *Window) Columns() int64 { return w.OutH * w.OutW * w.KH * w.KW * w.C }

// extent gives the number of window positions along one dimension and the
// zeros before it, by TensorFlow's rules for VALID and SAME.
func extent(size, k, stride int64, pad Padding) (out, before int64) {
	if pad == Valid {
		if size < k {
			return 0, 0
		}
		return (size-k)/stride + 1, 0
	}
	out = (size + stride - 1) / stride
	return out, max(0, (out-1)*stride+k-size) / 2
}

func window(image Shape, kh, kw, outC int64, a *Attrs) Window {
	w := Window{N: image[0], H: image[1], W: image[2], C: image[3], KH: kh, KW: kw, OutC: outC, SH: a.Strides[0], SW: a.Strides[1]}
	w.OutH, w.PadTop = extent(w.H, kh, w.SH, a.Padding)
	w.OutW, w.PadLeft = extent(w.W, kw, w.SW, a.Padding)
	return w
}

// ConvWindow is the geometry of a Conv2D, Conv2DBackpropInput or
// Conv2DBackpropFilter node.
func (p *Program) ConvWindow(n *Node) Window {
	image, filter := convShapes(p, n)
	return window(image, filter[0], filter[1], filter[3], &n.Attrs)
}

// convShapes gives the shapes of the image and of the filter of a convolution
// node, whichever of its three ops it is.
func convShapes(p *Program, n *Node) (image, filter Shape) {
	switch n.Op {
	case OpConv2DBackpropInput:
		return n.Attrs.Shape, in(p, n, 0).Shape
	case OpConv2DBackpropFilter:
		return in(p, n, 0).Shape, n.Attrs.Shape
	default:
		return in(p, n, 0).Shape, in(p, n, 1).Shape
	}
}

// PoolWindow is the geometry of a pooling node or of its gradient.
func (p *Program) PoolWindow(n *Node) Window {
	image := in(p, n, 0).Shape
	if n.Op == OpAvgPoolGrad {
		image = n.Attrs.Shape
	}
	return window(image, n.Attrs.Window[0], n.Attrs.Window[1], image[3], &n.Attrs)
}

func checkWindow(p *Program, n *Node, image Shape) error {
	if len(image) != 4 {
		return mismatch(p, n, "needs images [n,h,w,c]")
	}
	if n.Attrs.Strides[0] < 1 || n.Attrs.Strides[1] < 1 {
		return mismatch(p, n, "strides %v must be at least 1", n.Attrs.Strides)
	}
	return nil
}

func checkConv(p *Program, n *Node, want int) (Window, error) {
	if err := floats(p, n, want); err != nil {
		return Window{}, err
	}
	image, filter := convShapes(p, n)
	if err := checkWindow(p, n, image); err != nil {
		return Window{}, err
	}
	if len(filter) != 4 || filter[2] != image[3] || filter[0] < 1 || filter[1] < 1 {
		return Window{}, mismatch(p, n, "filter %s does not fit images %s: want [kh,kw,%d,co]", filter, image, image[3])
	}
	w := p.ConvWindow(n)
	if w.OutH < 1 || w.OutW < 1 {
		return Window{}, mismatch(p, n, "the window %dx%d is larger than the image %dx%d", w.KH, w.KW, w.H, w.W)
	}
	return w, nil
}

func (w *Window) out() Shape { return Shape{w.N, w.OutH, w.OutW, w.OutC} }

func inferConv2D(p *Program, n *Node) ([]Spec, error) {
	w, err := checkConv(p, n, 2)
	if err != nil {
		return nil, err
	}
	return one(in(p, n, 0).DType, w.out()), nil
}

// inferConvBackprop is shared by both gradients: the output's gradient must
// have the shape that the forward op gives, the result is Attrs.Shape.
func inferConvBackprop(p *Program, n *Node) ([]Spec, error) {
	w, err := checkConv(p, n, 2)
	if err != nil {
		return nil, err
	}
	if !in(p, n, 1).Shape.Equal(w.out()) {
		return nil, mismatch(p, n, "the output's gradient must be %s", w.out())
	}
	return one(in(p, n, 0).DType, slices.Clone(n.Attrs.Shape)), nil
}

func inferConv2DBackpropInput(p *Program, n *Node) ([]Spec, error) { return inferConvBackprop(p, n) }

func inferConv2DBackpropFilter(p *Program, n *Node) ([]Spec, error) { return inferConvBackprop(p, n) }

func checkPool(p *Program, n *Node, want int, image Shape) (Window, error) {
	if err := floats(p, n, want); err != nil {
		return Window{}, err
	}
	if err := checkWindow(p, n, image); err != nil {
		return Window{}, err
	}
	if n.Attrs.Window[0] < 1 || n.Attrs.Window[1] < 1 {
		return Window{}, mismatch(p, n, "window %v must be at least 1", n.Attrs.Window)
	}
	w := window(image, n.Attrs.Window[0], n.Attrs.Window[1], image[3], &n.Attrs)
	if w.OutH < 1 || w.OutW < 1 {
		return Window{}, mismatch(p, n, "the window %v is larger than the image %s", n.Attrs.Window, image)
	}
	return w, nil
}

func inferPool(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	w, err := checkPool(p, n, 1, in(p, n, 0).Shape)
	if err != nil {
		return nil, err
	}
	return one(in(p, n, 0).DType, w.out()), nil
}

func inferAvgPoolGrad(p *Program, n *Node) ([]Spec, error) {
	w, err := checkPool(p, n, 1, n.Attrs.Shape)
	if err != nil {
		return nil, err
	}
	if !in(p, n, 0).Shape.Equal(w.out()) {
		return nil, mismatch(p, n, "the output's gradient must be %s", w.out())
	}
	return one(in(p, n, 0).DType, slices.Clone(n.Attrs.Shape)), nil
}

func inferMaxPoolGrad(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 3); err != nil {
		return nil, err
	}
	w, err := checkPool(p, n, 3, in(p, n, 0).Shape)
	if err != nil {
		return nil, err
	}
	if !in(p, n, 1).Shape.Equal(w.out()) || !in(p, n, 2).Shape.Equal(w.out()) {
		return nil, mismatch(p, n, "output and gradient must be %s", w.out())
	}
	return one(in(p, n, 0).DType, in(p, n, 0).Shape), nil
}
