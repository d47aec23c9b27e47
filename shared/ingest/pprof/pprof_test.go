package pprof

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"tideline/shared/golden"
	"tideline/shared/ingest/wire"
)

func TestTheRealProfile(t *testing.T) {
	inputs, description := golden.Case(t, "37-jax-device-memory-pprof")
	for _, b := range inputs {
		p, err := Read(bytes.NewReader(b), 0)
		if err != nil {
			t.Fatal(err)
		}
		r := p.Reading()
		golden.CheckCase(t, description, r.AppendJSON(nil))
		frames := 0
		p.Stack(&p.Samples[0], func(f Frame) {
			if f.Function == "" || f.File == "" {
				t.Errorf("a frame without a name: %+v", f)
			}
			frames++
		})
		if frames == 0 {
			t.Error("no stack")
		}
	}
}

// field encodes a field of bytes, number one of a varint.
func field(n int, b []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(n<<3|2))
	return append(binary.AppendUvarint(out, uint64(len(b))), b...)
}

func number(n int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n<<3)), v)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// heap is a profile with four values, as Go's heap profiles have, unpacked
// repeated fields and inlined lines.
func heap() []byte {
	var b []byte
	for _, s := range []string{"", "alloc_objects", "count", "alloc_space", "bytes", "inuse_objects", "inuse_space", "inner", "outer", "a.go"} {
		b = append(b, field(6, []byte(s))...)
	}
	for _, v := range [][2]uint64{{1, 2}, {3, 4}, {5, 2}, {6, 4}} {
		b = append(b, field(1, join(number(1, v[0]), number(2, v[1])))...)
	}
	b = append(b, field(2, join(number(1, 1), number(2, 9), number(2, 900), number(2, 1), number(2, 100)))...)
	b = append(b, field(4, join(number(1, 1), field(4, join(number(1, 1), number(2, 3))), field(4, join(number(1, 2), number(2, 4)))))...)
	b = append(b, field(5, join(number(1, 1), number(2, 7), number(4, 9)))...)
	return append(b, field(5, join(number(1, 2), number(2, 8), number(4, 9)))...)
}

func TestAHeapProfileOfAnotherProgram(t *testing.T) {
	p, err := Decode(heap())
	if err != nil {
		t.Fatal(err)
	}
	totals := p.Totals()
	if len(totals) != 1 || totals[0] != (Total{Bytes: 100, Count: 1, Samples: 1}) {
		t.Errorf("%+v", totals)
	}
	var stack []Frame
	p.Stack(&p.Samples[0], func(f Frame) { stack = append(stack, f) })
	if len(stack) != 2 || stack[0] != (Frame{"inner", "a.go", 3}) || stack[1] != (Frame{"outer", "a.go", 4}) {
		t.Errorf("%+v", stack)
	}
}

// Writers differ in the order of the fields; a profile of time is one, too, and
// said to be none of memory.
func TestWhatAProfileBeginsWith(t *testing.T) {
	for name, c := range map[string]struct {
		head []byte
		want bool
	}{
		"types first":   {heap(), true},
		"strings first": {join(field(6, nil), field(6, []byte("space")), field(1, number(1, 1))), true},
		"period first":  {join(field(11, number(1, 1)), number(12, 512), field(1, number(1, 1))), true},
		"cut":           {heap()[:60], true},
		"a wrong type":  {join(field(6, nil), number(1, 5), field(1, nil)), false},
		"another field": {join(field(6, nil), field(6, nil), field(6, nil), field(16, nil)), false},
		"too little":    {field(6, nil), false},
	} {
		if got := Is(c.head); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	time := join(field(6, nil), field(6, []byte("cpu")), field(6, []byte("nanoseconds")), field(1, join(number(1, 1), number(2, 2))))
	p, err := Decode(time)
	if err != nil || p.OfMemory() || p.Measures() != "cpu (nanoseconds)" {
		t.Errorf("%v: %+v", err, p)
	}
}

func TestWhatIsNoProfile(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": nil, "text": []byte("hello, world"), "an XSpace": field(1, field(2, []byte("/host:CPU"))),
		"values without types": join(field(6, nil), field(2, number(2, 1))),
	} {
		if _, err := Decode(b); !errors.Is(err, ErrNoProfile) && !errors.Is(err, wire.ErrBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzProfile(f *testing.F) {
	f.Add(heap())
	files, _ := filepath.Glob("testdata/cases/*/*.prof")
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte("\x32\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Read(bytes.NewReader(b), 1<<20)
		if err != nil {
			return
		}
		r := p.Reading()
		if j := r.AppendJSON(nil); !json.Valid(j) {
			t.Errorf("%s", j)
		}
	})
}

// TestTheKeptCase is for machines that have only the repository.
func TestTheKeptCase(t *testing.T) {
	const dir = "testdata/cases/37/"
	description, err := os.ReadFile(dir + "case.json")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(dir + "memory.prof")
	if err != nil {
		t.Fatal(err)
	}
	x, err := Read(bytes.NewReader(b), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := x.Reading()
	golden.CheckCase(t, description, r.AppendJSON(nil))
}

func BenchmarkDecode(b *testing.B) {
	file := heap()
	sample := field(2, join(number(1, 1), number(2, 9), number(2, 900), number(2, 1), number(2, 100)))
	for range 20_000 {
		file = append(file, sample...)
	}
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(file); err != nil {
			b.Fatal(err)
		}
	}
}
