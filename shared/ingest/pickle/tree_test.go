package pickle

import (
	"fmt"
	"strconv"
	"strings"
)

// show writes a value as Python's repr does, for tests.
func (m *Machine) show(v Value) string {
	var b strings.Builder
	m.write(&b, v, 0)
	return b.String()
}

func (m *Machine) write(b *strings.Builder, v Value, depth int) {
	if depth > 50 || b.Len() > 1<<16 {
		b.WriteString("...")
		return
	}
	switch k := m.Kind(v); k {
	case None:
		b.WriteString("None")
	case Bool:
		b.WriteString(map[bool]string{true: "True", false: "False"}[m.resolve(v).payload() == 1])
	case Int:
		n, _ := m.Int(v)
		b.WriteString(strconv.FormatInt(n, 10))
	case Float:
		f, _ := m.Float(v)
		b.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
	case Text, Bytes, Global:
		s, _ := m.Text(v)
		fmt.Fprintf(b, "%q", s)
	case Big:
		s, _ := m.Text(v)
		b.WriteString(s)
	case Custom:
		n, _ := v.CustomNumber()
		fmt.Fprintf(b, "custom(%d)", n)
	default:
		around := map[Kind]string{List: "[]", Tuple: "()", Dict: "{}", Set: "<>"}[k]
		b.WriteByte(around[0])
		m.Items(v, func(i int, item Value) bool {
			switch {
			case i > 0 && k == Dict && i%2 == 1:
				b.WriteByte(':')
			case i > 0:
				b.WriteByte(',')
			}
			m.write(b, item, depth+1)
			return true
		})
		b.WriteByte(around[1])
	}
}
