package rows_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/shared/alloc/torch"
	"tideline/shared/alloc/torch/rows"
	"tideline/shared/golden"
)

// recorded is an entry of cases.json.
type recorded struct {
	Name           string   `json:"name"`
	Capacity       int64    `json:"capacity"`
	MemoryFraction *float64 `json:"memory_fraction"`
	Settings       string   `json:"settings"`
}

func TestEveryRecordedTableIsAnsweredToTheByte(t *testing.T) {
	dir := golden.Dir(t, "pytorch-allocator")
	raw, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Cases      []recorded `json:"cases"`
		Expandable []recorded `json:"expandable_cases"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Cases) == 0 || len(m.Expandable) == 0 {
		t.Fatalf("%s names no case", dir)
	}
	for what, list := range map[string][]recorded{"expected": m.Cases, "expandable": m.Expandable} {
		for _, c := range list {
			t.Run(c.Name+" "+what, func(t *testing.T) {
				want, err := os.ReadFile(filepath.Join(dir, c.Name+"."+what+".csv"))
				if err != nil {
					t.Fatal(err)
				}
				in, err := os.Open(filepath.Join(dir, c.Name+".trace.csv"))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = in.Close() }()
				o := rows.Options{Capacity: c.Capacity}
				if o.Settings, err = torch.ParseSettings(c.Settings); err != nil {
					t.Fatal(err)
				}
				if c.MemoryFraction != nil {
					o.Fraction = *c.MemoryFraction
				}
				var got bytes.Buffer
				if err := rows.Answer(in, &got, o); err != nil {
					t.Fatal(err)
				}
				g, w := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
				for i := range min(len(g), len(w)) {
					if g[i] != w[i] {
						t.Fatalf("line %d:\n got  %s\n want %s", i+1, g[i], w[i])
					}
				}
				if len(g) != len(w) {
					t.Errorf("%d lines, want %d", len(g), len(w))
				}
			})
		}
	}
}

func TestAnAnswer(t *testing.T) {
	const in = rows.Header + "\na,x,1000,0\na,y,5000000,64\na,big,99999999,0\nf,big,,\na,none,0,0\nf,none,,\nf,y,,\ne,,,\nf,x,,\n"
	const want = "step,op,id,segment,offset,block_bytes,reserved,allocated,events\n" +
		"0,a,x,0,0,1024,2097152,1024, +seg0:2097152\n" +
		"1,a,y,1,0,5000192,23068672,5001216, +seg1:20971520\n" +
		"2,oom,big,,,,23068672,5001216,\n" +
		"3,f,big,,,,23068672,5001216,\n" +
		"4,a,none,,,,23068672,5001216,\n" +
		"5,f,none,,,,23068672,5001216,\n" +
		"6,f,y,,,,23068672,1024,\n" +
		"7,e,,,,,2097152,1024, -seg1\n" +
		"8,f,x,,,,2097152,0,\n"
	var got bytes.Buffer
	if err := rows.Answer(strings.NewReader(in), &got, rows.Options{Capacity: 100_000_000, Fraction: .5}); err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestABadTableNamesItsLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", `line 1: a table of requests begins with "op,id,size,stream", not with ""`},
		{"bfc-trace 1\n", "line 1: a table of requests begins with"},
		{"a,1\n", "line 2: a row has 4 fields"},
		{"a,1,5,0,7\n", "line 2: a row has 4 fields"},
		{"\n", "line 2: a row is op,id,size,stream, not an empty line"},
		{"x,1,5,0\n", `line 2: op "x" is unknown; known are a`},
		{"a,1,5,0\na,1,5,0\n", `line 3: block "1" is held already`},
		{"f,1,,\n", `line 2: block "1" is not held`},
		{"a,1,5,0\nf,1,,\nf,1,,\n", `line 4: block "1" is not held`},
		{"a,1,-5,0\n", `line 2: size is a number of bytes, not "-5"`},
		{"a,1,99999999999999999999,0\n", "line 2: size is a number of bytes"},
		{"a,1,5,\n", `line 2: stream is a number, not ""`},
		{"a,1,5,0\na," + strings.Repeat("9", rows.MaxLine), "line 3: the line is longer than 4096 bytes"},
	} {
		in := c.in
		if !strings.Contains(c.want, "line 1") {
			in = rows.Header + "\n" + in
		}
		err := rows.Answer(strings.NewReader(in), io.Discard, rows.Options{})
		if _, ok := errors.AsType[*rows.Error](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.in, err, c.want)
		}
	}
	if err := rows.Answer(strings.NewReader(rows.Header+"\n"), io.Discard, rows.Options{Settings: torch.Settings{MaxSplit: 1}}); err == nil {
		t.Error("settings that contradict the rules were taken")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorsAreReported(t *testing.T) {
	if err := rows.Answer(strings.NewReader(rows.Header+"\n"), brokenWriter{}, rows.Options{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

// FuzzAnswer: every row is answered once, or its line is named.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(rows.Header+"\na,1,5,0\na,2,3000000,7\nf,1,,\ne,,,\nf,2,,\n"), "")
	f.Add([]byte(rows.Header+"\na,1,99999999,0\na,2,9223372036854775807,18446744073709551615\nf,2,,\n"), "expandable_segments:True")
	f.Add([]byte(rows.Header+"\na,1,50000000,0\nf,1,,\na,1,20000001,0\n"), "max_split_size_mb:20,garbage_collection_threshold:0.1,per_process_memory_fraction:0.5")
	f.Fuzz(func(t *testing.T, in []byte, settings string) {
		s, err := torch.ParseSettings(settings)
		if err != nil || s.Backend != torch.Native || bytes.Count(in, []byte("\n")) > 2000 {
			t.Skip("not what is tested here, or only longer")
		}
		var out bytes.Buffer
		err = rows.Answer(bytes.NewReader(in), &out, rows.Options{Capacity: 64 << 20, Settings: s})
		answers := bytes.Count(out.Bytes(), []byte("\n"))
		if e, ok := errors.AsType[*rows.Error](err); ok {
			if answers != e.Line-1 {
				t.Fatalf("%v after %d lines", err, answers)
			}
		} else if err != nil {
			t.Fatalf("an error without a place: %v", err)
		}
	})
}
