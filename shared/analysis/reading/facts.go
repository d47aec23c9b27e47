package reading

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// Facts are named values in a fixed order.
type Facts []Fact

// Fact is one of them.
type Fact struct {
	Name  string
	Value Value
}

// Kind says which field of a Value holds it.
type Kind uint8

// The kinds of a Value. The zero Value is null.
const (
	NullKind Kind = iota
	IntKind
	UintKind // for what does not fit 63 bits, such as "no limit"
	FloatKind
	TextKind
	BoolKind
	ListKind
	ObjectKind
)

// Value is what a fact holds.
type Value struct {
	Kind   Kind
	Int    int64
	Uint   uint64
	Float  float64
	Text   string
	Bool   bool
	List   []Value
	Object Facts
}

// Null is what the input does not tell.
func Null() Value { return Value{} }

// Int is a whole number.
func Int(n int64) Value { return Value{Kind: IntKind, Int: n} }

// Uint is a whole number that may pass 63 bits.
func Uint(n uint64) Value {
	if n <= math.MaxInt64 {
		return Int(int64(n))
	}
	return Value{Kind: UintKind, Uint: n}
}

// Float is any number; what is not a number is null.
func Float(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Null()
	}
	return Value{Kind: FloatKind, Float: f}
}

// Text is a string; the empty one is null.
func Text(s string) Value {
	if s == "" {
		return Null()
	}
	return Value{Kind: TextKind, Text: s}
}

// Bool is a yes or no.
func Bool(b bool) Value { return Value{Kind: BoolKind, Bool: b} }

// List is a list, empty rather than null when it has no elements.
func List(v ...Value) Value { return Value{Kind: ListKind, List: v} }

// Object is a value made of facts.
func Object(f Facts) Value { return Value{Kind: ObjectKind, Object: f} }

// Get returns the value of that name and whether it is there.
func (f Facts) Get(name string) (Value, bool) {
	for i := range f {
		if f[i].Name == name {
			return f[i].Value, true
		}
	}
	return Value{}, false
}

// Set adds a value, or replaces the one of that name.
func (f *Facts) Set(name string, v Value) {
	for i := range *f {
		if (*f)[i].Name == name {
			(*f)[i].Value = v
			return
		}
	}
	*f = append(*f, Fact{name, v})
}

// Null adds a fact that the input does not tell.
func (f *Facts) Null(name string) { f.Set(name, Null()) }

// Int adds a whole number.
func (f *Facts) Int(name string, n int64) { f.Set(name, Int(n)) }

// IntIf adds a whole number, or null when it is not known.
func (f *Facts) IntIf(name string, n int64, known bool) {
	if !known {
		f.Null(name)
		return
	}
	f.Int(name, n)
}

// Float adds a number.
func (f *Facts) Float(name string, x float64) { f.Set(name, Float(x)) }

// FloatIf adds a number, or null when it is not known.
func (f *Facts) FloatIf(name string, x float64, known bool) {
	if !known {
		f.Null(name)
		return
	}
	f.Float(name, x)
}

// Text adds a string, or null for the empty one.
func (f *Facts) Text(name, s string) { f.Set(name, Text(s)) }

// Bool adds a yes or no.
func (f *Facts) Bool(name string, b bool) { f.Set(name, Bool(b)) }

// Texts adds a list of strings, or null when there are none.
func (f *Facts) Texts(name string, list []string) {
	if len(list) == 0 {
		f.Null(name)
		return
	}
	v := make([]Value, len(list))
	for i, s := range list {
		v[i] = Value{Kind: TextKind, Text: s}
	}
	f.Set(name, List(v...))
}

// Ints adds a list of whole numbers, or null for nil.
func (f *Facts) Ints(name string, list []int64) {
	if list == nil {
		f.Null(name)
		return
	}
	v := make([]Value, len(list))
	for i, n := range list {
		v[i] = Int(n)
	}
	f.Set(name, List(v...))
}

// Floats adds a list of numbers.
func (f *Facts) Floats(name string, list []float64) {
	v := make([]Value, len(list))
	for i, n := range list {
		v[i] = Float(n)
	}
	f.Set(name, List(v...))
}

// AppendJSON appends the value as JSON, without blanks.
func (v Value) AppendJSON(b []byte) []byte {
	switch v.Kind {
	case IntKind:
		return strconv.AppendInt(b, v.Int, 10)
	case UintKind:
		return strconv.AppendUint(b, v.Uint, 10)
	case FloatKind:
		return strconv.AppendFloat(b, v.Float, 'f', -1, 64)
	case TextKind:
		return AppendQuoted(b, v.Text)
	case BoolKind:
		return strconv.AppendBool(b, v.Bool)
	case ListKind:
		b = append(b, '[')
		for i := range v.List {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.List[i].AppendJSON(b)
		}
		return append(b, ']')
	case ObjectKind:
		b = append(b, '{')
		for i := range v.Object {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendQuoted(b, v.Object[i].Name), ':')
			b = v.Object[i].Value.AppendJSON(b)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}

// AppendQuoted appends s as a JSON string. Bytes that are no UTF-8 become the
// replacement character.
func AppendQuoted(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ' || c == 0x7f || c == '<' || c == '>' || c == '&' || c == 0x2028 || c == 0x2029:
			b = append(b, '\\', 'u', hex[c>>12&15], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		default:
			b = utf8.AppendRune(b, c)
		}
	}
	return append(b, '"')
}
