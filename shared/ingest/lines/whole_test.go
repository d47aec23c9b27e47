package lines

import (
	"slices"
	"strings"
	"testing"
)

const (
	request = "2017-07-31 11:36:02.748547: W tensorflow/core/common_runtime/bfc_allocator.cc:273] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.72GiB.  Current allocation summary follows."
	bin     = "2017-07-31 11:36:02.748547: I tensorflow/core/common_runtime/bfc_allocator.cc:627] Bin (256): \tTotal Chunks: 4, Chunks in use: 4. 1.0KiB allocated for chunks. 1.0KiB in use in bin. 520B client-requested in use in bin."
	stats   = "2017-07-31 11:36:02.749740: I tensorflow/core/common_runtime/bfc_allocator.cc:702] Stats: "
	limit   = "Limit:                 68719476736"
	bar     = "2017-07-31 11:36:02.749753: W tensorflow/core/common_runtime/bfc_allocator.cc:277] *************************************************x***********************************************xxx"
)

func wholes(t *testing.T, s string) (out []string, nums []int) {
	t.Helper()
	if err := EachWhole(strings.NewReader(s), func(n int, s string) { out, nums = append(out, s), append(nums, n) }); err != nil {
		t.Fatal(err)
	}
	return out, nums
}

func hard(l []string, width int) (out []string) {
	for _, s := range l {
		for len(s) > width {
			out = append(out, s[:width])
			s = s[width:]
		}
		out = append(out, s)
	}
	return out
}

func TestWholes(t *testing.T) {
	dump := []string{request, bin, bin, stats, limit, "", bar}
	for _, width := range []int{60, 72, 80, 100, 120, 132, 160} {
		got, nums := wholes(t, strings.Join(hard(dump, width), "\n"))
		if !slices.Equal(got, dump) {
			t.Errorf("at %d:\n%s", width, strings.Join(got, "\n"))
		}
		if nums[0] != 1 || nums[1] != 1+(len(request)+width-1)/width {
			t.Errorf("at %d: lines %v", width, nums)
		}
		quoted, _ := wholes(t, "> "+strings.Join(hard(dump, width), "\n> "))
		for i := range quoted {
			quoted[i] = StripQuotes(quoted[i])
		}
		if dump[5] = ">"; len(quoted) != len(dump) || quoted[0] != request || quoted[6] != bar {
			t.Errorf("quoted, at %d:\n%s", width, strings.Join(quoted, "\n"))
		}
		dump[5] = ""
	}
}

// Nothing is joined that nobody broke.
func TestWholesLeavesOthersAlone(t *testing.T) {
	for _, l := range [][]string{
		{request, bin, bin, stats, limit, "", bar},
		{"step 10 mem 1200MiB of memory 16000", "step 20 mem 1300MiB of memory 16000", "step 30 mem 1400MiB of memory 16000", "step 40 mem 1500MiB of memory 16000"},
		{"+-----------------------------------------------------+", "| N/A   52C    P0    out of memory     100MiB /  200MiB |", "|                                  out of memory     0 |", "+-----------------------------------------------------+"},
		{"Thread,Time,Action,Pointer,Size,Stream", "140202053068544,15:34:42:123456,allocate,0x7f0000000000,4096,0", "140202053068544,15:34:42:123457,allocate,0x7f0000001000,4096,0", "140202053068544,15:34:42:123458,allocate,0x7f0000002000,4096,0"},
		{"\t\tOperator: op_name=\"a/b/c/d/e/f/g/h/i/j/k/l/m/n\" source_line=17", "\t\tXLA Label: fusion", "\t\tOperator: op_name=\"a/b/c/d/e/f/g/h/i/j/k/l/m/o\" source_line=17", "\t\tXLA Label: fusion"},
	} {
		for _, prefix := range []string{"", "app | ", "0: "} {
			var in []string
			for _, s := range l {
				in = append(in, prefix+s)
			}
			if got, _ := wholes(t, strings.Join(in, "\n")); !slices.Equal(got, in) {
				t.Errorf("%q:\n%s", prefix, strings.Join(got, "\n"))
			}
		}
	}
}

func FuzzWholes(f *testing.F) {
	f.Add(strings.Join(hard([]string{request, bin, stats, limit, bar}, 80), "\n"))
	f.Add("a\r\nb\x00\n> c")
	f.Fuzz(func(t *testing.T, s string) {
		letters := func(s string) (n int) {
			for i := range len(s) {
				if s[i] > ' ' && s[i] != '>' {
					n++
				}
			}
			return n
		}
		got, each := 0, 0
		last := 0
		if err := EachWhole(strings.NewReader(s), func(n int, s string) {
			if got += letters(s); n <= last {
				t.Errorf("line %d after %d", n, last)
			}
			last = n
		}); err != nil {
			t.Fatal(err)
		}
		if err := Each(strings.NewReader(s), func(_ int, s string) { each += letters(s) }); err != nil {
			t.Fatal(err)
		}
		if got != each {
			t.Errorf("%d letters of %d", got, each)
		}
	})
}
