package bfclog

import (
	"strconv"
	"strings"
)

// between returns the text after the first occurrence of prefix up to the
// first of the stop characters, or to the end.
func between(s, prefix, stops string) (string, bool) {
	i := strings.Index(s, prefix)
	if i < 0 {
		return "", false
	}
	s = s[i+len(prefix):]
	if j := strings.IndexAny(s, stops); j >= 0 {
		s = s[:j]
	}
	return s, true
}

// numberAfter reads the decimal number that follows label.
func numberAfter(s, label string) Size {
	_, after, ok := strings.Cut(s, label)
	if !ok {
		return Size{}
	}
	return leadingNumber(strings.TrimLeft(after, " \t"))
}

// sizeAfter reads the printed size that follows label.
func sizeAfter(s, label string) Size {
	_, after, ok := strings.Cut(s, label)
	if !ok {
		return Size{}
	}
	size, _ := scanSize(strings.TrimLeft(after, " \t"))
	return size
}

func leadingNumber(s string) Size {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	n, err := strconv.ParseUint(s[:i], 10, 64)
	switch {
	case err != nil && i == 0:
		return Size{}
	case err != nil || n >= huge:
		return beyond
	}
	return ExactSize(int64(n))
}

// countOrSize reads a Stats value: bytes in full, or printed with a unit.
func countOrSize(s string) (Size, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return ExactSize(n), true
	}
	return ParseSize(s)
}

// parseChunk reads the many forms of a chunk line: the word for its state, an
// address, then labelled values in any order.
func parseChunk(body string) (c Chunk, ok bool) {
	f := strings.Fields(body)
	if len(f) < 3 || f[1] != "at" {
		return c, false
	}
	switch f[0] {
	case "Chunk", "InUse":
		c.InUse = true
	case "Free":
	default:
		return c, false
	}
	addr := strings.TrimPrefix(strings.TrimPrefix(f[2], "0x"), "0X")
	var err error
	if c.Address, err = strconv.ParseUint(addr, 16, 64); err != nil {
		return c, false
	}
	for i := 3; i+1 < len(f); i++ {
		switch f[i] {
		case "size":
			if c.Size, err = strconv.ParseInt(f[i+1], 10, 64); err != nil || c.Size <= 0 {
				return c, false
			}
		case "next":
			c.Next, err = strconv.ParseUint(f[i+1], 10, 64)
			c.HasNext = err == nil
		case "op":
			c.Op = f[i+1]
		case "step":
			c.Step, _ = strconv.ParseInt(f[i+1], 10, 64)
		case "freed_at_count":
			c.FreedAt, _ = strconv.ParseInt(f[i+1], 10, 64)
		case "tag":
			c.Tag = f[i+1]
		}
	}
	// Address 0 stands for no memory.
	return c, c.Size > 0 && c.Address > 0 && c.Address+uint64(c.Size) > c.Address
}

// parseBin reads "Bin (256): Total Chunks: 4, Chunks in use: 4. …" in both
// generations of its columns.
func parseBin(body string) (b Bin, freeOnly, ok bool) {
	text, found := between(body, "Bin (", ")")
	nominal, err := strconv.ParseInt(text, 10, 64)
	if !found || err != nil {
		return b, false, false
	}
	b.Index = -1
	for i := range 21 {
		if nominal == 256<<i {
			b.Index = i
		}
	}
	total, used := numberAfter(body, "Total Chunks:"), numberAfter(body, "Chunks in use:")
	if b.Index < 0 || !total.Known || !used.Known {
		return b, false, false
	}
	b.Chunks, b.InUse = total.N, used.N
	b.Allocated = sizeBefore(body, " allocated for chunks")
	b.Used = sizeBefore(body, " in use in bin")
	b.Requested = sizeBefore(body, " client-requested in use in bin")
	b.RequestedForAllChunks = sizeBefore(body, " client-requested for chunks")
	return b, b.RequestedForAllChunks.Known, true
}

// sizeBefore reads the printed size that stands right before label.
func sizeBefore(s, label string) Size {
	before, _, ok := strings.Cut(s, label)
	if !ok {
		return Size{}
	}
	head := before
	size, _ := ParseSize(head[strings.LastIndexByte(head, ' ')+1:])
	return size
}

// parseState reads a chunk-state line; prev and next are left out.
func parseState(body string) (c ChunkState, ok bool) {
	if j := strings.Index(body, ", prev:"); j >= 0 {
		body = body[:j]
	} else if j := strings.Index(body, ", next:"); j >= 0 {
		body = body[:j]
	}
	c.Size = sizeAfter(body, "Size:")
	c.Requested = sizeAfter(body, "Requested Size:")
	c.InUse = strings.Contains(body, "in_use: 1")
	return c, c.Size.Known
}

// parseClass reads "A Chunks of size N totalling T".
func parseClass(body string) (c SizeClass, ok bool) {
	f := strings.Fields(body)
	if len(f) < 5 || f[1] != "Chunks" || f[2] != "of" || f[3] != "size" {
		return c, false
	}
	var e1, e2 error
	c.Count, e1 = strconv.ParseInt(f[0], 10, 64)
	c.Size, e2 = strconv.ParseInt(f[4], 10, 64)
	// Figures beyond any machine would overflow the sums.
	ok = e1 == nil && e2 == nil && c.Count > 0 && c.Size > 0 && c.Count <= 1<<40 && c.Size <= (1<<62)/c.Count
	return c, ok
}

// isBar says whether s is (a piece of) the usage bar.
func isBar(s string) bool {
	if s == "" || len(s) > 100 {
		return false
	}
	for i := range len(s) {
		if s[i] != '*' && s[i] != '_' && s[i] != 'x' {
			return false
		}
	}
	return true
}

// isGap recognises the marks by which people say that they left lines out.
func isGap(s string) bool {
	if s == "" || len(s) > 80 {
		return false
	}
	low := strings.ToLower(s)
	for _, w := range []string{"snip", "omitted", "truncated", "left out", "many more lines", "skipped"} {
		if strings.Contains(low, w) && strings.ContainsAny(s, ".<[(…") {
			return true
		}
	}
	rest := strings.Trim(s, ".…[]()<>*-~ \t")
	return rest == "" && (strings.Contains(s, "..") || strings.Contains(s, "…"))
}

// parseShape reads "[128,225,225,3]" at the start of s.
func parseShape(s string) (shape []int64, rest string, ok bool) {
	if !strings.HasPrefix(s, "[") {
		return nil, s, false
	}
	end := strings.IndexByte(s, ']')
	if end < 0 || end > 400 {
		return nil, s, false
	}
	inner := strings.TrimSpace(s[1:end])
	if inner == "" {
		return []int64{}, s[end+1:], true
	}
	for p := range strings.SplitSeq(inner, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(p), 10, 64)
		if err != nil {
			return nil, s, false
		}
		shape = append(shape, n)
	}
	return shape, s[end+1:], true
}

// Elements is the product of the dimensions; false when it does not fit.
func (t *Tensor) Elements() (int64, bool) {
	if !t.HasShape {
		return 0, false
	}
	n := int64(1)
	for _, d := range t.Shape {
		if d < 0 {
			return 0, false
		}
		if d > 0 && n > (1<<58)/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

// dtypes are TensorFlow's names in error texts, with the bytes of an element.
var dtypes = []struct {
	name string
	size int64
}{
	{"float", 4},
	{"double", 8},
	{"half", 2},
	{"bfloat16", 2},
	{"int8", 1},
	{"int16", 2},
	{"int32", 4},
	{"int64", 8},
	{"uint8", 1},
	{"uint16", 2},
	{"uint32", 4},
	{"uint64", 8},
	{"bool", 1},
	{"complex64", 8},
	{"complex128", 16},
	{"qint8", 1},
	{"quint8", 1},
	{"qint16", 2},
	{"quint16", 2},
	{"qint32", 4},
	{"float8_e5m2", 1},
	{"float8_e4m3fn", 1},
	{"string", 24},
	{"resource", 0},
	{"variant", 0},
}

// DTypeSize is the size of one element of a TensorFlow type, 0 if unknown.
func DTypeSize(name string) int64 {
	for _, d := range dtypes {
		if d.name == name {
			return d.size
		}
	}
	return 0
}
