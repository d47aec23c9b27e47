package pickle

func (m *Machine) container(op byte) error {
	switch op {
	case opEmptyTuple:
		m.tuple(len(m.stack))
		return nil
	case opTuple1, opTuple2, opTuple3:
		n := int(op-opTuple1) + 1
		if len(m.stack)-m.floor() < n {
			return m.bad("the stack lacks the items of a tuple")
		}
		m.tuple(len(m.stack) - n)
		return nil
	case opEmptySet:
		m.newObject(Set)
		return nil
	case opAppend, opSetItem:
		n := 1
		if op == opSetItem {
			n = 2
		}
		if len(m.stack)-m.floor() < n+1 {
			return m.bad("%s: the stack lacks a container or its item", opName(op))
		}
		if n == 2 {
			return m.fillDict(op, len(m.stack)-2)
		}
		return m.fillList(op, len(m.stack)-1, List)
	case opAddItems:
		at, err := m.popMark()
		if err != nil {
			return err
		}
		return m.fillList(op, at, Set)
	}
	at, err := m.popMark()
	if err != nil {
		return err
	}
	if op == opTuple {
		m.tuple(at)
		return nil
	}
	// LIST, DICT and FROZENSET make the container below their items.
	kind := map[byte]Kind{opList: List, opDict: Dict, opFrozenSet: Set}[op]
	m.objects = append(m.objects, pack(kind, 0))
	m.charge(8)
	m.push(0)
	copy(m.stack[at+1:], m.stack[at:])
	m.stack[at] = pack(object, uint64(len(m.objects)-1))
	if op == opDict {
		return m.fillDict(op, at+1)
	}
	return m.fillList(op, at+1, kind)
}

func (m *Machine) setItems(op byte) error {
	at, err := m.popMark()
	if err != nil {
		return err
	}
	return m.fillDict(op, at)
}

func (m *Machine) appends(op byte) error {
	at, err := m.popMark()
	if err != nil {
		return err
	}
	return m.fillList(op, at, List)
}

// settle resolves items where they lie, and refuses imported names among them.
func (m *Machine) settle(items []Value) error {
	for i, v := range items {
		switch v.tag() {
		case object:
			if r := m.objects[v.payload()]; r.tag() == Custom {
				items[i] = r
			}
		case Global:
			return m.refuseGlobal(v)
		default:
		}
	}
	return nil
}

// target is the container below the items at position at.
func (m *Machine) target(op byte, at int) (*Value, error) {
	if at-1 < m.floor() {
		return nil, m.bad("%s: the stack lacks a container", opName(op))
	}
	v := m.stack[at-1]
	if v.tag() != object {
		if v.tag() == Global {
			return nil, &RefusedError{Op: opName(op), Name: m.nameOf(v), Offset: m.offset() - 1}
		}
		return nil, m.bad("%s: what lies below the items is no container", opName(op))
	}
	return &m.objects[v.payload()], nil
}

func (m *Machine) fillDict(op byte, at int) error {
	o, err := m.target(op, at)
	if err != nil {
		return err
	}
	items := m.stack[at:]
	if len(items)%2 != 0 {
		return m.bad("%s: a key without a value", opName(op))
	}
	if err := m.settle(items); err != nil {
		return err
	}
	m.stack = m.stack[:at]
	switch {
	case len(items) == 0:
		return nil
	case o.tag() != Dict:
		return m.bad("%s: the container is no dict that can grow", opName(op))
	}
	*o = m.filled(*o, items)
	return nil
}

// filled is what a dict becomes with items added.
func (m *Machine) filled(o Value, items []Value) Value {
	if o.payload() == 0 && m.sink != nil {
		if v, ok := m.sink.Dict(m, items); ok {
			return v
		}
	}
	return m.chainUp(o, items)
}

func (m *Machine) fillList(op byte, at int, kind Kind) error {
	o, err := m.target(op, at)
	if err != nil {
		return err
	}
	items := m.stack[at:]
	if err := m.settle(items); err != nil {
		return err
	}
	m.stack = m.stack[:at]
	if len(items) == 0 {
		return nil
	}
	if m.sink != nil && kind == List && (o.tag() == Custom || o.tag() == List && o.payload() == 0) {
		so := pack(None, 0)
		if o.tag() == Custom {
			so = *o
		}
		if v, ok := m.sink.List(m, so, items); ok {
			*o = v
			return nil
		}
	}
	if o.tag() != kind {
		return m.bad("%s: the container is no list that can grow so", opName(op))
	}
	*o = m.chainUp(*o, items)
	return nil
}

// store copies items into the cells.
func (m *Machine) store(items []Value) uint32 {
	m.spans = append(m.spans, span{off: uint32(len(m.cells)), n: uint32(len(items))})
	m.cells = append(m.cells, items...)
	m.charge(8*len(items) + 12)
	return uint32(len(m.spans) - 1)
}

func (m *Machine) chainUp(o Value, items []Value) Value {
	if o.payload() == 0 {
		m.chains = append(m.chains, chain{})
		m.charge(16)
		o = pack(o.tag(), uint64(len(m.chains)-1))
	}
	c := &m.chains[o.payload()]
	// Items that follow right behind the last ones need no new span.
	if c.last != 0 {
		if s := &m.spans[c.last-1]; int(s.off+s.n) == len(m.cells) {
			m.cells = append(m.cells, items...)
			m.charge(8 * len(items))
			s.n += uint32(len(items))
			c.n += len(items)
			return o
		}
	}
	n := m.store(items) + 1
	if c.last != 0 {
		m.spans[c.last-1].next = n
	} else {
		c.first = n
	}
	c.last = n
	c.n += len(items)
	return o
}

// tuple makes one of the values from position at on.
func (m *Machine) tuple(at int) {
	items := m.stack[at:]
	for i, v := range items {
		if v.tag() == object {
			if r := m.objects[v.payload()]; r.tag() == Custom {
				items[i] = r
			}
		}
	}
	m.stack = m.stack[:at]
	if m.sink != nil && len(items) > 0 {
		if v, ok := m.sink.Tuple(m, items); ok {
			m.push(v)
			return
		}
	}
	m.push(pack(Tuple, uint64(m.store(items))))
}
