package saved_test

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/shared/analysis/reading"
	"tideline/shared/analysis/reading/saved"
)

// full fills every field of a value with something of its own, so that a field
// that is forgotten shows.
func full(v reflect.Value, n *int64) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[reading.Value]() {
			v.Set(reflect.ValueOf(reading.Object(reading.Facts{
				{Name: "a", Value: reading.Int(-*n)},
				{Name: "b", Value: reading.List(reading.Text("x"), reading.Null(), reading.Bool(true))},
				{Name: "c", Value: reading.Uint(1 << 63)},
				{Name: "d", Value: reading.Float(0.25)},
				{Name: "e", Value: reading.Float(math.Copysign(0, -1))},
			})))
			return
		}
		for _, f := range v.Fields() {
			full(f, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			full(v.Index(i), n)
		}
	case reflect.String:
		v.SetString("text " + strings.Repeat("é", int(*n%7)) + "\n\"<" + string(rune('a'+*n%26)))
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(*n)
	}
}

// TestEveryFieldSurvives: what is saved is read back whole.
func TestEveryFieldSurvives(t *testing.T) {
	var n int64
	var want saved.Readings
	full(reflect.ValueOf(&want).Elem(), &n)
	b := want.Append([]byte("before"))
	got, err := saved.Parse(b[len("before"):])
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, &want) {
		t.Errorf("saved and read back:\n%+v\nwant\n%+v\n%s", got.List[0], want.List[0], b)
	}
	if !bytes.Contains(b, []byte(`"e":-0`)) {
		t.Error("a negative zero lost its sign")
	}
	if n < 100 {
		t.Errorf("%d values were made, too few to mean something", n)
	}
	empty, err := saved.Parse((&saved.Readings{}).Append(nil))
	if err != nil || !reflect.DeepEqual(empty, &saved.Readings{}) {
		t.Errorf("nothing becomes %+v, %v", empty, err)
	}
}

// TestReadingsThatAreTooLongAreCounted: a writer keeps to what a reader takes.
func TestReadingsThatAreTooLongAreCounted(t *testing.T) {
	short, long := &reading.Reading{Why: "short"}, &reading.Reading{Why: strings.Repeat("long", 1<<18)}
	many := &reading.Reading{Facts: reading.Facts{{Name: "n", Value: reading.List(make([]reading.Value, saved.MaxValues)...)}}}
	for name, c := range map[string]struct {
		list []*reading.Reading
		kept int
	}{
		"all":             {[]*reading.Reading{short, short}, 2},
		"bytes":           {[]*reading.Reading{short, long, long, long, long, short}, 4},
		"first too long":  {[]*reading.Reading{{Why: strings.Repeat("x", block.MaxReadings)}, short}, 0},
		"values":          {[]*reading.Reading{short, many, short}, 1},
		"a few in a list": {[]*reading.Reading{{Facts: many.Facts[:0]}}, 1},
	} {
		s := saved.Readings{List: c.list, LeftOut: 5}
		b := s.Append(nil)
		got, err := saved.Parse(b)
		if err != nil || len(b) > block.MaxReadings {
			t.Errorf("%s: %d bytes: %v", name, len(b), err)
			continue
		}
		if len(got.List) != c.kept || got.LeftOut != int64(5+len(c.list)-c.kept) {
			t.Errorf("%s: %d kept, %d left out, want %d of %d", name, len(got.List), got.LeftOut, c.kept, len(c.list))
		}
	}
}

// TestParseBelievesNothing: what is no such JSON is an error, what is unknown is
// passed over.
func TestParseBelievesNothing(t *testing.T) {
	for _, bad := range []string{
		"", "[]", "null", `{"readings":[`, `{} {}`, `{"readings":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`,
		`{"readings":[` + strings.Repeat("0,", saved.MaxValues+100) + `0]}`, strings.Repeat(" ", block.MaxReadings) + "{}",
	} {
		if got, err := saved.Parse([]byte(bad)); err == nil {
			t.Errorf("%.40q becomes %+v", bad, got)
		}
	}
	got, err := saved.Parse([]byte(`{"new":{"a":[1]},"input_kind":7,"readings":[3,{"kind":"a","later":true,"rows":[["a"],["b","c\u001b[31m\u009b2J"],5],"line":"x"}]}`))
	if err != nil || got.Kind != "" || len(got.List) != 1 || got.List[0].Kind != "a" || !reflect.DeepEqual(got.List[0].Rows, []reading.Row{{Label: "b", Value: "c[31m2J"}}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	var n int64
	var x saved.Readings
	full(reflect.ValueOf(&x).Elem(), &n)
	f.Add(x.Append(nil))
	f.Add([]byte(`{"input_kind":"rmm-log","readings":[{"facts":{"a":1e400}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := saved.Parse(b)
		if err != nil {
			return
		}
		once := s.Append(nil)
		again, err := saved.Parse(once)
		if err != nil {
			t.Fatalf("does not read what it wrote: %v\n%s", err, once)
		}
		if twice := again.Append(nil); !bytes.Equal(once, twice) {
			t.Fatalf("written again:\n%s\nwant\n%s", twice, once)
		}
	})
}
