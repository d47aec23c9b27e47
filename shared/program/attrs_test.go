package program

import (
	"reflect"
	"testing"
)

// TestAttrsAreEqualInEveryField changes each field by itself, so that one that is
// added is not forgotten.
func TestAttrsAreEqualInEveryField(t *testing.T) {
	if !new(Attrs).Equal(new(Attrs)) {
		t.Fatal("two empty ones differ")
	}
	for i := range reflect.TypeFor[Attrs]().NumField() {
		name := reflect.TypeFor[Attrs]().Field(i).Name
		for _, v := range values(t, reflect.TypeFor[Attrs]().Field(i).Type) {
			for _, w := range values(t, reflect.TypeFor[Attrs]().Field(i).Type) {
				var a, b Attrs
				reflect.ValueOf(&a).Elem().Field(i).Set(v)
				reflect.ValueOf(&b).Elem().Field(i).Set(w)
				if got, want := a.Equal(&b), reflect.DeepEqual(a, b); got != want {
					t.Errorf("%s, %v and %v: equal is %v", name, v, w, got)
				}
			}
		}
	}
}

// values are some of a type that differ.
func values(t *testing.T, of reflect.Type) []reflect.Value {
	t.Helper()
	list := []reflect.Value{reflect.Zero(of)}
	one := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Bool:
		one.SetBool(true)
	case reflect.Float64:
		one.SetFloat(0.5)
	case reflect.Uint8:
		one.SetUint(1)
	case reflect.Int32, reflect.Int64:
		one.SetInt(1)
	case reflect.String:
		one.SetString("x")
	case reflect.Array:
		one.Index(one.Len() - 1).SetInt(1)
	case reflect.Slice:
		list = append(list, reflect.MakeSlice(of, 0, 0), reflect.MakeSlice(of, 2, 2))
		one.Set(reflect.MakeSlice(of, 1, 1))
	default:
		t.Fatalf("%s: say what a value of it is", of)
	}
	return append(list, one)
}
