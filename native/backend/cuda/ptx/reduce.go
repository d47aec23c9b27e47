package ptx

// reduce makes out[o*inner+i] = scale * sum over m of x[(o*mid+m)*inner+i], a
// block for each result: its threads take turns along m, then add up in a
// tree, so that the order of the sum depends on the sizes alone.
func reduce(k *kernel) {
	x, out, mid, inner, scale := k.ptr("x"), k.ptr("out"), k.u32("mid"), k.u32("inner"), k.scalar("scale")
	part := k.sharedFloats("part", Threads)
	result := k.op(b32, "mov.u32", "%ctaid.x")
	me := k.op(b32, "mov.u32", "%tid.x")
	outer, i := k.split(result, inner)
	first := k.mad(k.mul(outer, mid), inner, i)
	sum := k.fvar(float(0))
	k.loop(me, mid, num(Threads), func(m reg) {
		k.emit("add.rn.f32", sum, sum, k.load(x, k.mad(m, inner, first)))
	})
	mine := k.slot(part, me)
	k.emit("st.shared.f32", mem(mine), sum)
	k.barrier()
	for half := Threads / 2; half > 0; half /= 2 {
		k.when(k.icmp("lt", me, num(half)), func() {
			other := k.op(f32, "ld.shared.f32", mem(k.add(mine, num(4*half))))
			own := k.op(f32, "ld.shared.f32", mem(mine))
			k.emit("st.shared.f32", mem(mine), k.fadd(own, other))
		})
		k.barrier()
	}
	k.when(k.icmp("eq", me, "0"), func() {
		k.store(out, result, k.fmul(k.op(f32, "ld.shared.f32", mem(mine)), scale))
	})
}

// argMax gives the first of equal maxima in each row, a thread a row.
func argMax(k *kernel) {
	x, out, n, c := k.ptr("x"), k.ptr("out"), k.u32("n"), k.u32("c")
	row := k.each(n)
	first := k.mul(row, c)
	top, best := k.fvar(k.load(x, first)), k.ivar("0")
	k.loop("1", c, "1", func(j reg) {
		v := k.load(x, k.add(first, j))
		k.when(k.fcmp("gt", v, top), func() {
			k.fset(top, v)
			k.iset(best, j)
		})
	})
	k.emit("st.global.u64", mem(k.at(out, row, 8)), k.op(b64, "cvt.u64.u32", best))
}

// crossEntropy gives log(sum(exp(x))) - x[label] and softmax(x) -
// onehot(label) per row, a thread a row, the latter possibly over the logits
// themselves. A label outside of the classes makes the row's loss and gradient
// NaN: a kernel has nobody to tell.
func crossEntropy(k *kernel, wide bool) {
	x, labels, loss, back, n, c := k.ptr("x"), k.ptr("labels"), k.ptr("loss"), k.ptr("back"), k.u32("n"), k.u32("c")
	row := k.each(n)
	first := k.mul(row, c)
	var label, bad reg
	if wide {
		l := k.op(b64, "ld.global.u64", mem(k.at(labels, row, 8)))
		bad = k.op(pred, "setp.ge.u64", l, k.op(b64, "cvt.u64.u32", c))
		label = k.op(b32, "cvt.u32.u64", l)
	} else {
		label = k.op(b32, "ld.global.u32", mem(k.at(labels, row, 4)))
		bad = k.op(pred, "setp.ge.u32", label, c)
	}
	label = k.op(b32, "selp.u32", "0", label, bad)
	top := k.fvar(k.load(x, first))
	k.loop("1", c, "1", func(j reg) {
		k.emit("max.f32", top, top, k.load(x, k.add(first, j)))
	})
	at := k.fsub(k.load(x, k.add(first, label)), top)
	total := k.fvar(float(0))
	k.loop("0", c, "1", func(j reg) {
		e := k.exp(k.fsub(k.load(x, k.add(first, j)), top))
		k.store(back, k.add(first, j), e)
		k.emit("add.rn.f32", total, total, e)
	})
	k.when(bad, func() { k.fset(total, reg("0f7FC00000")) })
	scale := k.fdiv(float(1), total)
	k.loop("0", c, "1", func(j reg) {
		g := k.fmul(k.load(back, k.add(first, j)), scale)
		own := k.op(f32, "selp.f32", float(1), float(0), k.icmp("eq", j, label))
		k.store(back, k.add(first, j), k.fsub(g, own))
	})
	k.store(loss, row, k.fsub(k.log(total), at))
}
