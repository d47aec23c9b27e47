package ptx

// unary makes y[i] = f(x[i]); right in place.
func unary(f func(k *kernel, x reg) reg) func(*kernel) {
	return func(k *kernel) {
		x, y, n := k.ptr("x"), k.ptr("y"), k.u32("n")
		i := k.each(n)
		k.store(y, i, f(k, k.load(x, i)))
	}
}

// binary makes out[i] = f(a[i], b[i]); right in place of either.
func binary(f func(k *kernel, a, b reg) reg) func(*kernel) {
	return func(k *kernel) {
		a, b, out, n := k.ptr("a"), k.ptr("b"), k.ptr("out"), k.u32("n")
		i := k.each(n)
		k.store(out, i, f(k, k.load(a, i), k.load(b, i)))
	}
}

func reluGrad(k *kernel, dy, y reg) reg {
	return k.op(f32, "selp.f32", dy, float(0), k.fcmp("gt", y, float(0)))
}

// tanhSeries are the coefficients of tanh(x)/x - 1 in powers of x squared,
// from the first on. Below tanhSmall the rest of the series is under a unit in
// the last place of a float32.
var tanhSeries = []float64{
	-1.0 / 3, 2.0 / 15, -17.0 / 315, 62.0 / 2835, -1382.0 / 155925, 21844.0 / 6081075, -929569.0 / 638512875,
}

const tanhSmall = 0.55

// tanh takes the series near 0, where 1 - 2/(exp(2x)+1) would cancel.
func (k *kernel) tanh(x reg) reg {
	size := k.op(f32, "abs.f32", x)
	// exp overflows to infinity, and 2 divided by that is 0, as it should be.
	e := k.exp(k.fadd(size, size))
	far := k.fsub(float(1), k.fdiv(float(2), k.fadd(e, float(1))))
	far = k.op(f32, "copysign.f32", x, far)
	t := k.fmul(x, x)
	s := k.fvar(float(tanhSeries[len(tanhSeries)-1]))
	for i := len(tanhSeries) - 2; i >= 0; i-- {
		s = k.fma(s, t, float(tanhSeries[i]))
	}
	near := k.fma(k.fmul(s, t), x, x)
	return k.op(f32, "selp.f32", near, far, k.fcmp("lt", size, float(tanhSmall)))
}

// strided gives, for the element i of a result with four dimensions of which
// the last three extents are given, its index in each tensor whose steps along
// the four are given; a step of 0 repeats.
func (k *kernel) strided(i reg, extents [3]reg, steps ...[4]reg) []reg {
	rest, at3 := k.split(i, extents[2])
	rest, at2 := k.split(rest, extents[1])
	at0, at1 := k.split(rest, extents[0])
	var out []reg
	for _, s := range steps {
		x := k.mul(at0, s[0])
		x = k.mad(at1, s[1], x)
		x = k.mad(at2, s[2], x)
		out = append(out, k.mad(at3, s[3], x))
	}
	return out
}

func (k *kernel) extents() [3]reg { return [3]reg{k.u32("d1"), k.u32("d2"), k.u32("d3")} }

func (k *kernel) steps(name string) [4]reg {
	return [4]reg{k.u32(name + "0"), k.u32(name + "1"), k.u32(name + "2"), k.u32(name + "3")}
}

// broadcast makes out[i] = f(a[...], b[...]).
func broadcast(f func(k *kernel, a, b reg) reg) func(*kernel) {
	return func(k *kernel) {
		a, b, out, n := k.ptr("a"), k.ptr("b"), k.ptr("out"), k.u32("n")
		d := k.extents()
		sa, sb := k.steps("a"), k.steps("b")
		i := k.each(n)
		at := k.strided(i, d, sa, sb)
		k.store(out, i, f(k, k.load(a, at[0]), k.load(b, at[1])))
	}
}

// expand makes out[i] = a[...].
func expand(k *kernel) {
	a, out, n := k.ptr("a"), k.ptr("out"), k.u32("n")
	d := k.extents()
	s := k.steps("a")
	i := k.each(n)
	k.store(out, i, k.load(a, k.strided(i, d, s)[0]))
}

// equal makes out[i] = a[i] == b[i], a byte each.
func equal(load string, class rune, compare string, size int) func(*kernel) {
	return func(k *kernel) {
		a, b, out, n := k.ptr("a"), k.ptr("b"), k.ptr("out"), k.u32("n")
		i := k.each(n)
		x := k.op(class, load, mem(k.at(a, i, size)))
		y := k.op(class, load, mem(k.at(b, i, size)))
		same := k.op(b32, "selp.u32", "1", "0", k.op(pred, compare, x, y))
		k.emit("st.global.u8", mem(k.at(out, i, 1)), same)
	}
}

// cast makes out[i] = convert(a[i]).
func cast(load string, from rune, fromSize int, convert string, to rune, store string, toSize int) func(*kernel) {
	return func(k *kernel) {
		a, out, n := k.ptr("a"), k.ptr("out"), k.u32("n")
		i := k.each(n)
		x := k.op(from, load, mem(k.at(a, i, fromSize)))
		k.emit(store, mem(k.at(out, i, toSize)), k.op(to, convert, x))
	}
}

// sgd takes a step down the gradient.
func sgd(k *kernel) {
	w, rate, g, n := k.ptr("w"), k.ptr("rate"), k.ptr("g"), k.u32("n")
	i := k.each(n)
	step := k.fmul(k.load(rate, "0"), k.load(g, i))
	k.store(w, i, k.fsub(k.load(w, i), step))
}

// adam follows TensorFlow's formula, as the CPU's kernel does: the correction
// of the bias is part of the rate, and epsilon is added to the uncorrected
// root.
func adam(k *kernel) {
	w, m, v := k.ptr("w"), k.ptr("m"), k.ptr("v")
	var s [6]reg
	for i, name := range []string{"power1", "power2", "rate", "beta1", "beta2", "epsilon"} {
		s[i] = k.ptr(name)
	}
	g, n := k.ptr("g"), k.u32("n")
	i := k.each(n)
	for j := range s {
		s[j] = k.load(s[j], "0")
	}
	one := float(1)
	rate := k.fmul(s[2], k.fdiv(k.sqrt(k.fsub(one, s[1])), k.fsub(one, s[0])))
	d := k.load(g, i)
	mi, vi := k.load(m, i), k.load(v, i)
	mi = k.fma(k.fsub(d, mi), k.fsub(one, s[3]), mi)
	vi = k.fma(k.fsub(k.fmul(d, d), vi), k.fsub(one, s[4]), vi)
	k.store(m, i, mi)
	k.store(v, i, vi)
	step := k.fdiv(k.fmul(rate, mi), k.fadd(k.sqrt(vi), s[5]))
	k.store(w, i, k.fsub(k.load(w, i), step))
}
