package analysis

// Value is one named result. Names are stable: they are the keys of the JSON
// report. A Value whose Type is Null stands for what the input does not tell.
type Value struct {
	Name  string
	Type  ValueType
	Int   int64
	Float float64
	Text  string
	Bool  bool
	Ints  []int64
	Texts []string
}

// ValueType says which field of a Value holds it.
type ValueType uint8

// The types of a Value.
const (
	Null ValueType = iota
	IntValue
	FloatValue
	TextValue
	BoolValue
	IntsValue
	TextsValue
)

// Values is an ordered list of results.
type Values []Value

// Get returns the value of that name and whether the list has it.
func (v Values) Get(name string) (Value, bool) {
	for i := range v {
		if v[i].Name == name {
			return v[i], true
		}
	}
	return Value{}, false
}

func (v *Values) null(name string) { *v = append(*v, Value{Name: name}) }

func (v *Values) integer(name string, n int64) {
	*v = append(*v, Value{Name: name, Type: IntValue, Int: n})
}

func (v *Values) integerIf(name string, n int64, known bool) {
	if !known {
		v.null(name)
		return
	}
	v.integer(name, n)
}

func (v *Values) amount(name string, a amount) { v.integerIf(name, a.N, a.Known) }

func (v *Values) float(name string, f float64) {
	*v = append(*v, Value{Name: name, Type: FloatValue, Float: f})
}

func (v *Values) text(name, s string) {
	if s == "" {
		v.null(name)
		return
	}
	*v = append(*v, Value{Name: name, Type: TextValue, Text: s})
}

func (v *Values) boolean(name string, b bool) {
	*v = append(*v, Value{Name: name, Type: BoolValue, Bool: b})
}

func (v *Values) ints(name string, list []int64) {
	if list == nil {
		v.null(name)
		return
	}
	*v = append(*v, Value{Name: name, Type: IntsValue, Ints: list})
}

func (v *Values) texts(name string, list []string) {
	if len(list) == 0 {
		v.null(name)
		return
	}
	*v = append(*v, Value{Name: name, Type: TextsValue, Texts: list})
}
