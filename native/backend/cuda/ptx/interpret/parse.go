package interpret

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Module is a parsed text.
type Module struct{ entries map[string]*entry }

type entry struct {
	params map[string]int
	regs   map[byte]int
	vars   map[string]uint64 // shared memory: offset by name
	shared uint64
	code   []func(*thread)
	labels map[string]int
	jumps  []jump
}

// jump is a branch whose label may not have been seen yet.
type jump struct {
	at    int
	label string
	when  operand // nil: always
	not   bool
}

// operand reads a value as 64 bits; floats are their bits.
type operand func(t *thread) uint64

// Parse reads the text of package ptx.
func Parse(text string) (*Module, error) {
	m := &Module{entries: map[string]*entry{}}
	var e *entry
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		var err error
		switch {
		case line == "" || strings.HasPrefix(line, "//") || strings.HasPrefix(line, ".version") ||
			strings.HasPrefix(line, ".target") || strings.HasPrefix(line, ".address_size") || line == ")" || line == "{":
		case strings.HasPrefix(line, ".visible .entry "):
			name := strings.TrimSuffix(strings.TrimPrefix(line, ".visible .entry "), "(")
			e = &entry{params: map[string]int{}, regs: map[byte]int{}, vars: map[string]uint64{}, labels: map[string]int{}}
			if m.entries[name] != nil {
				err = fmt.Errorf("entry %s again", name)
			}
			m.entries[name] = e
		case e == nil:
			err = fmt.Errorf("outside of an entry")
		case line == "}":
			err = e.link()
			e = nil
		default:
			err = e.line(line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", i+1, line, err)
		}
	}
	return m, nil
}

func (e *entry) line(line string) error {
	if label, ok := strings.CutSuffix(line, ":"); ok {
		if _, again := e.labels[label]; again {
			return fmt.Errorf("label again")
		}
		e.labels[label] = len(e.code)
		return nil
	}
	words := strings.Fields(strings.NewReplacer(",", " ", ";", " ").Replace(line))
	switch words[0] {
	case ".param":
		e.params[words[2]] = len(e.params)
		return nil
	case ".reg":
		// .reg .b32 %r<7>
		n, err := strconv.Atoi(strings.TrimSuffix(words[2][3:], ">"))
		e.regs[words[2][1]] = n
		return err
	case ".shared":
		// .shared .align 4 .b8 name[64]
		name, size, _ := strings.Cut(strings.TrimSuffix(words[4], "]"), "[")
		n, err := strconv.Atoi(size)
		e.vars[name] = e.shared
		e.shared += uint64(n)
		return err
	}
	return e.instruction(words)
}

func (e *entry) link() error {
	for _, j := range e.jumps {
		to, ok := e.labels[j.label]
		if !ok {
			return fmt.Errorf("no label %s", j.label)
		}
		when, not := j.when, j.not
		e.code[j.at] = func(t *thread) {
			if when == nil || (when(t) != 0) != not {
				t.pc = to
			}
		}
	}
	return nil
}

func (e *entry) register(s string) (class byte, i int, err error) {
	if len(s) < 3 || s[0] != '%' {
		return 0, 0, fmt.Errorf("%q is no register", s)
	}
	i, err = strconv.Atoi(s[2:])
	if err == nil && i >= e.regs[s[1]] {
		err = fmt.Errorf("register %s is not declared", s)
	}
	return s[1], i, err
}

var specials = map[string]operand{
	"%tid.x":   func(t *thread) uint64 { return uint64(t.tid[0]) },
	"%tid.y":   func(t *thread) uint64 { return uint64(t.tid[1]) },
	"%ntid.x":  func(t *thread) uint64 { return uint64(t.block.ntid[0]) },
	"%ctaid.x": func(t *thread) uint64 { return uint64(t.block.ctaid[0]) },
	"%ctaid.y": func(t *thread) uint64 { return uint64(t.block.ctaid[1]) },
}

func (e *entry) operand(s string) (operand, error) {
	if f := specials[s]; f != nil {
		return f, nil
	}
	if off, ok := e.vars[s]; ok {
		return func(*thread) uint64 { return off }, nil
	}
	if hex, ok := strings.CutPrefix(s, "0f"); ok {
		v, err := strconv.ParseUint(hex, 16, 32)
		return func(*thread) uint64 { return v }, err
	}
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return func(*thread) uint64 { return uint64(v) }, nil
	}
	class, i, err := e.register(s)
	if err != nil {
		return nil, err
	}
	switch class {
	case 'r':
		return func(t *thread) uint64 { return uint64(t.b32[i]) }, nil
	case 'd':
		return func(t *thread) uint64 { return t.b64[i] }, nil
	case 'f':
		return func(t *thread) uint64 { return bitsOf(t.f32[i]) }, nil
	default:
		return func(t *thread) uint64 {
			if t.pred[i] {
				return 1
			}
			return 0
		}, nil
	}
}

// target writes a value into a register.
func (e *entry) target(s string) (func(t *thread, v uint64), error) {
	class, i, err := e.register(s)
	if err != nil {
		return nil, err
	}
	switch class {
	case 'r':
		return func(t *thread, v uint64) { t.b32[i] = uint32(v) }, nil
	case 'd':
		return func(t *thread, v uint64) { t.b64[i] = v }, nil
	case 'f':
		return func(t *thread, v uint64) { t.f32[i] = floatOf(v) }, nil
	default:
		return func(t *thread, v uint64) { t.pred[i] = v != 0 }, nil
	}
}

// address reads [register+offset].
func (e *entry) address(s string) (operand, error) {
	base, off, _ := strings.Cut(strings.Trim(s, "[]"), "+")
	f, err := e.operand(base)
	if err != nil || off == "" {
		return f, err
	}
	n, err := strconv.ParseUint(off, 10, 32)
	return func(t *thread) uint64 { return f(t) + n }, err
}

func (e *entry) add(f func(*thread)) { e.code = append(e.code, f) }

func (e *entry) instruction(w []string) error {
	j := jump{at: len(e.code)}
	if strings.HasPrefix(w[0], "@") {
		name := w[0][1:]
		name, j.not = strings.CutPrefix(name, "!")
		var err error
		if j.when, err = e.operand(name); err != nil {
			return err
		}
		w = w[1:]
		if w[0] != "bra" {
			return fmt.Errorf("only branches have a predicate here")
		}
	}
	op := w[0]
	switch {
	case op == "bra":
		j.label = w[1]
		e.jumps = append(e.jumps, j)
		e.add(nil)
		return nil
	case op == "ret":
		e.add(func(t *thread) { t.done = true })
		return nil
	case op == "bar.sync":
		e.add(func(t *thread) { t.wait = true })
		return nil
	case strings.HasPrefix(op, "ld.") || strings.HasPrefix(op, "st."):
		return e.memory(w)
	}
	return e.arithmetic(op, w[1], w[2:])
}

var widths = map[string]int{"u8": 1, "u32": 4, "f32": 4, "u64": 8}

func (e *entry) memory(w []string) error {
	parts := strings.Split(w[0], ".")
	n := widths[parts[2]]
	if n == 0 {
		return fmt.Errorf("unknown type")
	}
	shared := parts[1] == "shared"
	if parts[0] == "st" {
		addr, err := e.address(w[1])
		if err != nil {
			return err
		}
		v, err := e.operand(w[2])
		e.add(func(t *thread) { save(t.space(shared, addr(t), n), v(t)) })
		return err
	}
	dst, err := e.target(w[1])
	if err != nil {
		return err
	}
	if parts[1] == "param" {
		i, ok := e.params[strings.Trim(w[2], "[]")]
		if !ok {
			return fmt.Errorf("no such parameter")
		}
		e.add(func(t *thread) { dst(t, t.block.args[i]) })
		return nil
	}
	addr, err := e.address(w[2])
	e.add(func(t *thread) { dst(t, load(t.space(shared, addr(t), n))) })
	return err
}

func (e *entry) arithmetic(op, dst string, args []string) error {
	set, err := e.target(dst)
	if err != nil {
		return err
	}
	in := make([]operand, 3)
	for i, a := range args {
		if in[i], err = e.operand(a); err != nil {
			return err
		}
	}
	a, b, c := in[0], in[1], in[2]
	if f := operations1[op]; f != nil && len(args) == 1 {
		e.add(func(t *thread) { set(t, f(a(t))) })
		return nil
	}
	if f := operations2[op]; f != nil && len(args) == 2 {
		e.add(func(t *thread) {
			v, ok := f(a(t), b(t))
			if !ok {
				t.err = fmt.Errorf("division by zero")
			}
			set(t, v)
		})
		return nil
	}
	if f := operations3[op]; f != nil && len(args) == 3 {
		e.add(func(t *thread) { set(t, f(a(t), b(t), c(t))) })
		return nil
	}
	return fmt.Errorf("instruction %s with %d inputs is not known", op, len(args))
}

func f1(f func(x float64) float64) func(uint64) uint64 {
	return func(a uint64) uint64 { return bitsOf(float32(f(float64(floatOf(a))))) }
}

func same(a uint64) uint64 { return a }

var operations1 = map[string]func(a uint64) uint64{
	"mov.u32": same, "mov.f32": same, "cvta.to.global.u64": same,
	"abs.f32":         f1(math.Abs),
	"sqrt.rn.f32":     f1(math.Sqrt),
	"ex2.approx.f32":  f1(math.Exp2),
	"lg2.approx.f32":  f1(math.Log2),
	"cvt.rn.f32.u32":  func(a uint64) uint64 { return bitsOf(float32(uint32(a))) },
	"cvt.rn.f32.s32":  func(a uint64) uint64 { return bitsOf(float32(int32(a))) },
	"cvt.rn.f32.s64":  func(a uint64) uint64 { return bitsOf(float32(int64(a))) },
	"cvt.rzi.s32.f32": func(a uint64) uint64 { return uint64(uint32(int32(floatOf(a)))) },
	"cvt.rzi.s64.f32": func(a uint64) uint64 { return uint64(int64(floatOf(a))) },
	"cvt.u64.u32":     func(a uint64) uint64 { return uint64(uint32(a)) },
	"cvt.u32.u64":     func(a uint64) uint64 { return uint64(uint32(a)) },
}

func f2(f func(x, y float32) float32) func(a, b uint64) (uint64, bool) {
	return func(a, b uint64) (uint64, bool) { return bitsOf(f(floatOf(a), floatOf(b))), true }
}

func i2(f func(x, y int32) int32) func(a, b uint64) (uint64, bool) {
	return func(a, b uint64) (uint64, bool) { return uint64(uint32(f(int32(a), int32(b)))), true }
}

func test[T any](as func(uint64) T, f func(x, y T) bool) func(a, b uint64) (uint64, bool) {
	return func(a, b uint64) (uint64, bool) {
		if f(as(a), as(b)) {
			return 1, true
		}
		return 0, true
	}
}

func s32(a uint64) int32  { return int32(a) }
func u32(a uint64) uint32 { return uint32(a) }

var operations2 = map[string]func(a, b uint64) (uint64, bool){
	"add.s32":    i2(func(x, y int32) int32 { return x + y }),
	"sub.s32":    i2(func(x, y int32) int32 { return x - y }),
	"mul.lo.s32": i2(func(x, y int32) int32 { return x * y }),
	"min.s32":    i2(func(x, y int32) int32 { return min(x, y) }),
	"max.s32":    i2(func(x, y int32) int32 { return max(x, y) }),
	"div.u32": func(a, b uint64) (uint64, bool) {
		if uint32(b) == 0 {
			return 0, false
		}
		return uint64(uint32(a) / uint32(b)), true
	},
	"add.rn.f32": f2(func(x, y float32) float32 { return x + y }),
	"sub.rn.f32": f2(func(x, y float32) float32 { return x - y }),
	"mul.rn.f32": f2(func(x, y float32) float32 { return x * y }),
	"div.rn.f32": f2(func(x, y float32) float32 { return x / y }),
	"max.f32": f2(func(x, y float32) float32 {
		if x != x || y > x {
			return y
		}
		return x
	}),
	"copysign.f32": f2(func(x, y float32) float32 { return float32(math.Copysign(float64(y), float64(x))) }),
	"and.pred":     func(a, b uint64) (uint64, bool) { return a & b, true },
	"or.pred":      func(a, b uint64) (uint64, bool) { return a | b, true },
	"setp.lt.s32":  test(s32, func(x, y int32) bool { return x < y }),
	"setp.ge.s32":  test(s32, func(x, y int32) bool { return x >= y }),
	"setp.eq.s32":  test(s32, func(x, y int32) bool { return x == y }),
	"setp.ne.s32":  test(s32, func(x, y int32) bool { return x != y }),
	"setp.lt.u32":  test(u32, func(x, y uint32) bool { return x < y }),
	"setp.ge.u32":  test(u32, func(x, y uint32) bool { return x >= y }),
	"setp.ge.u64":  test(same, func(x, y uint64) bool { return x >= y }),
	"setp.eq.s64":  test(same, func(x, y uint64) bool { return x == y }),
	"setp.lt.f32":  test(floatOf, func(x, y float32) bool { return x < y }),
	"setp.gt.f32":  test(floatOf, func(x, y float32) bool { return x > y }),
	"setp.eq.f32":  test(floatOf, func(x, y float32) bool { return x == y }),
}

func sel(a, b, p uint64) uint64 {
	if p != 0 {
		return a
	}
	return b
}

var operations3 = map[string]func(a, b, c uint64) uint64{
	"mad.lo.s32":   func(a, b, c uint64) uint64 { return uint64(uint32(a)*uint32(b) + uint32(c)) },
	"mad.wide.u32": func(a, b, c uint64) uint64 { return uint64(uint32(a))*uint64(uint32(b)) + c },
	"fma.rn.f32": func(a, b, c uint64) uint64 {
		return bitsOf(float32(math.FMA(float64(floatOf(a)), float64(floatOf(b)), float64(floatOf(c)))))
	},
	"selp.f32": sel,
	"selp.u32": sel,
}
