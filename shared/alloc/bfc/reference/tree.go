package reference

// The tree of free chunks is a treap: ordered by size, then address, from left
// to right, and by a scrambled address from the root down, which keeps it
// shallow. Functions take a root, or nil, and return the new one.

type node struct{ left, right *Chunk }

func (c *Chunk) before(d *Chunk) bool {
	return c.Size < d.Size || c.Size == d.Size && c.Addr < d.Addr
}

func (c *Chunk) rank() uint64 {
	x := c.Addr * 0x9e3779b97f4a7c15
	return (x ^ x>>29) * 0xbf58476d1ce4e5b9
}

func insert(t, c *Chunk) *Chunk {
	switch {
	case t == nil || c.rank() > t.rank():
		c.left, c.right = divide(t, c)
		return c
	case c.before(t):
		t.left = insert(t.left, c)
	default:
		t.right = insert(t.right, c)
	}
	return t
}

// remove takes out c, which must be in the tree.
func remove(t, c *Chunk) *Chunk {
	switch {
	case t == c:
		return join(c.left, c.right)
	case c.before(t):
		t.left = remove(t.left, c)
	default:
		t.right = remove(t.right, c)
	}
	return t
}

// divide makes two trees of t, of what comes before c and after it.
func divide(t, c *Chunk) (before, after *Chunk) {
	switch {
	case t == nil:
		return nil, nil
	case t.before(c):
		t.right, after = divide(t.right, c)
		return t, after
	default:
		before, t.left = divide(t.left, c)
		return before, t
	}
}

// join makes one tree of two, the first all before the second.
func join(t, u *Chunk) *Chunk {
	switch {
	case t == nil:
		return u
	case u == nil:
		return t
	case t.rank() > u.rank():
		t.right = join(t.right, u)
		return t
	default:
		u.left = join(t, u.left)
		return u
	}
}

// each calls f for the chunks of at least size bytes in order until it returns
// false, which it then returns.
func each(t *Chunk, size int64, f func(*Chunk) bool) bool {
	if t == nil {
		return true
	}
	if t.Size >= size && (!each(t.left, size, f) || !f(t)) {
		return false
	}
	return each(t.right, size, f)
}
