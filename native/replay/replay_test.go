package replay_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tideline/native/replay"
	"tideline/shared/alloc/bfc"
	"tideline/shared/alloc/torch/rows"
)

// cases are recorded answers of TensorFlow's own allocator; see the README there.
const cases = "../../shared/alloc/bfc/testdata/golden"

func packed(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cases, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func plain(t *testing.T, name string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAnswersOfPackedAndPlainTraces(t *testing.T) {
	want := plain(t, "fuzz-1.answer.gz")
	for name, in := range map[string][]byte{"packed": packed(t, "fuzz-1.trace.gz"), "plain": plain(t, "fuzz-1.trace.gz")} {
		var out bytes.Buffer
		if err := replay.Answers(bytes.NewReader(in), &out, replay.Options{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), want) {
			t.Errorf("%s: the answers differ from the recorded ones", name)
		}
	}
}

func TestLogsOfBothProfiles(t *testing.T) {
	for p, name := range map[bfc.Profile]string{bfc.Current: "gc-gapped.log.txt.gz", bfc.Classic: "gc-gapped.log-2024.txt.gz"} {
		var log bytes.Buffer
		o := replay.Options{Profile: p, Log: &log, OpName: "golden_op"}
		if err := replay.Answers(bytes.NewReader(packed(t, "gc-gapped.trace.gz")), io.Discard, o); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(log.Bytes(), plain(t, name)) {
			t.Errorf("%s: the log differs from the recorded one", p)
		}
	}
}

func TestMemoryMapsAreWritten(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "map")
	o := replay.Options{MapPrefix: prefix}
	if err := replay.Answers(bytes.NewReader(packed(t, "oom-free-retry.trace.gz")), io.Discard, o); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"1", "2", "3", "4"} {
		got, err := os.ReadFile(prefix + "-" + k + ".pb")
		if err != nil {
			t.Fatal(err)
		}
		if want := packed(t, "oom-free-retry.map-"+k+".pb"); !bytes.Equal(got, want) {
			t.Errorf("map %s: got %x, want %x", k, got, want)
		}
	}
}

func TestBadInputIsExplained(t *testing.T) {
	half := packed(t, "fuzz-1.trace.gz")
	half = half[:len(half)/2]
	missing := filepath.Join(t.TempDir(), "no", "such", "folder")
	for _, c := range []struct {
		in   []byte
		o    replay.Options
		want string
	}{
		{nil, replay.Options{}, "line 1: a trace begins with 'bfc-trace 1'"},
		{[]byte("\x1f\x8bxx"), replay.Options{}, "unpack trace"},
		{half, replay.Options{}, "unexpected EOF"},
		{[]byte("bfc-trace 1\no limit 4096\nf 3\n"), replay.Options{}, "line 3: block 3 is not bound"},
		{[]byte("bfc-trace 1\no limit 4096\nm\n"), replay.Options{MapPrefix: missing}, "write memory map 1"},
	} {
		err := replay.Answers(bytes.NewReader(c.in), io.Discard, c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestATableOfRequestsIsAnsweredAsPyTorchDoes(t *testing.T) {
	const in = rows.Header + "\na,0,20000000,0\nf,0,,\na,1,19000000,0\n"
	var out bytes.Buffer
	o := replay.Options{Torch: func() (rows.Options, error) { return rows.Options{Capacity: 1 << 20}, nil }}
	if err := replay.Answers(strings.NewReader(in), &out, o); err != nil || !strings.Contains(out.String(), "\n2,oom,1,") {
		t.Errorf("%v, %q", err, out.String())
	}
	out.Reset()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(in)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := replay.Answers(&packed, &out, replay.Options{}); err != nil || !strings.HasSuffix(out.String(), "\n2,a,1,0,0,19000320,20971520,19000320,\n") {
		t.Errorf("%v, %q", err, out.String())
	}
	if err := replay.Answers(strings.NewReader("bfc-trace 1\no limit 1\n"), &out, o); !errors.Is(err, replay.ErrOptions) {
		t.Error(err)
	}
}
