package seal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"testing"
)

// content is what testdata/README.md says.
func content(n int) []byte {
	var out []byte
	for i := uint64(0); len(out) < n; i++ {
		s := sha256.Sum256(binary.LittleEndian.AppendUint64(nil, i))
		out = append(out, s[:]...)
	}
	return out[:n]
}

func sealed(tb testing.TB, plain []byte, k Key) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := Seal(&b, bytes.NewReader(plain), int64(len(plain)), k, rand.Reader); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func newKey(tb testing.TB) Key {
	tb.Helper()
	k, err := NewKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func open(b []byte, k Key) ([]byte, error) {
	f, err := Open(bytes.NewReader(b), int64(len(b)), k)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = f.WriteTo(&out)
	return out.Bytes(), err
}

// around are content lengths at which a count of segments changes.
var around = []int{0, 1, 1000, firstRoom - 1, firstRoom, firstRoom + 1, firstRoom + room - 1, firstRoom + room, firstRoom + room + 1, 300_000}

func TestSealedFileOpensToTheSameBytes(t *testing.T) {
	for _, n := range around {
		k, plain := newKey(t), content(n)
		b := sealed(t, plain, k)
		if int64(len(b)) != Size(int64(n)) {
			t.Errorf("%d bytes: sealed to %d, Size says %d", n, len(b), Size(int64(n)))
		}
		got, err := open(b, k)
		if err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%d bytes: opened to %d bytes, %v", n, len(got), err)
		}
	}
}

func TestAnyPartReadsAlone(t *testing.T) {
	k, plain := newKey(t), content(400_000)
	b := sealed(t, plain, k)
	f, err := Open(bytes.NewReader(b), int64(len(b)), k)
	if err != nil {
		t.Fatal(err)
	}
	r := mathrand.New(mathrand.NewPCG(1, 2))
	for range 200 {
		off := r.IntN(len(plain))
		p := make([]byte, r.IntN(150_000))
		n, err := f.ReadAt(p, int64(off))
		want := plain[off:min(off+len(p), len(plain))]
		if !bytes.Equal(p[:n], want) || (n < len(p)) != errors.Is(err, io.EOF) {
			t.Fatalf("ReadAt(%d bytes, %d) = %d, %v", len(p), off, n, err)
		}
	}
}

type tinkVector struct {
	Size                                int
	Key, Associated, Head, Tail, SHA256 string
	Length                              int
}

// TestStreamIsTinks seals with the salt and nonces that Tink drew.
func TestStreamIsTinks(t *testing.T) {
	text, err := os.ReadFile("testdata/tink.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []tinkVector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 5 {
		t.Fatalf("only %d vectors", len(vectors))
	}
	for _, v := range vectors {
		checkTink(t, v)
	}
}

func checkTink(t *testing.T, v tinkVector) {
	t.Helper()
	start, _ := hex.DecodeString(v.Head)
	key, _ := hex.DecodeString(v.Key)
	h := &head{size: int64(v.Size)}
	copy(h.salt[:], start[1:])
	copy(h.prefix[:], start[1+saltSize:])
	gcm, err := derive(Key(key), h.salt[:], v.Associated)
	if err != nil {
		t.Fatal(err)
	}
	out := bytes.NewBuffer(bytes.Clone(start[:streamSize]))
	if err := h.sealContent(out, bytes.NewReader(content(v.Size)), gcm); err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(out.Bytes()); hex.EncodeToString(sum[:]) != v.SHA256 || out.Len() != v.Length {
		t.Errorf("%d bytes: %d bytes with sum %x, Tink made %d with %s; head %x", v.Size, out.Len(), sum, v.Length, v.SHA256, out.Bytes()[:56])
	}
}

func TestEveryDamageIsSeen(t *testing.T) {
	k, plain := newKey(t), content(200_000)
	b := sealed(t, plain, k)
	r := mathrand.New(mathrand.NewPCG(3, 4))
	for i := range 300 {
		at := i // every byte of the header, then anywhere
		if i >= headSize+20 {
			at = r.IntN(len(b))
		}
		bad := bytes.Clone(b)
		bad[at] ^= 1 << r.IntN(8)
		got, err := open(bad, k)
		if err == nil || errors.Is(err, ErrWrongKey) {
			t.Fatalf("a flipped bit in byte %d: %v", at, err)
		}
		if !bytes.HasPrefix(plain, got) {
			t.Fatalf("a flipped bit in byte %d: opened bytes that were never sealed", at)
		}
	}
}

func TestFaultsAreToldApart(t *testing.T) {
	k, plain := newKey(t), content(400_000)
	b := sealed(t, plain, k)
	swapped := bytes.Clone(b)
	copy(swapped[segmentSize:], b[3*segmentSize:4*segmentSize])
	copy(swapped[3*segmentSize:], b[segmentSize:2*segmentSize])
	tampered := bytes.Clone(b)
	tampered[2*segmentSize+77] ^= 4
	newer := bytes.Clone(b)
	newer[8] = 2
	fixCRC(newer)
	for _, c := range []struct {
		name string
		file []byte
		key  Key
		want error
		says string
	}{
		{"another key", b, newKey(t), ErrWrongKey, "belongs to another file"},
		{"cut in a segment", b[:100_000], k, ErrCut, "100000 of 400192 bytes"},
		{"cut between segments", b[:4*segmentSize], k, ErrCut, "of 400192"},
		{"cut in the header", b[:50], k, ErrCut, "byte 50 of 80"},
		{"two segments swapped", swapped, k, ErrOrder, "where segment 1 belongs, lies segment 3"},
		{"a bit changed", tampered, k, ErrDamaged, "segment 2 at byte 131072"},
		{"more behind the end", append(bytes.Clone(b), 1, 2, 3), k, ErrDamaged, "3 bytes follow"},
		{"a timeline that is not sealed", []byte("\x89TIDE\r\n\x1a" + strings.Repeat("x", 200)), k, ErrNotSealed, "mark"},
		{"nothing", nil, k, ErrNotSealed, "mark"},
		{"a newer version", newer, k, ErrVersion, "update Tideline"},
	} {
		_, err := open(c.file, c.key)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func fixCRC(b []byte) {
	h := crc(b)
	binary.LittleEndian.PutUint32(b[36:], h)
}

// TestHeaderIsBound: whoever can renew the checksum cannot change the length.
func TestHeaderIsBound(t *testing.T) {
	k := newKey(t)
	b := sealed(t, content(1000), k)
	short := bytes.Clone(b[:len(b)-100])
	binary.LittleEndian.PutUint64(short[12:], 900)
	fixCRC(short)
	if _, err := open(short, k); !errors.Is(err, ErrDamaged) {
		t.Errorf("a shorter length with a new checksum: %v", err)
	}
}

func TestSealRefusesAFileThatChanges(t *testing.T) {
	for _, n := range []int{999, 1001} {
		err := Seal(io.Discard, bytes.NewReader(content(n)), 1000, newKey(t), rand.Reader)
		if err == nil {
			t.Errorf("%d bytes announced as 1000 were sealed", n)
		}
	}
}

func TestNoTwoFilesShareAnything(t *testing.T) {
	k := newKey(t)
	a, b := sealed(t, content(500), k), sealed(t, content(500), k)
	if bytes.Equal(a[ownSize:], b[ownSize:]) {
		t.Error("sealed twice with one key: the same bytes")
	}
}

func TestKeyText(t *testing.T) {
	k := newKey(t)
	if got, err := ParseKey(k.Text()); err != nil || got != k || len(k.Text()) != KeyTextSize {
		t.Errorf("ParseKey(%q) = %v", k.Text(), err)
	}
	for _, bad := range []string{"", k.Text()[:42], k.Text() + "A", strings.Repeat("*", 43), strings.Repeat("A", 42) + "B"} {
		if _, err := ParseKey(bad); !errors.Is(err, ErrBadKey) {
			t.Errorf("ParseKey(%q): %v", bad, err)
		}
	}
	if s := fmt.Sprintf("%v %s %#v %+v", k, k, k, struct{ K Key }{k}); strings.Contains(s, k.Text()) || strings.Contains(s, hex.EncodeToString(k[:])) {
		t.Errorf("a printed key shows itself: %s", s)
	}
}

func FuzzOpen(f *testing.F) {
	k := Key(content(KeySize))
	var b bytes.Buffer
	if err := Seal(&b, bytes.NewReader(content(70_000)), 70_000, k, bytes.NewReader(content(200))); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:1000])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := open(file, k)
		if err == nil && !bytes.Equal(got, content(70_000)) {
			t.Fatalf("%d bytes opened that were never sealed", len(got))
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	k, plain := newKey(b), content(4<<20)
	file := sealed(b, plain, k)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(bytes.NewReader(file), int64(len(file)), k)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
