package unzip

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
	"testing/iotest"
	"time"
)

// both holds members to compress/gzip: what came out, and the error.
func both(t *testing.T, file []byte, in func(io.Reader) io.Reader) (refused bool) {
	t.Helper()
	const limit = 1 << 20
	read := func(r io.Reader, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(r, limit))
	}
	text := func(err error) string {
		if err == nil {
			return "none"
		}
		return err.Error()
	}
	z, err := gzip.NewReader(bufio.NewReader(in(bytes.NewReader(file))))
	want, wantErr := read(z, err)
	m, err := open(bufio.NewReader(in(bytes.NewReader(file))))
	got, gotErr := read(m, err)
	if !bytes.Equal(got, want) || text(gotErr) != text(wantErr) {
		t.Fatalf("%x: %d bytes, error %s; compress/gzip has %d bytes, error %s", file, len(got), text(gotErr), len(want), text(wantErr))
	}
	return wantErr != nil
}

// dressed is a file of two members, the first with all that a header may have.
func dressed(tb testing.TB, sum bool) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Name, w.Comment, w.Extra, w.ModTime = "näme.pickle", "a comment", bytes.Repeat([]byte("extra"), 300), time.Unix(1e9, 0)
	for _, s := range []string{"what the first holds", "and the second"} {
		if _, err := w.Write([]byte(s)); err != nil {
			tb.Fatal(err)
		}
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
		w.Reset(&b)
	}
	file := b.Bytes()
	if sum { // the writer makes none: that of this header stands after its comment
		at := bytes.Index(file, []byte("a comment\x00")) + len("a comment\x00")
		file[3] |= hasSum
		file = append(append(append([]byte(nil), file[:at]...), headerSum(file[:at])...), file[at:]...)
	}
	return file
}

func headerSum(head []byte) []byte {
	m := members{in: bufio.NewReader(bytes.NewReader(head))}
	for range head {
		if err := m.next(1); err != nil {
			panic(err)
		}
	}
	return []byte{byte(m.sum), byte(m.sum >> 8)}
}

// TestMembersAreThoseOfTheStandardLibrary cuts files at each byte and turns a bit
// of each.
func TestMembersAreThoseOfTheStandardLibrary(t *testing.T) {
	plain := func(r io.Reader) io.Reader { return r }
	for _, sum := range []bool{false, true} {
		file := dressed(t, sum)
		if both(t, file, plain) || both(t, file, iotest.OneByteReader) {
			t.Fatalf("a sound file is refused, header sum: %v", sum)
		}
		refused := 0
		for i := range file {
			if both(t, file[:i], plain) {
				refused++
			}
			turned := bytes.Clone(file)
			turned[i] ^= 1 << (i % 8)
			if both(t, turned, plain) {
				refused++
			}
		}
		if refused < len(file) { // nearly every cut, and what is turned in the data
			t.Errorf("only %d of %d broken files are refused", refused, 2*len(file))
		}
		if !both(t, append(bytes.Clone(file), "what else lies there"...), plain) {
			t.Error("what follows the last member is passed over")
		}
	}
	long := dressed(t, false)
	at := bytes.Index(long, []byte("n\xe4me"))
	for _, n := range []int{500, 600} { // a name has at most 511 letters
		both(t, append(append(bytes.Clone(long[:at]), bytes.Repeat([]byte("n"), n)...), long[at:]...), plain)
	}
}

func TestAnErrorOfTheInputIsTold(t *testing.T) {
	broken := errors.New("the disk is gone")
	file := dressed(t, false)
	for _, n := range []int{5, 40, len(file) - 30} {
		in := io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken))
		m, err := open(bufio.NewReader(in))
		if err == nil {
			_, err = io.ReadAll(m)
		}
		if !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func FuzzMembers(f *testing.F) {
	f.Add(dressed(f, false))
	f.Add(dressed(f, true))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, file []byte) { both(t, file, func(r io.Reader) io.Reader { return r }) })
}
