package ptx

import (
	"fmt"
	"math"
	"strings"
)

// reg is a register, or an immediate value, as written in an instruction.
type reg string

// The register classes, by the letter that names their registers.
const (
	b32  = 'r'
	b64  = 'd'
	f32  = 'f'
	pred = 'p'
)

// kernel collects the instructions of one entry point.
type kernel struct {
	name   string
	params []Param
	body   strings.Builder
	count  map[rune]int
	labels int
	shared []string
}

// label is a fresh place to jump to.
func (k *kernel) label() string {
	k.labels++
	return fmt.Sprintf("L%d", k.labels)
}

func (k *kernel) place(label string) { fmt.Fprintf(&k.body, "%s:\n", label) }

// fresh gives a register that nothing uses yet.
func (k *kernel) fresh(class rune) reg {
	k.count[class]++
	return reg(fmt.Sprintf("%%%c%d", class, k.count[class]))
}

// emit writes an instruction.
func (k *kernel) emit(op string, args ...reg) {
	s := make([]string, len(args))
	for i, a := range args {
		s[i] = string(a)
	}
	fmt.Fprintf(&k.body, "\t%s %s;\n", op, strings.Join(s, ", "))
}

// op writes an instruction into a fresh register and gives that.
func (k *kernel) op(class rune, op string, args ...reg) reg {
	r := k.fresh(class)
	k.emit(op, append([]reg{r}, args...)...)
	return r
}

// num and float are immediates.
func num(n int) reg { return reg(fmt.Sprint(n)) }

func float(x float64) reg { return reg(fmt.Sprintf("0f%08X", math.Float32bits(float32(x)))) }

// ptr, u32 and scalar declare the next parameter and load it.
func (k *kernel) ptr(name string) reg {
	k.params = append(k.params, Param{name, Pointer})
	p := k.op(b64, "ld.param.u64", k.address(name))
	return k.op(b64, "cvta.to.global.u64", p)
}

func (k *kernel) u32(name string) reg {
	k.params = append(k.params, Param{name, Int})
	return k.op(b32, "ld.param.u32", k.address(name))
}

func (k *kernel) scalar(name string) reg {
	k.params = append(k.params, Param{name, Float})
	return k.op(f32, "ld.param.f32", k.address(name))
}

func (k *kernel) address(name string) reg { return reg("[" + k.param(name) + "]") }

// Integer arithmetic on 32 bits.
func (k *kernel) add(a, b reg) reg    { return k.op(b32, "add.s32", a, b) }
func (k *kernel) sub(a, b reg) reg    { return k.op(b32, "sub.s32", a, b) }
func (k *kernel) mul(a, b reg) reg    { return k.op(b32, "mul.lo.s32", a, b) }
func (k *kernel) mad(a, b, c reg) reg { return k.op(b32, "mad.lo.s32", a, b, c) }
func (k *kernel) min(a, b reg) reg    { return k.op(b32, "min.s32", a, b) }
func (k *kernel) max(a, b reg) reg    { return k.op(b32, "max.s32", a, b) }

// split gives the quotient and the remainder of an unsigned division.
func (k *kernel) split(a, b reg) (q, r reg) {
	q = k.op(b32, "div.u32", a, b)
	return q, k.sub(a, k.mul(q, b))
}

// Float arithmetic.
func (k *kernel) fadd(a, b reg) reg   { return k.op(f32, "add.rn.f32", a, b) }
func (k *kernel) fsub(a, b reg) reg   { return k.op(f32, "sub.rn.f32", a, b) }
func (k *kernel) fmul(a, b reg) reg   { return k.op(f32, "mul.rn.f32", a, b) }
func (k *kernel) fdiv(a, b reg) reg   { return k.op(f32, "div.rn.f32", a, b) }
func (k *kernel) fma(a, b, c reg) reg { return k.op(f32, "fma.rn.f32", a, b, c) }
func (k *kernel) fmax(a, b reg) reg   { return k.op(f32, "max.f32", a, b) }
func (k *kernel) sqrt(a reg) reg      { return k.op(f32, "sqrt.rn.f32", a) }
func (k *kernel) fvar(v reg) reg      { return k.op(f32, "mov.f32", v) }
func (k *kernel) fset(dst, v reg)     { k.emit("mov.f32", dst, v) }
func (k *kernel) facc(dst, a, b reg)  { k.emit("fma.rn.f32", dst, a, b, dst) }
func (k *kernel) ivar(v reg) reg      { return k.op(b32, "mov.u32", v) }
func (k *kernel) iset(dst, v reg)     { k.emit("mov.u32", dst, v) }
func (k *kernel) fromUint(a reg) reg  { return k.op(f32, "cvt.rn.f32.u32", a) }
func (k *kernel) fcmp(how string, a, b reg) reg {
	return k.op(pred, "setp."+how+".f32", a, b)
}

// log2e turns powers of e into powers of 2, for which there is an instruction.
const log2e = 1.4426950408889634

// exp is e to the power of a, to about two units in the last place and the
// rounding of a times log2(e).
func (k *kernel) exp(a reg) reg {
	return k.op(f32, "ex2.approx.f32", k.fmul(a, float(log2e)))
}

// log is the natural logarithm of a.
func (k *kernel) log(a reg) reg {
	return k.fmul(k.op(f32, "lg2.approx.f32", a), float(1/log2e))
}

func (k *kernel) icmp(how string, a, b reg) reg { return k.op(pred, "setp."+how+".s32", a, b) }

// at is the address of element i of size bytes behind p.
func (k *kernel) at(p, i reg, size int) reg {
	return k.op(b64, "mad.wide.u32", i, num(size), p)
}

func (k *kernel) load(p, i reg) reg {
	return k.op(f32, "ld.global.f32", mem(k.at(p, i, 4)))
}

func (k *kernel) store(p, i, v reg) { k.emit("st.global.f32", mem(k.at(p, i, 4)), v) }

func mem(address reg) reg { return "[" + address + "]" }

// each makes the thread's index over all blocks and leaves the kernel when it
// is not below n.
func (k *kernel) each(n reg) reg {
	block := k.op(b32, "mov.u32", "%ctaid.x")
	size := k.op(b32, "mov.u32", "%ntid.x")
	i := k.mad(block, size, k.op(b32, "mov.u32", "%tid.x"))
	k.jump(k.op(pred, "setp.ge.u32", i, n), end)
	return i
}

// end is the label before the kernel's return.
const end = "DONE"

func (k *kernel) jump(when reg, label string) {
	fmt.Fprintf(&k.body, "\t@%s bra %s;\n", when, label)
}

func (k *kernel) jumpUnless(when reg, label string) {
	fmt.Fprintf(&k.body, "\t@!%s bra %s;\n", when, label)
}

// when runs the body where the predicate holds.
func (k *kernel) when(p reg, body func()) {
	skip := k.label()
	k.jumpUnless(p, skip)
	body()
	k.place(skip)
}

// loop counts a fresh register from a value up to, not including, another.
func (k *kernel) loop(from, to, step reg, body func(i reg)) {
	i := k.ivar(from)
	again, out := k.label(), k.label()
	k.place(again)
	k.jump(k.icmp("ge", i, to), out)
	body(i)
	k.emit("add.s32", i, i, step)
	fmt.Fprintf(&k.body, "\tbra %s;\n", again)
	k.place(out)
}

// sharedFloats declares a block of shared memory and gives its address.
func (k *kernel) sharedFloats(name string, n int) reg {
	k.shared = append(k.shared, fmt.Sprintf("\t.shared .align 4 .b8 %s_%s[%d];\n", k.name, name, 4*n))
	return k.op(b32, "mov.u32", reg(k.name+"_"+name))
}

// slot is the address of float i in shared memory.
func (k *kernel) slot(base, i reg) reg { return k.mad(i, "4", base) }

func (k *kernel) barrier() { k.body.WriteString("\tbar.sync 0;\n") }

// text is the finished entry point.
func (k *kernel) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".visible .entry %s(\n", k.name)
	for i, p := range k.params {
		sep := ","
		if i == len(k.params)-1 {
			sep = ""
		}
		fmt.Fprintf(&b, "\t.param .%s %s%s\n", p.Kind.ptx(), k.param(p.Name), sep)
	}
	b.WriteString(")\n{\n")
	for _, c := range []struct {
		class rune
		kind  string
	}{{pred, "pred"}, {b32, "b32"}, {b64, "b64"}, {f32, "f32"}} {
		if n := k.count[c.class]; n > 0 {
			fmt.Fprintf(&b, "\t.reg .%s %%%c<%d>;\n", c.kind, c.class, n+1)
		}
	}
	for _, s := range k.shared {
		b.WriteString(s)
	}
	b.WriteString(k.body.String())
	fmt.Fprintf(&b, "%s:\n\tret;\n}\n", end)
	return b.String()
}

// param is the symbol of a parameter. Parameters share the names of a module
// with its entry points, so a plain tl_add_b could be either.
func (k *kernel) param(name string) string { return k.name + "_param_" + name }
