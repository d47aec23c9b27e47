package explain

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"tideline/shared/ingest/lines"
)

func joined(texts ...string) *Parts {
	list := make([]Part, len(texts))
	for i, s := range texts {
		list[i] = Part{Name: fmt.Sprintf("%c.txt", 'a'+i), R: strings.NewReader(s)}
	}
	return Join(list...)
}

// TestPartsCountAsLinesDo: every line of the whole is found in its own text under
// the number that the text alone gives it.
func TestPartsCountAsLinesDo(t *testing.T) {
	for _, texts := range [][]string{
		{"one\ntwo\n", "three"},
		{"one", "", "three\n\nfour"},
		{"a\r\nb\rc\n", "d\re\r\n", "f"},
		{"\n\n", "a\n"},
		{"", "a"},
		{"ends in a return\r", "b\n"},
		{"\xff\xfea\x00\r\x00\n\x00b\x00", ""},
	} {
		for _, slow := range []bool{false, true} {
			p := joined(texts...)
			var r io.Reader = p
			if slow {
				r = iotest.OneByteReader(p)
			}
			want := map[string][]string{}
			for i, s := range texts {
				name := fmt.Sprintf("%c.txt", 'a'+i)
				for in := lines.New(strings.NewReader(s)); ; {
					l, err := in.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					want[name] = append(want[name], l)
				}
			}
			in := lines.New(r)
			for {
				l, err := in.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if strings.Trim(l, "\x00") == "" {
					continue // an end of a text
				}
				name, own := p.place(in.Count())
				if own < 1 || own > len(want[name]) || want[name][own-1] != l {
					t.Errorf("%q: line %d, %q, is said to be line %d of %s", texts, in.Count(), l, own, name)
				}
			}
		}
	}
}

// TestSeveralTextsAreNamed: what is told is told of the text that it is in.
func TestSeveralTextsAreNamed(t *testing.T) {
	first := "hello\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 15.90 GiB total capacity; 14.40 GiB already allocated; 601.88 MiB free; 14.52 GiB reserved in total by PyTorch)\n"
	second := "one\ntwo\nInternalError: x\nE cuda_blas.cc:226] failed to create cublas handle: CUBLAS_STATUS_ALLOC_FAILED\n"
	p := joined(first, second)
	var text, js, page bytes.Buffer
	if err := Explain(p.Name(), p, &text, Options{Parts: p, NoReruns: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a.txt, line 2: ", "b.txt, line 4: cuBLAS"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, &text)
		}
	}
	if strings.Contains(text.String(), "a.txt, b.txt") {
		t.Errorf("both are named in %s", &text)
	}
	p = joined(first, second)
	if err := Explain(p.Name(), p, &js, Options{Parts: p, JSON: true, NoReruns: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(js.String()), ""), `"file":"b.txt","line":4,`) {
		t.Errorf("%s", &js)
	}
	p = joined(first, second)
	if err := Explain(p.Name(), p, &page, Options{Parts: p, HTML: true, NoReruns: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), "b.txt, line 4") {
		t.Error("the page does not name the text")
	}
}

func TestAPartThatCannotBeRead(t *testing.T) {
	p := Join(Part{"a", strings.NewReader("x\n")}, Part{"b", iotest.ErrReader(errors.New("broken"))})
	if _, err := io.ReadAll(p); err == nil || !strings.Contains(err.Error(), "read b: broken") {
		t.Error(err)
	}
}
