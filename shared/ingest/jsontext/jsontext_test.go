package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

// tree builds what encoding/json would.
func tree(d *Reader) (any, error) {
	k, err := d.Next()
	if err != nil {
		return nil, err
	}
	v, err := d.build(k)
	if err != nil {
		return nil, err
	}
	if k, err = d.Next(); err == nil && k != End {
		err = fmt.Errorf("%d after the end", k)
	}
	return v, err
}

func (d *Reader) build(k Kind) (any, error) {
	switch k {
	case ObjectBegin:
		m := map[string]any{}
		for {
			k, err := d.Next()
			if err != nil || k == ObjectEnd {
				return m, err
			}
			name := string(d.Bytes())
			if k, err = d.Next(); err != nil {
				return nil, err
			}
			if m[name], err = d.build(k); err != nil {
				return nil, err
			}
		}
	case ArrayBegin:
		list := []any{}
		for {
			k, err := d.Next()
			if err != nil || k == ArrayEnd {
				return list, err
			}
			v, err := d.build(k)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
	case Text:
		return string(d.Bytes()), nil
	case Number:
		return json.Number(d.Bytes()), nil
	case True, False:
		return k == True, nil
	default:
		return nil, nil
	}
}

var good = []string{
	`{"a":[1,-2.5e3,true,false,null,"x\n\u00e9\ud83d\ude00\"\\\/"],"b":{},"c":[]}`, `[]`, `12`, `"s"`, ` { } `,
	`[[[[{"deep":[0]}]]]]`, `{"":""}`, `["\ud83d", "\ud83dx", "\ud83d\n"]`,
}

func TestAgreesWithTheStandardLibrary(t *testing.T) {
	for _, s := range good {
		var want any
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*Reader{New(strings.NewReader(s)), New(iotest.OneByteReader(strings.NewReader(s)))} {
			if got, err := tree(r); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, %v, want %v", s, got, err, want)
			}
		}
	}
}

func TestLenientWhereExportersAreWrong(t *testing.T) {
	for s, want := range map[string]string{
		"\xef\xbb\xbf[1]": "[1]", "[1,]": "[1]", `{"a":1,}`: "map[a:1]", "[NaN]": "[NaN]", "[-Infinity]": "[-Infinity]",
	} {
		if got, err := tree(New(strings.NewReader(s))); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}

func TestBrokenAndCut(t *testing.T) {
	for _, s := range []string{`{1:2}`, `[1 2]`, `{"a" 1}`, `]`, `[}`, `{"a":}`, `[tru]`, `["\ux"]`, `[1]x`, `[,1]`, `{,}`} {
		if got, err := tree(New(strings.NewReader(s))); err == nil {
			t.Errorf("%s: gave %v", s, got)
		}
	}
	s := good[0]
	for n := range len(s) {
		if _, err := tree(New(strings.NewReader(s[:n]))); !errors.Is(err, ErrTruncated) {
			t.Errorf("%s: %v", s[:n], err)
		}
	}
	if _, err := tree(New(strings.NewReader(strings.Repeat("[", 1e6)))); err == nil || !strings.Contains(err.Error(), "256") {
		t.Errorf("deep: %v", err)
	}
}

func TestSkip(t *testing.T) {
	d := New(strings.NewReader(`{"a":{"x":[1,{"y":2}]},"b":3,"c":[4]}`))
	var seen []string
	for {
		k, err := d.Next()
		if err != nil {
			t.Fatal(err)
		}
		if k == End {
			break
		}
		if k == Key {
			seen = append(seen, string(d.Bytes()))
			if err := d.Skip(k); err != nil {
				t.Fatal(err)
			}
		}
	}
	if fmt.Sprint(seen) != "[a b c]" || d.Depth() != 0 {
		t.Error(seen)
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range good {
		f.Add([]byte(s))
	}
	f.Add([]byte("[1,]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := tree(New(bytes.NewReader(b)))
		again, err2 := tree(New(iotest.OneByteReader(bytes.NewReader(b))))
		if (err == nil) != (err2 == nil) || err == nil && fmt.Sprint(got) != fmt.Sprint(again) {
			t.Errorf("%q: %v %v, byte by byte %v %v", b, got, err, again, err2)
		}
		withinLimits := bytes.Count(b, []byte("["))+bytes.Count(b, []byte("{")) < MaxDepth && longestNumber(b) <= MaxNumber
		if json.Valid(b) && err != nil && withinLimits {
			t.Errorf("%q is JSON: %v", b, err)
		}
	})
}

// longestNumber is the most characters that any number in b can have.
func longestNumber(b []byte) int {
	longest, run := 0, 0
	for _, c := range b {
		run++
		if !bytes.ContainsRune([]byte("+-.eE0123456789"), rune(c)) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

func TestLongestNumber(t *testing.T) {
	whole := strings.Repeat("4", MaxNumber)
	if got, err := tree(New(strings.NewReader("[" + whole + "]"))); err != nil {
		t.Errorf("%d digits: %v, %v", MaxNumber, got, err)
	}
	if _, err := tree(New(strings.NewReader("[" + whole + "4]"))); err == nil || !strings.Contains(err.Error(), "400 characters") {
		t.Errorf("%d digits: %v", MaxNumber+1, err)
	}
}
