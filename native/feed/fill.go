package feed

import (
	"fmt"
	"slices"
	"unsafe"

	"tideline/shared/program"
)

// Fill copies the content of the batch that Next gave last into a tensor of
// the program: input 0 are the images, float32, input 1 the labels, int64. The
// elements must be that batch's. With it and Pipeline a Feed takes the place
// of a modelled pipeline and its data.
func (f *Feed) Fill(elements []int32, input int, tensor *program.Value, dst []byte) error {
	b := f.current
	if b == nil || !slices.Equal(b.Indices, elements) {
		return fmt.Errorf("fill %s: the %d elements asked for are not the batch that was taken last", tensor.Name, len(elements))
	}
	var src []byte
	switch {
	case input == 0 && tensor.DType == program.Float32:
		src = memory(b.Images)
	case input == 1 && tensor.DType == program.Int64:
		src = memory(b.Labels)
	default:
		return fmt.Errorf("fill %s: input %d, %s%s: want images float32 or labels int64", tensor.Name, input, tensor.DType, tensor.Shape)
	}
	if int64(len(src)) > tensor.Bytes() || len(dst) < len(src) {
		return fmt.Errorf("fill %s: %d bytes of a batch into %s%s and %d bytes", tensor.Name, len(src), tensor.DType, tensor.Shape, len(dst))
	}
	copy(dst, src)
	return nil
}

func memory[T float32 | int64](s []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(t)))
}
