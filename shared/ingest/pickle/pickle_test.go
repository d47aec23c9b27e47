package pickle

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// values are the contents of the pickles in testdata.
var values = map[string]string{
	"scalars": "[None,True,False,0,1,255,256,65535,65536,-1,-2147483648,2147483648,9007199254740993," +
		"576460752303423487,576460752303423488,-576460752303423488,-576460752303423489," +
		"9223372036854775807,-9223372036854775808,9223372036854775808,18446744073709551615,18446744073709551616," +
		"-1208925819614629174706176,12345678901234567890123,1.5,-0.25,1e+300]",
	"texts": `["","a","é","` + strings.Repeat("x", 300) + `","tab\tline\nback\\slash'\"","😀"]`,
	"nest":  `{"a":[1,2,(3),(4,5),(6,7,8),(1,2,3,4),()],"b":{"c":{}},"d":[],"e":["k","k","k"]}`,
	"dicts": `{"od":{"x":1,"y":2},"dd":{"p":[1]}}`,
}

func run(b []byte, sink Sink, l Limits) (string, *Machine, error) {
	m := New(bytes.NewReader(b), sink, l)
	v, err := m.Run()
	if err != nil {
		return "", m, err
	}
	return m.show(v), m, nil
}

func TestEveryProtocolGivesTheSameValues(t *testing.T) {
	for name, want := range values {
		for p := range 6 {
			b, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("%s.%d.pickle", name, p)))
			if err != nil {
				t.Fatal(err)
			}
			got, m, err := run(b, nil, Limits{})
			if err != nil || got != want {
				t.Errorf("%s, protocol %d: %v\n got  %s\n want %s", name, p, err, got, want)
			}
			if p >= 2 && m.Protocol() != p {
				t.Errorf("%s: protocol %d, want %d", name, m.Protocol(), p)
			}
			one := New(iotest.OneByteReader(bytes.NewReader(b)), nil, Limits{})
			if v, err := one.Run(); err != nil || one.show(v) != want {
				t.Errorf("%s, protocol %d, byte by byte: %v", name, p, err)
			}
			for cut := range len(b) {
				if _, _, err := run(b[:cut], nil, Limits{}); !errors.Is(err, ErrTruncated) {
					t.Fatalf("%s, protocol %d, cut at %d of %d: %v", name, p, cut, len(b), err)
				}
			}
		}
	}
}

// code are pickles that would run something, with what refuses them.
var code = []struct{ name, pickle, refused string }{
	{"os.system through GLOBAL and REDUCE", "\x80\x02cos\nsystem\nU\x02ls\x85R.", "REDUCE on os.system refused"},
	{"the same in protocol 0", "cos\nsystem\n(S'ls'\ntR.", "REDUCE on os.system refused"},
	{"the same in protocol 4", "\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R.", "REDUCE on os.system refused"},
	{"INST", "(S'ls'\nios\nsystem\n.", "INST on os.system refused"},
	{"OBJ", "(cos\nsystem\nU\x02lso.", "OBJ on os.system refused"},
	{"NEWOBJ", "\x80\x02csubprocess\nPopen\nU\x02ls\x85\x81.", "NEWOBJ on subprocess.Popen refused"},
	{"NEWOBJ_EX", "\x80\x04csubprocess\nPopen\n)}\x92.", "NEWOBJ_EX on subprocess.Popen refused"},
	{"BUILD", "\x80\x02cos\nx\n}b.", "BUILD on os.x refused"},
	{"EXT1", "\x80\x02\x82\x01.", "EXT1 on an extension's number refused"},
	{"PERSID", "Pabc\n.", "PERSID refused"},
	{"BINPERSID", "U\x02idQ.", "BINPERSID refused"},
	{"NEXT_BUFFER", "\x80\x05\x97.", "NEXT_BUFFER refused"},
	{"a name in a list", "]cos\nsystem\na.", "GLOBAL on os.system refused"},
	{"a name as the value", "cos\nsystem\n.", "GLOBAL on os.system refused"},
	{"an OrderedDict with arguments", "ccollections\nOrderedDict\n]\x85R.", "REDUCE on collections.OrderedDict refused"},
	{"a hidden call in a dict", "}U\x01acos\nsystem\nU\x02ls\x85Rs.", "REDUCE on os.system refused"},
}

func TestCodeIsRefusedByName(t *testing.T) {
	for _, c := range code {
		_, _, err := run([]byte(c.pickle), nil, Limits{})
		if !Refused(err) || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v, want %q", c.name, err, c.refused)
		}
	}
}

// claims are short files that claim long contents.
var claims = map[string]string{
	"BINUNICODE of 4 GiB":            "\x80\x02X\xff\xff\xff\xff" + "abc",
	"BINUNICODE of 60 MB":            "\x80\x02X\x00\x00\x90\x03" + "abc",
	"BINUNICODE8 of 2^63":            "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f" + "abc",
	"BINBYTES8 of 2^64-1":            "\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff" + "abc",
	"BYTEARRAY8":                     "\x80\x05\x96\x00\x00\x00\x00\x01\x00\x00\x00" + "abc",
	"LONG4 of 2 GiB":                 "\x80\x02\x8b\xff\xff\xff\x7f" + "abc",
	"FRAME of 2^62":                  "\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x40N",
	"LONG_BINPUT 2^32-1":             "\x80\x02Nr\xff\xff\xff\xffj\xff\xff\xff\xff",
	"memo numbers far apart, texted": "Np4294967295\ng4294967295\n",
}

func TestAClaimedLengthCostsNothing(t *testing.T) {
	for name, file := range claims {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := run([]byte(file), nil, Limits{})
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: %d bytes taken for a file of %d", name, got, len(file))
		}
	}
}

func TestLimitsAreNamed(t *testing.T) {
	var e *LimitError
	_, _, err := run([]byte("\x80\x02X\x00\x00\x00\x01"), nil, Limits{Text: 1 << 20})
	if !errors.As(err, &e) || e.Limit != 1<<20 || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("long text: %v", err)
	}
	_, _, err = run(append(bytes.Repeat([]byte("]"), 1<<20), '.'), nil, Limits{Memory: 1 << 20})
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "1048576 bytes") {
		t.Errorf("many lists: %v", err)
	}
}

func TestBrokenPicklesAreErrors(t *testing.T) {
	for name, file := range map[string]string{
		"stop without a value": ".", "append to nothing": "Na.", "append to a number": "K\x01Na.",
		"setitems without mark": "}NNu.", "odd items": "}(Nu.", "items into a list": "](NNu.",
		"get of nothing": "h\x07.", "pop of nothing": "0.", "unknown opcode": "\xf0.", "protocol 9": "\x80\x09N.",
		"no integer": "Iabc\n.", "no float": "Fabc\n.", "unquoted": "Sabc\n.", "tuple of too few": "N\x86.",
		"pop below a mark": "N(a.", "memo of nothing": "\x94.", "put of nothing": "q\x00.", "pop mark without one": "1.",
		"get of a gap": "](tq0h\x20a", "long get of a gap": "Nr\x20\x00\x00\x00j\x10\x00\x00\x00.",
	} {
		if got, _, err := run([]byte(file), nil, Limits{}); err == nil {
			t.Errorf("%s: gave %s", name, got)
		}
	}
}

func TestAContainerCanHoldItself(t *testing.T) {
	got, _, err := run([]byte("]q\x00h\x00a."), nil, Limits{})
	if err != nil || !strings.HasPrefix(got, "[[[[") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestUintReadsAddressesOf64Bits(t *testing.T) {
	m := New(bytes.NewReader([]byte("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00.")), nil, Limits{})
	v, err := m.Run()
	if n, ok := m.Uint(v); err != nil || !ok || n != 1<<64-1 {
		t.Errorf("%d %v %v", n, ok, err)
	}
	m = New(bytes.NewReader([]byte("L18446744073709551616L\n.")), nil, Limits{})
	v, err = m.Run()
	if n, ok := m.Uint(v); err != nil || ok {
		t.Errorf("2^64 is %d %v", n, err)
	}
}

// counting replaces pairs of integers and dicts with the key k.
type counting struct{ dicts, lists, tuples int }

func (c *counting) Dict(m *Machine, items []Value) (Value, bool) {
	if k, _ := m.Text(items[0]); k != "k" {
		return 0, false
	}
	c.dicts++
	return MakeCustom(uint64(c.dicts)), true
}

func (c *counting) List(_ *Machine, _ Value, items []Value) (Value, bool) {
	if _, ok := items[0].CustomNumber(); !ok {
		return 0, false
	}
	c.lists++
	return MakeCustom(1000), true
}

func (c *counting) Tuple(*Machine, []Value) (Value, bool) { c.tuples++; return 0, false }

// TestWhatASinkPutsIsSeenThroughTheMemo: the dict is memoised before it is
// filled, and referred to afterwards.
func TestWhatASinkPutsIsSeenThroughTheMemo(t *testing.T) {
	c := &counting{}
	got, _, err := run([]byte("\x80\x02](}q\x00U\x01kK\x01sh\x00\x86(}U\x01kK\x02sl}U\x01xK\x03se."), c, Limits{})
	if want := `[(custom(1),custom(1)),custom(1000),{"x":3}]`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	got, _, err = run([]byte("\x80\x02](}q\x00U\x01kK\x01sh\x00]h\x00a}U\x01xK\x03se."), c, Limits{})
	if want := `custom(1000)`; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if c.dicts == 0 || c.lists == 0 || c.tuples != 0 && c.tuples != 1 {
		t.Errorf("%+v", c)
	}
}

func FuzzPickle(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.pickle")
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, c := range code {
		f.Add([]byte(c.pickle))
	}
	for _, c := range claims {
		f.Add([]byte(c))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, m, err := run(b, &counting{}, Limits{Memory: 1 << 20, Text: 1 << 16})
		if err != nil {
			return
		}
		again := New(iotest.OneByteReader(bytes.NewReader(b)), &counting{}, Limits{Memory: 1 << 20, Text: 1 << 16})
		v, err := again.Run()
		if err != nil || again.show(v) != got {
			t.Errorf("%s: byte by byte: %v", hex.EncodeToString(b), err)
		}
		if m.Used() > 64*int64(len(b))+1<<16 {
			t.Errorf("%d bytes charged for %d", m.Used(), len(b))
		}
	})
}
