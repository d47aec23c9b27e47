package program

import "strconv"

// DType is the type of a tensor's elements.
type DType uint8

// The element types.
const (
	Float32 DType = iota
	Float64
	Float16
	BFloat16
	Int32
	Int64
	Uint8
	Bool
	numDTypes
)

var dtypes = [numDTypes]struct {
	name string
	size int64
}{
	{"float32", 4},
	{"float64", 8},
	{"float16", 2},
	{"bfloat16", 2},
	{"int32", 4},
	{"int64", 8},
	{"uint8", 1},
	{"bool", 1},
}

// Size is the bytes of one element.
func (d DType) Size() int64 { return dtypes[d].size }

// String is the type's name as Python users write it.
func (d DType) String() string {
	if d >= numDTypes {
		return "dtype(" + strconv.Itoa(int(d)) + ")"
	}
	return dtypes[d].name
}

// Shape is the extent of a tensor by dimension, outermost first; nil is a
// scalar. Images are NHWC.
type Shape []int64

// Elements is the product of the extents; 1 for a scalar.
func (s Shape) Elements() int64 {
	n := int64(1)
	for _, d := range s {
		n *= d
	}
	return n
}

// Equal says whether both have the same extents.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// String writes the shape as TensorFlow's messages do: [64,224,224,3].
func (s Shape) String() string {
	b := []byte{'['}
	for i, d := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, d, 10)
	}
	return string(append(b, ']'))
}

// Float says whether the type is a floating one.
func (d DType) Float() bool { return d <= BFloat16 }
