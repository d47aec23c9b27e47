package plan

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tideline/shared/golden"
)

func TestCSVColumns(t *testing.T) {
	plain := []Buffer{{ID: "a", Lower: 0, Upper: 3, Size: 4}, {ID: "b", Lower: 2, Upper: 9, Size: 5}}
	for _, c := range []struct {
		name, text string
		want       []Buffer
	}{
		{"as published", "id,lower,upper,size\na,0,3,4\nb,2,9,5\n", plain},
		{"other names", "buffer,start,upper,size\na,0,3,4\nb,2,9,5", plain},
		{"an inclusive end", "buffer_id,begin,end,size\na,0,2,4\nb,2,8,5\n", plain},
		{"any order, blanks, capitals, line ends of Windows, a byte order mark", "\ufeffSize, Upper ,LOWER,id\r\n4,3,0,a\r\n 5,9,2,b\r\n\r\n", plain},
		{"columns of other programs", "id,lower,upper,size,color\na,0,3,4,red\nb,2,9,5,\n", plain},
		{"no ids", "lower,upper,size\n0,3,4\n", []Buffer{{Lower: 0, Upper: 3, Size: 4}}},
		{"ids are text", "id,lower,upper,size\n\"x, y\",0,1,0\n", []Buffer{{ID: "x, y", Upper: 1}}},
		{"before time 0", "id,lower,upper,size\na,-3,-1,4\n", []Buffer{{ID: "a", Lower: -3, Upper: -1, Size: 4}}},
		{
			"everything", "id,lower,upper,size,alignment,hint,gaps,offset\na,0,9,512,256,128,2-3 5-8@16:32,512\nb,0,1,8,,,,\nc,0,1,8,1,-1,,-1\n",
			[]Buffer{
				{ID: "a", Upper: 9, Size: 512, Align: 256, HasHint: true, Hint: 128, Gaps: []Gap{{2, 3, 0, 0}, {5, 8, 16, 32}}, Fixed: true, Offset: 512},
				{ID: "b", Upper: 1, Size: 8},
				{ID: "c", Upper: 1, Size: 8, Align: 1},
			},
		},
		{"gaps end as lives do", "id,lower,end,size,gaps\na,-9,9,5,-5--3\n", []Buffer{{ID: "a", Lower: -9, Upper: 10, Size: 5, Gaps: []Gap{{-5, -2, 0, 0}}}}},
		{"no buffers", "id,lower,upper,size\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ReadCSV(strings.NewReader(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(p.Buffers, c.want, equalBuffers) {
				t.Errorf("read %+v, want %+v", p.Buffers, c.want)
			}
		})
	}
}

func equalBuffers(a, b Buffer) bool {
	gaps := slices.Equal(a.Gaps, b.Gaps)
	a.Gaps, b.Gaps = nil, nil
	return gaps && a.ID == b.ID && a.Lower == b.Lower && a.Upper == b.Upper && a.Size == b.Size && a.Align == b.Align &&
		a.Fixed == b.Fixed && a.Offset == b.Offset && a.HasHint == b.HasHint && a.Hint == b.Hint
}

// TestCSVErrorsNameLineAndColumn: the place and the reason.
func TestCSVErrorsNameLineAndColumn(t *testing.T) {
	for _, c := range []struct {
		text         string
		line, column int
		message      string
	}{
		{"", 1, 1, "the table is empty"},
		{"id,lower,size\n", 1, 1, "no column upper"},
		{"0,0,3,2\n1,2,5,2\n", 1, 1, "no column lower"},
		{"id,lower,upper,end,size\n", 1, 16, "says the same as column 3"},
		{"id,lower,upper,size\na,0,3\n", 2, 1, "this row has 3 columns, the header 4"},
		{"id,lower,upper,size\na,0,3,4,\n", 2, 1, "this row has 5 columns, the header 4"},
		{"id;lower;upper;size\na;0;3;4\n", 1, 1, "columns are separated by commas"},
		{"id\tlower\tupper\tsize\na\t0\t3\t4\n", 1, 1, "columns are separated by commas"},
		{"id,begin,start,upper,size\n", 1, 10, "says the same as column 2"},
		{"id,buffer,lower,upper,size\n", 1, 4, "says the same as column 1"},
		{"id,lower,upper,size\na,0,3,4\nb,0,x,4\n", 3, 5, `upper "x": want a whole number`},
		{"id,lower,upper,size\na,0,3,99999999999999999999\n", 2, 7, "within 64 bits"},
		{"id,lower,upper,size\na,0,3,\n", 2, 7, `size ""`},
		{"id,lower,upper,size\na,3,3,4\n", 2, 5, "lives in [3, 3), which is empty"},
		{"id,lower,upper,size\na,0,3,-4\n", 2, 7, "size -4"},
		{"id,lower,upper,size,alignment\na,0,3,4,3\n", 2, 9, "alignment 3: must be a power of two"},
		{"id,lower,upper,size,alignment,offset\na,0,3,4,4,6\n", 2, 11, "fixed offset 6: must be a multiple"},
		{"id,lower,upper,size,offset\na,0,3,4,-2\n", 2, 9, "fixed offset -2"},
		{"id,lower,upper,size,gaps\na,0,9,4,1:2\n", 2, 9, `gap "1:2"`},
		{"id,lower,upper,size,gaps\na,0,9,4,1-2@3\n", 2, 9, `gap "1-2@3"`},
		{"id,lower,upper,size,gaps\na,0,9,4,8-10\n", 2, 9, "outside the life"},
		{"id,lower,upper,size,gaps\na,0,9,4,3-5 4-6\n", 2, 9, "ascending and disjoint"},
		{"id,lower,upper,size,gaps\na,0,9,4,3-5@2:9\n", 2, 9, "within the size 4"},
		{"id,lower,end,size\na,0,9223372036854775807,1\n", 2, 5, "too large"},
		{"id,lower,upper,size\n\"a,0,3,4\n", 2, 10, "quote"},
	} {
		_, err := ReadCSV(strings.NewReader(c.text))
		var at *SyntaxError
		if !errors.As(err, &at) {
			t.Errorf("%q: error %v, want a SyntaxError", c.text, err)
			continue
		}
		if at.Line != c.line || at.Column != c.column || !strings.Contains(at.Message, c.message) {
			t.Errorf("%q: %v, want line %d, column %d: %s", c.text, err, c.line, c.column, c.message)
		}
	}
}

func TestCSVKeepsWhatWasRead(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{ID: `a "quoted", id`, Lower: -1, Upper: 9, Size: 512, Align: 256, HasHint: true, Hint: 3, Gaps: []Gap{{2, 3, 0, 0}, {5, 8, 16, 32}}},
		{ID: "b", Upper: 4, Size: 1, Fixed: true},
		{ID: "c", Upper: 4, Size: 3},
	}}
	var out bytes.Buffer
	if err := WriteCSV(&out, p, nil); err != nil {
		t.Fatal(err)
	}
	again, err := ReadCSV(&out)
	if err != nil || !slices.EqualFunc(again.Buffers, p.Buffers, equalBuffers) {
		t.Errorf("read back %+v (%v), want %+v", again, err, p)
	}
}

// TestCSVCarriesThePlan: what is written with a plan has its offsets fixed,
// and can only be planned that way.
func TestCSVCarriesThePlan(t *testing.T) {
	p := &Problem{Buffers: []Buffer{{ID: "a", Upper: 2, Size: 3}, {ID: "b", Lower: 1, Upper: 4, Size: 5}}}
	plan, _, err := BestGreedy(p)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteCSV(&out, p, &plan); err != nil {
		t.Fatal(err)
	}
	if want := "id,lower,upper,size,offset\na,0,2,3,5\nb,1,4,5,0\n"; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
	again, err := ReadCSV(&out)
	if err != nil {
		t.Fatal(err)
	}
	if fixed, _, err := BestGreedy(again); err != nil || !slices.Equal(fixed.Offsets, plan.Offsets) {
		t.Errorf("offsets %v (%v), want %v", fixed.Offsets, err, plan.Offsets)
	}
	if err := WriteCSV(&out, p, &Plan{}); err == nil {
		t.Error("a plan of another problem was written")
	}
}

func TestCapacityFromName(t *testing.T) {
	for name, want := range map[string]int64{
		"A.1048576.csv": 1048576, "dir.9/a.6.csv": 6, `C:\x\b.12.csv`: 12, "input.12.csv": 12,
		"pangu_2.6B.csv": 0, "S_1.csv": 0, "7.csv": 0, "a.-3.csv": 0, "": 0,
	} {
		if got, ok := CapacityFromName(name); got*b2i(ok) != want || ok != (want > 0) {
			t.Errorf("%q: %d %v, want %d", name, got, ok, want)
		}
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// FuzzReadCSV: no panic; what is read is valid and survives writing; whoever
// plans it gets a valid plan.
func FuzzReadCSV(f *testing.F) {
	f.Add("id,lower,upper,size\na,0,3,4\nb,2,9,5\n")
	f.Add("id,start,end,size,alignment,hint,gaps,offset\na,0,9,512,256,128,2-3 5-8@16:32,512\nb,0,1,8,,,,\n")
	f.Add("\ufeffsize,upper,lower\r\n4,3,0\r\n")
	f.Add("id,lower,upper,size\n\"a\n\"\"b\",-9223372036854775808,9223372036854775807,9223372036854775807\n")
	f.Add("id,lower,upper,size,gaps\na,-9,9,5,-5--3@1:2\nb,0,3,0,\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadCSV(strings.NewReader(text))
		if err != nil {
			var at *SyntaxError
			if !errors.As(err, &at) || at.Line < 1 || at.Column < 1 {
				t.Fatalf("error %v has no place", err)
			}
			return
		}
		var out bytes.Buffer
		if err := WriteCSV(&out, p, nil); err != nil {
			t.Fatal(err)
		}
		again, err := ReadCSV(&out)
		if err != nil || !slices.EqualFunc(again.Buffers, p.Buffers, sameButForHabits) {
			t.Fatalf("read back %+v (%v), want %+v", again, err, p)
		}
		if len(p.Buffers) > 30 || p.Validate() != nil {
			return
		}
		r, err := Minimize(p, Options{Nodes: 500})
		if err != nil {
			if !errors.Is(err, ErrFixed) {
				t.Fatal(err)
			}
			return
		}
		if err := Check(p, r.Plan); err != nil {
			t.Fatal(err)
		}
		if r.Height < r.Floor || r.Floor < r.Load || r.Height > r.Greedy {
			t.Fatalf("height %d, floor %d, load %d, greedy %d", r.Height, r.Floor, r.Load, r.Greedy)
		}
	})
}

// sameButForHabits: line ends inside of ids become plain, as the format asks.
func sameButForHabits(a, b Buffer) bool {
	if strings.ContainsAny(a.ID+b.ID, "\r\n") {
		a.ID, b.ID = "", ""
	}
	if a.Align == 0 || b.Align == 0 {
		a.Align, b.Align = max(a.Align, 1), max(b.Align, 1)
	}
	return equalBuffers(a, b)
}

// TestCSVReadsThePublishedFiles: each, byte for byte back again.
func TestCSVReadsThePublishedFiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(golden.Dir(t, "minimalloc"), "*", "*.csv"))
	if err != nil || len(files) < 19 {
		t.Fatalf("%d files (%v), want 19", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ReadCSV(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var out bytes.Buffer
		if err := WriteCSV(&out, p, nil); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimSpace(out.Bytes()), bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r"), nil))) {
			t.Errorf("%s: written back differently", filepath.Base(name))
		}
		if capacity, ok := CapacityFromName(name); !ok || capacity < Load(p) {
			t.Errorf("%s: capacity %d, load %d", name, capacity, Load(p))
		}
	}
}
