package ptx

import "strings"

// Kind is the type of a kernel's parameter.
type Kind uint8

// The kinds. A Pointer is a device address, an Int 32 bits.
const (
	Pointer Kind = iota
	Int
	Float
)

func (k Kind) ptx() string { return [...]string{"u64", "u32", "f32"}[k] }

// Param is one parameter of a kernel.
type Param struct {
	Name string
	Kind Kind
}

// Kernel says how an entry point of the module is called.
type Kernel struct {
	Name   string
	Params []Param
}

// How many threads make a block. Tile is the side of the squares in which a
// product of matrices works, whose blocks are Tile x Tile threads.
const (
	Threads = 256
	Tile    = 16
)

// The oldest card and driver that take the module: compute capability 5.0, and
// the PTX version of CUDA 9.0.
const header = `// Made by package ptx of Tideline; do not edit.
.version 6.0
.target sm_50
.address_size 64
`

// Module gives the text of all kernels, and how each is called, by the order
// of the text.
func Module() (text string, kernels []Kernel) {
	var b strings.Builder
	b.WriteString(header)
	for _, e := range entries {
		k := &kernel{name: "tl_" + e.name, count: map[rune]int{}}
		e.make(k)
		b.WriteString("\n")
		b.WriteString(k.text())
		kernels = append(kernels, Kernel{k.name, k.params})
	}
	return b.String(), kernels
}

// entries are the kernels; their order is the order of the text.
var entries = []struct {
	name string
	make func(k *kernel)
}{
	{"tanh", unary((*kernel).tanh)},
	{"relu", unary(func(k *kernel, x reg) reg { return k.fmax(x, float(0)) })},
	{"tanh_grad", binary(func(k *kernel, y, dy reg) reg { return k.fmul(dy, k.fsub(float(1), k.fmul(y, y))) })},
	{"relu_grad", binary(reluGrad)},
	{"add", binary((*kernel).fadd)},
	{"sub", binary((*kernel).fsub)},
	{"mul", binary((*kernel).fmul)},
	{"add_b", broadcast((*kernel).fadd)},
	{"sub_b", broadcast((*kernel).fsub)},
	{"mul_b", broadcast((*kernel).fmul)},
	{"expand", expand},
	{"reduce", reduce},
	{"gemm", gemm},
	{"im2col", im2col},
	{"col2im", col2im},
	{"conv", conv},
	{"conv_dx", convInput},
	{"conv_dw", convFilter},
	{"avgpool", avgPool},
	{"avgpool_grad", avgPoolGrad},
	{"maxpool", maxPool},
	{"maxpool_grad", maxPoolGrad},
	{"xent_i64", func(k *kernel) { crossEntropy(k, true) }},
	{"xent_i32", func(k *kernel) { crossEntropy(k, false) }},
	{"argmax", argMax},
	{"equal_i64", equal("ld.global.u64", b64, "setp.eq.s64", 8)},
	{"equal_i32", equal("ld.global.u32", b32, "setp.eq.s32", 4)},
	{"equal_f32", equal("ld.global.f32", f32, "setp.eq.f32", 4)},
	{"equal_u8", equal("ld.global.u8", b32, "setp.eq.s32", 1)},
	{"cast_u8_f32", cast("ld.global.u8", b32, 1, "cvt.rn.f32.u32", f32, "st.global.f32", 4)},
	{"cast_i32_f32", cast("ld.global.u32", b32, 4, "cvt.rn.f32.s32", f32, "st.global.f32", 4)},
	{"cast_i64_f32", cast("ld.global.u64", b64, 8, "cvt.rn.f32.s64", f32, "st.global.f32", 4)},
	{"cast_f32_i32", cast("ld.global.f32", f32, 4, "cvt.rzi.s32.f32", b32, "st.global.u32", 4)},
	{"cast_f32_i64", cast("ld.global.f32", f32, 4, "cvt.rzi.s64.f32", b64, "st.global.u64", 8)},
	{"sgd", sgd},
	{"adam", adam},
}
