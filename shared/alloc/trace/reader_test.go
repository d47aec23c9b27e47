package trace_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/trace"
)

const head = "bfc-trace 1\no limit 1048576\no growth 0\no retry 0\n"

func TestABadTraceNamesItsLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"empty", "", "line 1: a trace begins with 'bfc-trace 1'"},
		{"other format", "hello\n", `line 1: a trace begins with 'bfc-trace 1', not with "hello"`},
		{"other version", "bfc-trace 2\n", "line 1"},
		{"no limit", "bfc-trace 1\no growth 1\na 1 1\n", "line 3: the option limit is missing"},
		{"short option", "bfc-trace 1\no limit\n", "line 2: an option is 'o KEY VALUE'"},
		{"unknown option", "bfc-trace 1\no color 1\n", `line 2: option "color" is unknown; known are name, limit`},
		{"bad flag", "bfc-trace 1\no growth yes\n", `line 2: option growth is 0 or 1, not "yes"`},
		{"negative limit", "bfc-trace 1\no limit -1\n", "line 2: option limit is a number from 0"},
		{"bad order", "bfc-trace 1\no order left\n", "line 2: option order is up, down or zigzag"},
		{"bad base", "bfc-trace 1\no base 0x7f\n", "line 2: option base is a hexadecimal address without a prefix"},
		{"bad frag", "bfc-trace 1\no frag 2\n", "line 2: option frag is a fraction"},
		{"bad gran", "bfc-trace 1\no gran 0\n", "line 2: option gran is a number from 1"},
		{"late option", head + "s\no gap 1\n", "line 6: options come before the operations"},
		{"unknown operation", head + "x 1\n", `line 5: "x" is no operation; known are a, n, f`},
		{"two blanks", head + "a  1 1\n", "line 5: ID is a number up to"},
		{"few fields", head + "a 1\n", "line 5: expected 'a ID BYTES [ALIGN [FB]]', got 2 fields"},
		{"many fields", head + "a 1 2 64 0 9\n", "line 5: expected 'a ID BYTES [ALIGN [FB]]', got 6 fields"},
		{"more fields", head + "s 1 2 3 4 5 6 7 8\n", `line 5: "s" stands alone`},
		{"negative bytes", head + "a 1 -5\n", "line 5: BYTES is a number up to 2^64-256"},
		{"too many bytes", head + "a 1 18446744073709551615\n", "line 5: BYTES is a number up to 2^64-256"},
		{"odd alignment", head + "a 1 5 48\n", `line 5: ALIGN is a power of two, not "48"`},
		{"huge id", head + "a 99999999 5\n", "line 5: ID is a number up to 16777215"},
		{"bound twice", head + "# remark\n\na 1 5\na 1 5\n", "line 8: block 1 is bound already"},
		{"free unbound", head + "a 1 5\nf 2\n", "line 6: block 2 is not bound"},
		{"free twice", head + "a 1 5\nf 1\nf 1\n", "line 7: block 1 is not bound"},
		{"bad tc", head + "tc 2\n", "line 5: expected 'tc 1' or 'tc 0'"},
		{"bad count", head + "sf c+1\n", "line 5: a count is a number, 'c' or 'c-N'"},
		{"bad freed by", head + "a 1 5 64 x\n", "line 5: a count is a number"},
		{"long line", head + "a 1 " + strings.Repeat("9", trace.MaxLine), "line 5: the line is longer than"},
		{"reuse downwards", "bfc-trace 1\no limit 1\no order down\no reuse 1\ns\n", "reuse of addresses needs the order up"},
		{"tiny fraction", "bfc-trace 1\no limit 1\no frag 0.1\ns\n", "less than a byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := trace.Answer(strings.NewReader(c.in), io.Discard, trace.AnswerOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if strings.HasPrefix(c.want, "line") {
				if _, ok := errors.AsType[*trace.Error](err); !ok {
					t.Errorf("%v is no trace.Error", err)
				}
			}
		})
	}
}

func TestAnswersComeUpToTheBadLine(t *testing.T) {
	var out bytes.Buffer
	err := trace.Answer(strings.NewReader(head+"a 1 5\noops\n"), &out, trace.AnswerOptions{})
	if err == nil || out.String() != "+ 7f0000000000 1048576\na 7f0000000000\n" {
		t.Errorf("error %v, answers %q", err, out.String())
	}
}

func TestAFullAnswer(t *testing.T) {
	in := head + "# a remark\n\na 1 5\nq 1\ns\nm\nf 1\na 2 2000000\nq 2\nf 2\n"
	want := "+ 7f0000000000 1048576\na 7f0000000000\nq 5 256 1\n" +
		"s 1 256 256 256 1048576 0 0 256 - 1048320 1048576 1048576 0 2097152\n" +
		"m 1 2 0\nr 7f0000000000 1048576\nk 7f0000000000 256 5 1 -1 0 1 0\nk 7f0000000100 1048320 0 0 11 0 -1 1\n" +
		"b 0 256 256 1 1 5\nb 11 0 1048320 0 1 0\nw *" + strings.Repeat("_", 99) +
		"\na oom\nq -\ne\n- 7f0000000000 1048576\n"
	var out, log bytes.Buffer
	if err := trace.Answer(strings.NewReader(in), &out, trace.AnswerOptions{Log: &log, OpName: "conv"}); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if !strings.HasPrefix(log.String(), "@ 6\nW Allocator (GPU_0_bfc) ran out of memory") ||
		!strings.Contains(log.String(), "requested by op conv\n") {
		t.Errorf("log %q", log.String())
	}
}

// TestTheNextRegionIsWrittenWithoutASign: once the driver gave more than the
// limit there is room without end, and a request may double the next region
// past the largest signed number.
func TestTheNextRegionIsWrittenWithoutASign(t *testing.T) {
	in := "bfc-trace 1\no limit 1000\no growth 1\no retry 0\no gran 4096\no capacity 8192\na 1 1\na 2 4611686018427387905\ns\n"
	var out bytes.Buffer
	if err := trace.Answer(strings.NewReader(in), &out, trace.AnswerOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), " 9223372036854775808\ne\n") {
		t.Errorf("got %q", out.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorsAreReported(t *testing.T) {
	err := trace.Answer(strings.NewReader(head+"s\n"), brokenWriter{}, trace.AnswerOptions{})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v", err)
	}
}

// FuzzAnswer: no panic, and the allocator's invariants hold whatever is asked.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(head + "a 1 5\nn 2 70000 4096 c-1\nq 1\ns\nm\nc\ntc 1\nf 1\ntn\nsf c-2\nf 2\ntc 0\n"))
	f.Add([]byte("bfc-trace 1\no limit 9999999\no growth 1\no gc 1\no retry 1\no frag 0.25\no order zigzag\no gap 77\no gran 300\n" +
		"o capacity 3000000\no coalesce 1\no honor_align 0\no base ff00\na 1 9223372036854775808\na 2 1\na 3 1500000\nf 2\na 2 3000000\nm\n"))
	f.Add([]byte("bfc-trace 1\no limit 0\na 0 18446744073709551359\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Count(in, []byte("\n")) > 2000 {
			t.Skip("long inputs only repeat short ones")
		}
		for _, p := range []bfc.Profile{bfc.Current, bfc.Classic} {
			err := trace.Answer(bytes.NewReader(in), io.Discard, trace.AnswerOptions{Profile: p, Log: io.Discard})
			if err != nil && !strings.HasPrefix(err.Error(), "trace, ") &&
				!strings.Contains(err.Error(), "space: ") {
				t.Errorf("an error without a place: %v", err)
			}
		}
	})
}
