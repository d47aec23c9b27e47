package program

// What only networks need: normalisation, dropout, recurrent cells, losses.

// vectors checks that inputs first..last are [c] of type d.
func vectors(p *Program, n *Node, first, last int, d DType, c int64) error {
	for i := first; i <= last; i++ {
		if v := in(p, n, i); v.DType != d || len(v.Shape) != 1 || v.Shape[0] != c {
			return mismatch(p, n, "input %d must be %s[%d]", i, d, c)
		}
	}
	return nil
}

func inferBatchNorm(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 5); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	if !x.DType.Float() || len(x.Shape) != 4 || n.Attrs.Value < 0 {
		return nil, mismatch(p, n, "needs floating images [n,h,w,c] and an epsilon of 0 or more, has %v", n.Attrs.Value)
	}
	d, c := statistics(x.DType), x.Shape[3]
	if err := vectors(p, n, 1, 4, d, c); err != nil {
		return nil, err
	}
	s := Spec{d, Shape{c}}
	return []Spec{{x.DType, x.Shape}, s, s, s, s}, nil
}

func inferBatchNormGrad(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 5); err != nil {
		return nil, err
	}
	dy, x := in(p, n, 0), in(p, n, 1)
	if !x.DType.Float() || len(x.Shape) != 4 || dy.DType != x.DType || !dy.Shape.Equal(x.Shape) {
		return nil, mismatch(p, n, "gradient and images [n,h,w,c] must have one floating type and shape")
	}
	d, c := statistics(x.DType), x.Shape[3]
	if err := vectors(p, n, 2, 4, d, c); err != nil {
		return nil, err
	}
	return []Spec{{x.DType, x.Shape}, {d, Shape{c}}, {d, Shape{c}}}, nil
}

func inferLayerNorm(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 3); err != nil {
		return nil, err
	}
	if err := rows(p, n); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	if !x.DType.Float() || n.Attrs.Value < 0 {
		return nil, mismatch(p, n, "needs a floating type and an epsilon of 0 or more, has %v", n.Attrs.Value)
	}
	d, last := statistics(x.DType), len(x.Shape)-1
	if err := vectors(p, n, 1, 2, d, x.Shape[last]); err != nil {
		return nil, err
	}
	row := Spec{d, x.Shape[:last]}
	return []Spec{{x.DType, x.Shape}, row, row}, nil
}

func inferLayerNormGrad(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 5); err != nil {
		return nil, err
	}
	if err := rows(p, n); err != nil {
		return nil, err
	}
	dy, x := in(p, n, 0), in(p, n, 1)
	if !x.DType.Float() || dy.DType != x.DType || !dy.Shape.Equal(x.Shape) {
		return nil, mismatch(p, n, "gradient and input must have one floating type and shape")
	}
	d, last := statistics(x.DType), len(x.Shape)-1
	if err := vectors(p, n, 2, 2, d, x.Shape[last]); err != nil {
		return nil, err
	}
	for i := 3; i <= 4; i++ {
		if v := in(p, n, i); v.DType != d || !v.Shape.Equal(x.Shape[:last]) {
			return nil, mismatch(p, n, "input %d must be %s%s", i, d, x.Shape[:last])
		}
	}
	return []Spec{{x.DType, x.Shape}, {d, x.Shape[last:]}, {d, x.Shape[last:]}}, nil
}

// fraction checks what a dropout drops.
func fraction(p *Program, n *Node) error {
	if f := n.Attrs.Value; !(f >= 0 && f < 1) {
		return mismatch(p, n, "cannot drop a fraction of %v: must be 0 or more and below 1", f)
	}
	return nil
}

func inferDropout(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 1); err != nil {
		return nil, err
	}
	if err := fraction(p, n); err != nil {
		return nil, err
	}
	x := in(p, n, 0)
	return []Spec{{x.DType, x.Shape}, {Uint8, x.Shape}}, nil
}

func inferDropoutGrad(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 2); err != nil {
		return nil, err
	}
	if err := fraction(p, n); err != nil {
		return nil, err
	}
	dy, mask := in(p, n, 0), in(p, n, 1)
	if !dy.DType.Float() || mask.DType != Uint8 || !mask.Shape.Equal(dy.Shape) {
		return nil, mismatch(p, n, "needs a floating gradient and a uint8 mask of its shape")
	}
	return one(dy.DType, dy.Shape), nil
}

func inferRandom(p *Program, n *Node) ([]Spec, error) {
	if err := made(p, n, 0); err != nil {
		return nil, err
	}
	if !n.Attrs.DType.Float() {
		return nil, mismatch(p, n, "needs a floating type, has %s", n.Attrs.DType)
	}
	return one(n.Attrs.DType, n.Attrs.Shape), nil
}

// cells checks inputs of an LSTM: gates [n,4h], then states [n,h].
func cells(p *Program, n *Node, want int) (gates, state Shape, err error) {
	if err := floats(p, n, want); err != nil {
		return nil, nil, err
	}
	gates, state = in(p, n, 0).Shape, in(p, n, 1).Shape
	if len(gates) != 2 || len(state) != 2 || gates[0] != state[0] || gates[1] != 4*state[1] {
		return nil, nil, mismatch(p, n, "needs gates [n,4h] and states [n,h]")
	}
	for i := 2; i < want; i++ {
		if !in(p, n, i).Shape.Equal(state) {
			return nil, nil, mismatch(p, n, "input %d must be %s", i, state)
		}
	}
	return gates, state, nil
}

func inferLSTM(p *Program, n *Node) ([]Spec, error) {
	gates, state, err := cells(p, n, 2)
	if err != nil {
		return nil, err
	}
	d := in(p, n, 0).DType
	return []Spec{{d, gates}, {d, state}, {d, state}}, nil
}

func inferLSTMGrad(p *Program, n *Node) ([]Spec, error) {
	gates, state, err := cells(p, n, 5)
	if err != nil {
		return nil, err
	}
	d := in(p, n, 0).DType
	return []Spec{{d, gates}, {d, state}}, nil
}

func inferSparseXent(p *Program, n *Node) ([]Spec, error) {
	if err := arity(p, n, 2); err != nil {
		return nil, err
	}
	x, y := in(p, n, 0), in(p, n, 1)
	if !x.DType.Float() || !y.DType.index() {
		return nil, mismatch(p, n, "needs floating logits and int32 or int64 labels")
	}
	if len(x.Shape) != 2 || len(y.Shape) != 1 || x.Shape[0] != y.Shape[0] || x.Shape[1] == 0 {
		return nil, mismatch(p, n, "needs logits [n,c] and labels [n]")
	}
	return []Spec{{x.DType, y.Shape}, {x.DType, x.Shape}}, nil
}

func inferXent(p *Program, n *Node) ([]Spec, error) {
	if err := floats(p, n, 2); err != nil {
		return nil, err
	}
	x, y := in(p, n, 0), in(p, n, 1)
	if len(x.Shape) != 2 || !y.Shape.Equal(x.Shape) || x.Shape[1] == 0 {
		return nil, mismatch(p, n, "needs logits and labels [n,c]")
	}
	return []Spec{{x.DType, x.Shape[:1]}, {x.DType, x.Shape}}, nil
}
