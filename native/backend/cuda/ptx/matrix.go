package ptx

// gemm makes c[i*n+j] = sum over p of a[i*sai+p*sap] * b[p*sbp+j*sbj], plus
// what c was where acc is not 0. The steps let one kernel serve transposed
// inputs. A block makes a tile of c: rows by blockIdx.x, which has room for
// more than the 65535 of blockIdx.y.
func gemm(k *kernel) {
	a, b, c := k.ptr("a"), k.ptr("b"), k.ptr("c")
	m, n, p := k.u32("m"), k.u32("n"), k.u32("k")
	sai, sap, sbp, sbj := k.u32("sai"), k.u32("sap"), k.u32("sbp"), k.u32("sbj")
	acc := k.u32("acc")
	tileA, tileB := k.sharedFloats("tile_a", Tile*Tile), k.sharedFloats("tile_b", Tile*Tile)
	tx, ty := k.op(b32, "mov.u32", "%tid.x"), k.op(b32, "mov.u32", "%tid.y")
	row := k.mad(k.op(b32, "mov.u32", "%ctaid.x"), num(Tile), ty)
	col := k.mad(k.op(b32, "mov.u32", "%ctaid.y"), num(Tile), tx)
	inRow, inCol := k.icmp("lt", row, m), k.icmp("lt", col, n)
	mine := k.mad(ty, num(Tile), tx)
	mineA, mineB := k.slot(tileA, mine), k.slot(tileB, mine)
	rowA, colB := k.slot(tileA, k.mul(ty, num(Tile))), k.slot(tileB, tx)
	sum := k.fvar(float(0))
	k.loop("0", p, num(Tile), func(at reg) {
		pa, pb := k.add(at, tx), k.add(at, ty)
		k.tile(mineA, a, inRow, pa, p, row, sai, sap)
		k.tile(mineB, b, inCol, pb, p, col, sbj, sbp)
		k.barrier()
		for q := range Tile {
			x := k.op(f32, "ld.shared.f32", mem(rowA+reg("+"+string(num(4*q)))))
			y := k.op(f32, "ld.shared.f32", mem(colB+reg("+"+string(num(4*Tile*q)))))
			k.facc(sum, x, y)
		}
		k.barrier()
	})
	k.when(k.op(pred, "and.pred", inRow, inCol), func() {
		out := k.mad(row, n, col)
		k.when(k.icmp("ne", acc, "0"), func() {
			k.emit("add.rn.f32", sum, sum, k.load(c, out))
		})
		k.store(c, out, sum)
	})
}

// tile brings one number of a matrix into shared memory, 0 beyond its edge.
func (k *kernel) tile(dst, src, inside, along, extent, across, stepAcross, stepAlong reg) {
	v := k.fvar(float(0))
	ok := k.op(pred, "and.pred", inside, k.icmp("lt", along, extent))
	k.when(ok, func() {
		k.fset(v, k.load(src, k.mad(along, stepAlong, k.mul(across, stepAcross))))
	})
	k.emit("st.shared.f32", mem(dst), v)
}
