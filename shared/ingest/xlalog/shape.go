package xlalog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// Shape is an array's type as XLA writes it.
type Shape struct {
	Element string // f32, bf16, s8, pred
	Dims    []int64
	Layout  []int64 // minor dimension first; nil when not told
	Tile    []int64 // the first tile's sizes, nil when not told
	TileAs  string  // "T(8,128)"
	Plain   string  // without layout: s32[8388608,8,4]
}

var elements = []struct {
	name string
	bits int64
}{
	{"pred", 8},
	{"s2", 2},
	{"u2", 2},
	{"s4", 4},
	{"u4", 4},
	{"s8", 8},
	{"u8", 8},
	{"f8e5m2", 8},
	{"f8e4m3fn", 8},
	{"f8e4m3b11fnuz", 8},
	{"s16", 16},
	{"u16", 16},
	{"f16", 16},
	{"bf16", 16},
	{"s32", 32},
	{"u32", 32},
	{"f32", 32},
	{"s64", 64},
	{"u64", 64},
	{"f64", 64},
	{"c64", 64},
	{"c128", 128},
}

// ElementBits is the size of an element type, 0 for an unknown one.
func ElementBits(name string) int64 {
	for _, e := range elements {
		if e.name == name {
			return e.bits
		}
	}
	return 0
}

// ParseShape reads "s32[8388608,8,4]{2,1,0:T(8,128)}". Tuples are not arrays.
func ParseShape(s string) (Shape, bool) {
	open := strings.IndexByte(s, '[')
	end := strings.IndexByte(s, ']')
	if open < 1 || end < open || s[0] == '(' {
		return Shape{}, false
	}
	sh := Shape{Element: s[:open], Plain: s[:end+1]}
	if ElementBits(sh.Element) == 0 {
		return Shape{}, false
	}
	var ok bool
	if sh.Dims, ok = numbers(s[open+1 : end]); !ok || len(sh.Dims) > 32 {
		return Shape{}, false
	}
	layout, has := strings.CutPrefix(s[end+1:], "{")
	if !has {
		return sh, true
	}
	layout, _, _ = strings.Cut(layout, "}")
	order, tiles, _ := strings.Cut(layout, ":")
	if sh.Layout, ok = numbers(order); !ok || len(sh.Layout) != len(sh.Dims) || !permutation(sh.Layout) {
		sh.Layout = nil
	}
	if inner, ok := lines.Between(tiles, "T(", ")"); ok {
		if sh.Tile, ok = numbers(inner); !ok {
			sh.Tile = nil
		} else {
			sh.TileAs = "T(" + inner + ")"
		}
	}
	return sh, true
}

func numbers(s string) ([]int64, bool) {
	out := []int64{}
	if strings.TrimSpace(s) == "" {
		return out, true
	}
	for part := range strings.SplitSeq(s, ",") {
		n, ok := lines.Int(firstTwo(lines.Digits(strings.TrimLeft(strings.TrimSpace(part), "<="))))
		if !ok {
			return nil, false
		}
		out = append(out, n)
	}
	return out, true
}

func permutation(list []int64) bool {
	seen := make([]bool, len(list))
	for _, n := range list {
		if n >= int64(len(list)) || seen[n] {
			return false
		}
		seen[n] = true
	}
	return true
}

// Bytes is the size without padding; false when it does not fit 63 bits.
func (s *Shape) Bytes() (int64, bool) { return product(s.Dims, ElementBits(s.Element)) }

func product(dims []int64, bits int64) (int64, bool) {
	n := int64(1)
	for _, d := range dims {
		if d > 0 && n > (1<<55)/d {
			return 0, false
		}
		n *= d
	}
	return (n*bits + 7) / 8, true
}

// Padded is the size with every tiled dimension rounded up to whole tiles;
// false without a tile that fits the rank, or a size beyond 63 bits.
func (s *Shape) Padded() (int64, bool) {
	if len(s.Tile) == 0 || len(s.Tile) > len(s.Dims) || len(s.Layout) != len(s.Dims) {
		return 0, false
	}
	dims := append([]int64{}, s.Dims...)
	for i, t := range s.Tile { // the last tile size belongs to the minor dimension
		d := s.Layout[len(s.Tile)-1-i]
		if t <= 0 || dims[d] > 1<<55 {
			return 0, false
		}
		dims[d] = (dims[d] + t - 1) / t * t
	}
	return product(dims, ElementBits(s.Element))
}
