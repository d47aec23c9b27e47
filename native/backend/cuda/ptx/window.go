package ptx

// window is the geometry of a convolution or pooling, one register a figure:
// the image, the output positions, the window, its strides, the padding before
// the first row and column.
type window struct{ h, w, c, oh, ow, kh, kw, sh, sw, pt, pl reg }

// WindowParams are the names of the geometry's parameters, in order, as all
// window kernels take them.
var WindowParams = []string{"h", "w", "c", "oh", "ow", "kh", "kw", "sh", "sw", "pt", "pl"}

func (k *kernel) window() *window {
	g := &window{}
	for i, p := range []*reg{&g.h, &g.w, &g.c, &g.oh, &g.ow, &g.kh, &g.kw, &g.sh, &g.sw, &g.pt, &g.pl} {
		*p = k.u32(WindowParams[i])
	}
	return g
}

// pixel is element c of the image at (h, w) of sample s.
func (k *kernel) pixel(g *window, s, h, w, c reg) reg {
	return k.mad(k.mad(k.mad(s, g.h, h), g.w, w), g.c, c)
}

// position is element c of the output at (oh, ow) of sample s, of so many
// channels.
func (k *kernel) position(g *window, s, oh, ow, c, channels reg) reg {
	return k.mad(k.mad(k.mad(s, g.oh, oh), g.ow, ow), channels, c)
}

// inside says whether (h, w) lies on the image; negative numbers are large as
// unsigned ones.
func (k *kernel) inside(g *window, h, w reg) reg {
	return k.op(pred, "and.pred", k.op(pred, "setp.lt.u32", h, g.h), k.op(pred, "setp.lt.u32", w, g.w))
}

// under runs the body for every element of the window at (oh, ow) that lies on
// the image.
func (k *kernel) under(g *window, oh, ow reg, body func(kh, kw, h, w reg)) {
	h0, w0 := k.sub(k.mul(oh, g.sh), g.pt), k.sub(k.mul(ow, g.sw), g.pl)
	k.loop("0", g.kh, "1", func(kh reg) {
		h := k.add(h0, kh)
		k.loop("0", g.kw, "1", func(kw reg) {
			w := k.add(w0, kw)
			k.when(k.inside(g, h, w), func() { body(kh, kw, h, w) })
		})
	})
}

// covering runs the body for every output position whose window covers (h, w),
// with the window's element that does.
func (k *kernel) covering(g *window, h, w reg, body func(kh, kw, oh, ow reg)) {
	k.loop("0", g.kh, "1", func(kh reg) {
		oh, ok := k.step(k.sub(k.add(h, g.pt), kh), g.sh, g.oh)
		k.when(ok, func() {
			k.loop("0", g.kw, "1", func(kw reg) {
				ow, ok := k.step(k.sub(k.add(w, g.pl), kw), g.sw, g.ow)
				k.when(ok, func() { body(kh, kw, oh, ow) })
			})
		})
	})
}

// step divides a distance by the stride; ok where it is a whole position below
// the limit.
func (k *kernel) step(distance, stride, limit reg) (position, ok reg) {
	q, r := k.split(distance, stride)
	ok = k.op(pred, "and.pred", k.icmp("eq", r, "0"), k.icmp("ge", distance, "0"))
	return q, k.op(pred, "and.pred", ok, k.op(pred, "setp.lt.u32", q, limit))
}

// output splits the index of an element of the output.
func (k *kernel) output(g *window, i, channels reg) (s, oh, ow, c reg) {
	rest, c := k.split(i, channels)
	rest, ow = k.split(rest, g.ow)
	s, oh = k.split(rest, g.oh)
	return s, oh, ow, c
}

// image splits the index of an element of the image.
func (k *kernel) image(g *window, i reg) (s, h, w, c reg) {
	rest, c := k.split(i, g.c)
	rest, w = k.split(rest, g.w)
	s, h = k.split(rest, g.h)
	return s, h, w, c
}

// filter is element (kh, kw, ci, co) of a filter.
func (k *kernel) filter(g *window, kh, kw, ci, co, channels reg) reg {
	return k.mad(k.mad(k.mad(kh, g.kw, kw), g.c, ci), channels, co)
}

// im2col unrolls images: one row per output position, holding what the window
// covers there, with zeros for padding.
func im2col(k *kernel) {
	x, cols, n := k.ptr("x"), k.ptr("cols"), k.u32("n")
	g := k.window()
	i := k.each(n)
	rest, c := k.split(i, g.c)
	rest, kw := k.split(rest, g.kw)
	rest, kh := k.split(rest, g.kh)
	rest, ow := k.split(rest, g.ow)
	s, oh := k.split(rest, g.oh)
	h := k.add(k.sub(k.mul(oh, g.sh), g.pt), kh)
	w := k.add(k.sub(k.mul(ow, g.sw), g.pl), kw)
	v := k.fvar(float(0))
	k.when(k.inside(g, h, w), func() { k.fset(v, k.load(x, k.pixel(g, s, h, w, c))) })
	k.store(cols, i, v)
}

// col2im adds the rows back up onto the images they came from: each element of
// an image gathers, so that no two threads write one place.
func col2im(k *kernel) {
	cols, dx, n := k.ptr("cols"), k.ptr("dx"), k.u32("n")
	g := k.window()
	i := k.each(n)
	s, h, w, c := k.image(g, i)
	sum := k.fvar(float(0))
	k.covering(g, h, w, func(kh, kw, oh, ow reg) {
		row := k.position(g, s, oh, ow, "0", "1")
		at := k.mad(k.mad(k.mad(row, g.kh, kh), g.kw, kw), g.c, c)
		k.emit("add.rn.f32", sum, sum, k.load(cols, at))
	})
	k.store(dx, i, sum)
}

// conv, convInput and convFilter are the three products of a convolution
// without a workspace, a thread for each result.
func conv(k *kernel) {
	x, w, y, n := k.ptr("x"), k.ptr("filter"), k.ptr("y"), k.u32("n")
	g := k.window()
	co := k.u32("co")
	i := k.each(n)
	s, oh, ow, o := k.output(g, i, co)
	sum := k.fvar(float(0))
	k.under(g, oh, ow, func(kh, kw, h, wi reg) {
		k.loop("0", g.c, "1", func(c reg) {
			k.facc(sum, k.load(x, k.pixel(g, s, h, wi, c)), k.load(w, k.filter(g, kh, kw, c, o, co)))
		})
	})
	k.store(y, i, sum)
}

func convInput(k *kernel) {
	w, dy, dx, n := k.ptr("filter"), k.ptr("dy"), k.ptr("dx"), k.u32("n")
	g := k.window()
	co := k.u32("co")
	i := k.each(n)
	s, h, wi, c := k.image(g, i)
	sum := k.fvar(float(0))
	k.covering(g, h, wi, func(kh, kw, oh, ow reg) {
		k.loop("0", co, "1", func(o reg) {
			k.facc(sum, k.load(dy, k.position(g, s, oh, ow, o, co)), k.load(w, k.filter(g, kh, kw, c, o, co)))
		})
	})
	k.store(dx, i, sum)
}

func convFilter(k *kernel) {
	x, dy, dw, n, samples := k.ptr("x"), k.ptr("dy"), k.ptr("dw"), k.u32("n"), k.u32("samples")
	g := k.window()
	co := k.u32("co")
	i := k.each(n)
	rest, o := k.split(i, co)
	rest, c := k.split(rest, g.c)
	kh, kw := k.split(rest, g.kw)
	sum := k.fvar(float(0))
	k.loop("0", samples, "1", func(s reg) {
		k.loop("0", g.oh, "1", func(oh reg) {
			h := k.add(k.sub(k.mul(oh, g.sh), g.pt), kh)
			k.loop("0", g.ow, "1", func(ow reg) {
				w := k.add(k.sub(k.mul(ow, g.sw), g.pl), kw)
				k.when(k.inside(g, h, w), func() {
					k.facc(sum, k.load(x, k.pixel(g, s, h, w, c)), k.load(dy, k.position(g, s, oh, ow, o, co)))
				})
			})
		})
	})
	k.store(dw, i, sum)
}

// avgPool divides by the number of elements on the image: padding does not
// count.
func avgPool(k *kernel) {
	x, y, n := k.ptr("x"), k.ptr("y"), k.u32("n")
	g := k.window()
	i := k.each(n)
	s, oh, ow, c := k.output(g, i, g.c)
	sum := k.fvar(float(0))
	k.under(g, oh, ow, func(_, _, h, w reg) {
		k.emit("add.rn.f32", sum, sum, k.load(x, k.pixel(g, s, h, w, c)))
	})
	k.store(y, i, k.fmul(sum, k.share(g, oh, ow)))
}

// share is one divided by the number of elements under a window.
func (k *kernel) share(g *window, oh, ow reg) reg {
	rows := k.covered(k.sub(k.mul(oh, g.sh), g.pt), g.kh, g.h)
	cols := k.covered(k.sub(k.mul(ow, g.sw), g.pl), g.kw, g.w)
	return k.fdiv(float(1), k.fromUint(k.mul(rows, cols)))
}

// covered is how much of a window that begins at start lies on the image.
func (k *kernel) covered(start, size, extent reg) reg {
	return k.sub(k.min(k.add(start, size), extent), k.max(start, "0"))
}

func avgPoolGrad(k *kernel) {
	dy, dx, n := k.ptr("dy"), k.ptr("dx"), k.u32("n")
	g := k.window()
	i := k.each(n)
	s, h, w, c := k.image(g, i)
	sum := k.fvar(float(0))
	k.covering(g, h, w, func(_, _, oh, ow reg) {
		k.facc(sum, k.load(dy, k.position(g, s, oh, ow, c, g.c)), k.share(g, oh, ow))
	})
	k.store(dx, i, sum)
}

// largest is the image index of the first maximum of channel c under a window.
func (k *kernel) largest(g *window, x, s, oh, ow, c reg) (index, value reg) {
	index, value = k.ivar("-1"), k.fvar(float(0))
	k.under(g, oh, ow, func(_, _, h, w reg) {
		at := k.pixel(g, s, h, w, c)
		v := k.load(x, at)
		better := k.op(pred, "or.pred", k.icmp("lt", index, "0"), k.fcmp("gt", v, value))
		k.when(better, func() {
			k.iset(index, at)
			k.fset(value, v)
		})
	})
	return index, value
}

func maxPool(k *kernel) {
	x, y, n := k.ptr("x"), k.ptr("y"), k.u32("n")
	g := k.window()
	i := k.each(n)
	s, oh, ow, c := k.output(g, i, g.c)
	_, v := k.largest(g, x, s, oh, ow, c)
	k.store(y, i, v)
}

// maxPoolGrad gives the gradient to the first of equal maxima.
func maxPoolGrad(k *kernel) {
	x, dy, dx, n := k.ptr("x"), k.ptr("dy"), k.ptr("dx"), k.u32("n")
	g := k.window()
	i := k.each(n)
	s, h, w, c := k.image(g, i)
	sum := k.fvar(float(0))
	k.covering(g, h, w, func(_, _, oh, ow reg) {
		index, _ := k.largest(g, x, s, oh, ow, c)
		k.when(k.icmp("eq", index, i), func() {
			k.emit("add.rn.f32", sum, sum, k.load(dy, k.position(g, s, oh, ow, c, g.c)))
		})
	})
	k.store(dx, i, sum)
}
