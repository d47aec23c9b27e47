package pickle

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// Sink is offered containers as they are filled. What it returns with true
// takes the place of the container, wherever the pickle refers to it. The
// slices are valid during the call only.
type Sink interface {
	// Dict has alternating keys and values of a dict that was empty before.
	Dict(m *Machine, items []Value) (Value, bool)
	// List has items added to a list; so is what an earlier call returned for
	// the same list, or None when this is the first.
	List(m *Machine, so Value, items []Value) (Value, bool)
	// Tuple has the items of a tuple.
	Tuple(m *Machine, items []Value) (Value, bool)
}

// Limits bound what a pickle may cost. Zero fields mean the defaults.
type Limits struct {
	Text   int64 // bytes of one text; 64 MiB
	Memory int64 // bytes of everything the Machine keeps; 2 GiB
}

// The defaults of Limits.
const (
	DefaultText   = 64 << 20
	DefaultMemory = 2 << 30
)

// Machine is the stack machine, and afterwards the tables that the values of
// the pickle point into.
type Machine struct {
	src     source
	limits  Limits
	sink    Sink
	scratch []byte

	stack []Value
	marks []int
	memo  []Value
	far   map[uint32]Value // memo entries with absurd numbers

	texts   texts
	wide    []int64
	objects []Value // what each list, dict or set has become
	chains  []chain // number 0 is that of empty containers
	spans   []span
	cells   []Value

	pattern pattern
	layout  int

	used     int64
	protocol int
}

// New returns a machine that reads r. The sink may be nil.
func New(r io.Reader, sink Sink, limits Limits) *Machine {
	if limits.Text <= 0 {
		limits.Text = DefaultText
	}
	if limits.Memory <= 0 {
		limits.Memory = DefaultMemory
	}
	return &Machine{
		src: source{r: r, buf: make([]byte, 0, windowBytes)}, limits: limits, sink: sink,
		chains: make([]chain, 1),
	}
}

// Protocol is the highest protocol the file names; 0 when it names none.
func (m *Machine) Protocol() int { return m.protocol }

// Offset is how many bytes were read so far, unpacked.
func (m *Machine) Offset() int64 { return m.offset() }

// Used is the bytes charged so far, those of sinks included.
func (m *Machine) Used() int64 { return m.used }

// Charge counts bytes that a Sink keeps against the limit.
func (m *Machine) Charge(bytes int64) { m.used += bytes }

func (m *Machine) charge(n int) { m.used += int64(n) }

func (m *Machine) push(v Value) { m.stack = append(m.stack, v) }

func (m *Machine) floor() int {
	if len(m.marks) == 0 {
		return 0
	}
	return m.marks[len(m.marks)-1]
}

func (m *Machine) pop() (Value, error) {
	n := len(m.stack) - 1
	if n < m.floor() {
		return 0, m.bad("the stack is empty")
	}
	v := m.stack[n]
	m.stack = m.stack[:n]
	return v, nil
}

// popMark takes away the newest mark and returns where its items begin.
func (m *Machine) popMark() (int, error) {
	if len(m.marks) == 0 {
		return 0, m.bad("no mark is set")
	}
	at := m.floor()
	m.marks = m.marks[:len(m.marks)-1]
	return at, nil
}

// Run executes the pickle and returns its value. After an error, what a Sink
// was given stands.
func (m *Machine) Run() (Value, error) {
	for {
		if len(m.src.buf)-m.src.pos < ahead && !m.src.done {
			m.src.fill()
			if m.used+8*int64(len(m.stack)) > m.limits.Memory {
				return 0, &LimitError{What: "the values", Limit: m.limits.Memory, Offset: m.offset()}
			}
		}
		op, ok, err := m.burst()
		if err != nil {
			return 0, err
		}
		if !ok {
			if m.src.pos == len(m.src.buf) {
				return 0, m.truncated()
			}
			op = m.src.buf[m.src.pos]
			m.src.pos++
		}
		if op == opStop {
			return m.result()
		}
		if err := m.other(op); err != nil {
			return 0, err
		}
	}
}

func (m *Machine) result() (Value, error) {
	v, err := m.pop()
	if err != nil {
		return 0, err
	}
	if v = m.resolve(v); v.tag() == Global {
		return 0, m.refuseGlobal(v)
	}
	if m.used > m.limits.Memory {
		return 0, &LimitError{What: "the values", Limit: m.limits.Memory, Offset: m.offset()}
	}
	return v, nil
}

func (m *Machine) newObject(k Kind) {
	m.objects = append(room(m.objects), pack(k, 0)) // chain 0 is no chain: empty
	m.charge(8)
	m.push(pack(object, uint64(len(m.objects)-1)))
}

// room makes place for one more by doubling: append alone would copy a table
// of a million five times over.
func room(t []Value) []Value {
	if len(t) < cap(t) {
		return t
	}
	return append(make([]Value, 0, max(1024, 2*cap(t))), t...)
}

func (m *Machine) other(op byte) error {
	switch op {
	case opMark:
		m.marks = append(m.marks, len(m.stack))
		m.charge(8)
		return nil
	case opEmptyDict:
		m.newObject(Dict)
		return nil
	case opEmptyList:
		m.newObject(List)
		return nil
	case opSetItems:
		return m.setItems(op)
	case opAppends:
		return m.appends(op)
	case opPut, opBinPut, opLongBinPut, opMemoize, opGet, opBinGet, opLongBinGet:
		return m.memory(op)
	case opInt, opLong, opLong1, opLong4, opBinInt, opBinInt1, opBinInt2, opFloat, opBinFloat, opNone, opNewTrue, opNewFalse:
		return m.number(op)
	case opString, opBinString, opShortBinString, opUnicode, opBinUnicode, opShortBinUnicode, opBinUnicode8,
		opBinBytes, opShortBinBytes, opBinBytes8, opByteArray8:
		return m.text(op)
	case opEmptyTuple, opTuple, opTuple1, opTuple2, opTuple3, opList, opDict, opEmptySet, opFrozenSet,
		opAppend, opSetItem, opAddItems:
		return m.container(op)
	case opGlobal, opStackGlobal, opReduce, opBuild, opInst, opObj, opNewObj, opNewObjEx,
		opExt1, opExt2, opExt4, opPersID, opBinPersID, opNextBuffer, opReadonlyBuffer:
		return m.call(op)
	case opProto:
		b, err := m.take(1)
		if err != nil {
			return err
		}
		if b[0] > 5 {
			return m.bad("protocol %d is newer than 5, the newest that is known", b[0])
		}
		m.protocol = max(m.protocol, int(b[0]))
		return nil
	case opFrame: // how much follows in one piece: of no use here, and not believed
		_, err := m.take(8)
		return err
	case opPop:
		if len(m.marks) > 0 && len(m.stack) == m.floor() {
			_, err := m.popMark()
			return err
		}
		_, err := m.pop()
		return err
	case opPopMark:
		at, err := m.popMark()
		if err == nil {
			m.stack = m.stack[:at]
		}
		return err
	case opDup:
		v, err := m.pop()
		if err == nil {
			m.push(v)
			m.push(v)
		}
		return err
	default:
		m.src.pos--
		return m.bad("byte %#x is no opcode", op)
	}
}

// sparse is how far beyond its end the memo may grow at once.
const sparse = 4096

func (m *Machine) memory(op byte) error {
	var n uint64
	switch op {
	case opMemoize:
		n = uint64(len(m.memo) + len(m.far))
	case opPut, opGet:
		b, err := m.line()
		if err != nil {
			return err
		}
		v, ok := decimal(b)
		if !ok || v < 0 || v > math.MaxUint32 {
			return m.bad("memo number %q is none", clip(b))
		}
		n = uint64(v)
	default:
		size := 1
		if op == opLongBinPut || op == opLongBinGet {
			size = 4
		}
		b, err := m.take(size)
		if err != nil {
			return err
		}
		n = uint64(b[0])
		if size == 4 {
			n = uint64(binary.LittleEndian.Uint32(b))
		}
	}
	if op == opGet || op == opBinGet || op == opLongBinGet {
		return m.recall(n)
	}
	return m.remember(n)
}

func (m *Machine) remember(n uint64) error {
	v, err := m.pop()
	if err != nil {
		return err
	}
	m.push(v)
	switch {
	case n < uint64(len(m.memo)):
		m.memo[n] = v
		m.pattern.n = 0 // it may have been one of its keys
	case n < uint64(len(m.memo)+sparse):
		m.charge(8 * int(n+1-uint64(len(m.memo))))
		for uint64(len(m.memo)) < n {
			m.memo = append(m.memo, hole)
		}
		m.memo = append(m.memo, v)
	default:
		if m.far == nil {
			m.far = map[uint32]Value{}
		}
		m.far[uint32(n)] = v
		m.charge(32)
	}
	return nil
}

// hole is a memo entry that nothing was put into.
const hole = Value(math.MaxUint64&^(1<<kindBits-1)) | Value(object)

func (m *Machine) recall(n uint64) error {
	if n < uint64(len(m.memo)) {
		if v := m.memo[n]; v != hole {
			m.push(v)
			return nil
		}
	}
	v, ok := m.far[uint32(n)]
	if !ok {
		return m.bad("memo entry %d was never made", n)
	}
	m.push(v)
	return nil
}

func (m *Machine) call(op byte) error {
	switch op {
	case opGlobal:
		a, err := m.line()
		if err != nil {
			return err
		}
		module := string(a)
		b, err := m.line()
		if err != nil {
			return err
		}
		m.global(module + "." + string(b))
		return nil
	case opStackGlobal:
		name, err := m.pop()
		if err != nil {
			return err
		}
		module, err := m.pop()
		if err != nil {
			return err
		}
		a, ok := m.Text(module)
		b, ok2 := m.Text(name)
		if !ok || !ok2 {
			return m.bad("STACK_GLOBAL without two texts")
		}
		m.global(a + "." + b)
		return nil
	case opReduce:
		return m.reduce()
	}
	return m.refuse(op)
}

func (m *Machine) global(name string) {
	n, cost := m.texts.put([]byte(name))
	m.charge(cost)
	m.push(pack(Global, uint64(n)))
}

// reduce makes the empty dict of the two calls that are no more than that.
func (m *Machine) reduce() error {
	if n := len(m.stack); n >= m.floor()+2 {
		f, args := m.stack[n-2], m.stack[n-1]
		name, _ := m.Text(f)
		if f.tag() == Global && args.tag() == Tuple &&
			(name == "collections.OrderedDict" && m.Len(args) == 0 || name == "collections.defaultdict" && m.Len(args) <= 1) {
			m.stack = m.stack[:n-2]
			m.newObject(Dict)
			return nil
		}
	}
	return m.refuse(opReduce)
}

// refuse names what the opcode would have called.
func (m *Machine) refuse(op byte) error {
	e := &RefusedError{Op: opName(op), Offset: m.offset() - 1}
	switch op {
	case opInst:
		a, err := m.line()
		if err != nil {
			return err
		}
		module := string(a)
		b, err := m.line()
		if err != nil {
			return err
		}
		e.Name = module + "." + string(b)
	case opExt1, opExt2, opExt4:
		e.Name = "an extension's number"
	case opObj:
		if at := m.floor(); at < len(m.stack) {
			e.Name = m.nameOf(m.stack[at])
		}
	case opReduce, opNewObj, opBuild:
		e.Name = m.below(1)
	case opNewObjEx:
		e.Name = m.below(2)
	}
	return e
}

func (m *Machine) below(depth int) string {
	if n := len(m.stack) - 1 - depth; n >= 0 {
		return m.nameOf(m.stack[n])
	}
	return ""
}

func (m *Machine) nameOf(v Value) string {
	if v.tag() == Global {
		name, _ := m.Text(v)
		return name
	}
	return ""
}

func (m *Machine) refuseGlobal(v Value) error {
	return &RefusedError{Op: "GLOBAL", Name: m.nameOf(v), Offset: m.offset() - 1}
}

// IsPickle reports whether a file's first bytes are those of a pickle: a
// protocol header, or a container in the textual protocols 0 and 1.
func IsPickle(head []byte) bool {
	switch {
	case len(head) < 2:
		return false
	case head[0] == opProto:
		return head[1] >= 2 && head[1] <= 5
	case head[0] == opMark:
		return head[1] == opDict || head[1] == opList
	case head[0] == opEmptyDict || head[0] == opEmptyList:
		return head[1] == opBinPut || head[1] == opLongBinPut
	default:
		return false
	}
}

// Refused reports whether err says that the pickle wanted to run code.
func Refused(err error) bool {
	var e *RefusedError
	return errors.As(err, &e)
}

// Drop lets go of everything but the texts, once the values have been read.
func (m *Machine) Drop() {
	m.src, m.stack, m.marks, m.memo, m.far, m.scratch = source{}, nil, nil, nil, nil, nil
	m.objects, m.chains, m.spans, m.cells, m.sink = nil, nil, nil, nil, nil
	m.wide = nil
}
