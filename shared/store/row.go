package store

// row is one row of a table, found once for several of its columns.
type row struct {
	t     *rows
	chunk *chunk // nil: in the open rows
	i     int    // in the chunk, or in the table
}

func (t *rows) row(i int) row {
	if k := i >> chunkBits; k < len(t.chunks) {
		return row{t, &t.chunks[k], i & (chunkLen - 1)}
	}
	return row{t, nil, i}
}

func (r row) at(c int) int64 {
	if r.chunk != nil {
		return r.chunk.at(c, r.i)
	}
	return r.t.at(c, r.i)
}
