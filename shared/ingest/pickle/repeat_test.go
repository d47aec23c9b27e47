package pickle

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
)

// likeDicts writes a list of n dicts with the same keys, as Pickler does for
// each protocol, and what it holds. odd, if not nil, writes one more dict after
// the middle one.
func likeDicts(protocol, n int, odd func(b *strings.Builder) string) (file, want string) {
	var b strings.Builder
	memo := 0
	memoize := func() {
		switch {
		case protocol >= 4:
			b.WriteByte(opMemoize)
		case memo < 256:
			b.Write([]byte{opBinPut, byte(memo)})
		default:
			b.Write(binary.LittleEndian.AppendUint32([]byte{opLongBinPut}, uint32(memo)))
		}
		memo++
	}
	b.Write([]byte{opProto, byte(protocol), opEmptyList})
	memoize() // 0
	b.WriteByte(opMark)
	var shown []string
	for i := range n {
		b.WriteByte(opEmptyDict)
		memoize() // 1, with the three keys behind it
		b.WriteByte(opMark)
		for k, key := range []string{"a", "b", "c"} {
			if i == 0 {
				b.Write(append([]byte{opBinUnicode, 1, 0, 0, 0}, key...))
				memoize()
			} else {
				b.Write([]byte{opBinGet, byte(2 + k)})
			}
			switch k {
			case 0:
				b.Write([]byte{opBinInt2, byte(i), byte(i >> 8)})
			case 1:
				b.Write([]byte{opLong1, 6, byte(i), byte(i >> 8), 0, 0, 0, 0x80})
			default:
				b.Write([]byte{opBinGet, 0}) // the list itself
			}
		}
		b.WriteByte(opSetItems)
		shown = append(shown, fmt.Sprintf(`{"a":%d,"b":%d,"c":...}`, i, int64(i)-1<<47))
		if i == n/2 && odd != nil {
			shown = append(shown, odd(&b))
			if protocol < 4 {
				memo++
			}
		}
	}
	b.Write([]byte{opAppends, opStop})
	return b.String(), "[" + strings.Join(shown, ",") + "]"
}

// flat shows a list of dicts with a container among the values as "...".
func (m *Machine) flat(v Value) string {
	var dicts []string
	m.Items(v, func(_ int, d Value) bool {
		var b strings.Builder
		m.Items(d, func(i int, x Value) bool {
			if i > 0 {
				b.WriteByte(",:"[i%2])
			}
			if k := m.Kind(x); k == List || k == Dict {
				b.WriteString("...")
			} else {
				m.write(&b, x, 0)
			}
			return true
		})
		dicts = append(dicts, "{"+b.String()+"}")
		return true
	})
	return "[" + strings.Join(dicts, ",") + "]"
}

// odds are dicts among like ones that are not quite as those: protocol 4.
var odds = map[string]struct{ dict, shown string }{
	"another order":       {"}\x94(h\x03K\x07h\x02K\x08h\x04Nu", `{"b":7,"a":8,"c":None}`},
	"a key fewer":         {"}\x94(h\x02K\x07h\x03K\x08u", `{"a":7,"b":8}`},
	"a key more":          {"}\x94(h\x02K\x07h\x03K\x08h\x04\x88h\x02\x89u", `{"a":7,"b":8,"c":True,"a":False}`},
	"a text in place":     {"}\x94(h\x02\x8c\x01xh\x03K\x08h\x04Nu", `{"a":"x","b":8,"c":None}`},
	"a dict inside":       {"}\x94(h\x02}\x94(h\x02K\x01uh\x03K\x08h\x04Nu", `{"a":...,"b":8,"c":None}`},
	"filled in two goes":  {"}\x94(h\x02K\x07h\x03K\x08h\x04Nu(h\x02K\x09u", `{"a":7,"b":8,"c":None,"a":9}`},
	"no memo":             {"}(h\x02K\x07h\x03K\x08h\x04Nu", `{"a":7,"b":8,"c":None}`},
	"a far memo number":   {"}r\xff\xff\xff\x7f(h\x02K\x07h\x03K\x08h\x04Nu", `{"a":7,"b":8,"c":None}`},
	"long fetches":        {"}\x94(j\x02\x00\x00\x00K\x07h\x03K\x08h\x04Nu", `{"a":7,"b":8,"c":None}`},
	"an integer too long": {"}\x94(h\x02\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x7fh\x03K\x08h\x04Nu", `{"a":9151314442816847872,"b":8,"c":None}`},
}

func TestLikeDictsAreReadInOneGo(t *testing.T) {
	for p := 2; p <= 5; p++ {
		file, want := likeDicts(p, 700, nil)
		m := New(strings.NewReader(file), nil, Limits{})
		v, err := m.Run()
		if err != nil || m.flat(v) != want {
			t.Errorf("protocol %d: %v\n got  %.300s\n want %.300s", p, err, m.flat(v), want)
		}
		if m.pattern.n != 3 {
			t.Errorf("protocol %d: a pattern of %d keys, want 3", p, m.pattern.n)
		}
	}
	for name, odd := range odds {
		file, want := likeDicts(4, 100, func(b *strings.Builder) string { b.WriteString(odd.dict); return odd.shown })
		m := New(strings.NewReader(file), nil, Limits{})
		v, err := m.Run()
		if err != nil || m.flat(v) != want {
			t.Errorf("%s: %v\n got  %s\n want %s", name, err, m.flat(v), want)
		}
	}
}

// A key's memo entry that is overwritten makes other dicts of the same bytes.
func TestAnOverwrittenKeyIsSeen(t *testing.T) {
	file, want := likeDicts(4, 100, func(b *strings.Builder) string {
		b.WriteString("\x8c\x01zq\x020}\x94(h\x02K\x07h\x03K\x08h\x04Nu")
		return `{"z":7,"b":8,"c":None}`
	})
	half := strings.Index(want, `{"z"`)
	want = want[:half] + strings.ReplaceAll(want[half:], `"a"`, `"z"`)
	m := New(strings.NewReader(file), nil, Limits{})
	if v, err := m.Run(); err != nil || m.flat(v) != want {
		t.Errorf("%v\n got  %s\n want %s", err, m.flat(v), want)
	}
}

func TestANameAmongLikeDictsIsRefused(t *testing.T) {
	file, _ := likeDicts(4, 100, func(b *strings.Builder) string {
		b.WriteString("cos\nsystem\nq\x010}\x94(h\x02h\x01h\x03K\x08h\x04Nu")
		return ""
	})
	if _, _, err := run([]byte(file), nil, Limits{}); !Refused(err) || !strings.Contains(err.Error(), "os.system") {
		t.Errorf("error %v", err)
	}
}

// layouts notes the layout number of each dict.
type layouts struct{ seen []int }

func (l *layouts) Dict(m *Machine, _ []Value) (Value, bool) {
	l.seen = append(l.seen, m.Layout())
	return MakeCustom(uint64(len(l.seen))), true
}
func (*layouts) List(*Machine, Value, []Value) (Value, bool) { return 0, false }
func (*layouts) Tuple(*Machine, []Value) (Value, bool)       { return 0, false }

func TestLayoutsAreNumbered(t *testing.T) {
	file, _ := likeDicts(4, 100, func(b *strings.Builder) string { b.WriteString(odds["another order"].dict); return "" })
	var l layouts
	if got, _, err := run([]byte(file), &l, Limits{}); err != nil || !strings.HasPrefix(got, "[custom(1),custom(2),") {
		t.Fatalf("%v, %s", err, got)
	}
	first, second := l.seen[2], l.seen[60]
	if first == 0 || second == 0 || first == second || l.seen[0] != 0 || l.seen[51] != 0 {
		t.Errorf("layouts %v", l.seen)
	}
	for i, n := range l.seen[2:50] {
		if n != first {
			t.Errorf("dict %d has layout %d, want %d", i+2, n, first)
		}
	}
}
