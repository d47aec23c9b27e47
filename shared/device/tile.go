package device

// TilePadded is the bytes that a TPU needs for a tensor of 32-bit elements,
// whose two innermost extents are padded to tiles of 8 by 128. Extents are
// outermost first, by layout. The compiler may find a better layout, so this
// is an upper estimate. A scalar or vector counts as one row.
func TilePadded(extents []int64) int64 {
	const sublanes, lanes, element = 8, 128, 4
	up := func(n, to int64) int64 { return (n + to - 1) / to * to }
	rows, columns := int64(1), int64(1)
	if n := len(extents); n > 0 {
		columns = extents[n-1]
		if n > 1 {
			rows = extents[n-2]
		}
	}
	bytes := up(rows, sublanes) * up(columns, lanes) * element
	for _, n := range extents[:max(0, len(extents)-2)] {
		bytes *= n
	}
	return bytes
}
