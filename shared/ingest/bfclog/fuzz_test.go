package bfclog

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func FuzzRead(f *testing.F) {
	for i := range eras {
		f.Add([]byte(strings.Join(eras[i].text(0), "\n")))
	}
	f.Add([]byte("gpu_async_0 cuMemAllocAsync failed to allocate 1: CUDA\n Free memory/Total memory: 1/2\nStats:\nInUse: 3\n"))
	f.Add([]byte("OOM when allocating tensor with shape[1,2] and type float\n[[Node: a = B[T=DT_HALF]]]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		log, err := Read(bytes.NewReader(text))
		if err != nil && !errors.Is(err, ErrNothing) {
			t.Fatal(err)
		}
		if len(log.Dumps) > maxDumps {
			t.Fatalf("%d dumps", len(log.Dumps))
		}
		for _, d := range log.Dumps {
			if d.ListComplete && d.Pool.Exact() {
				if _, u, _, fr := d.Listed(); u+fr != d.Pool.N {
					t.Fatalf("complete list of %d bytes in a pool of %d", u+fr, d.Pool.N)
				}
			}
			for _, r := range d.Regions {
				if r.Complete && len(r.Chunks) > 0 && r.Chunks[0].Address != r.Address {
					t.Fatalf("region at %x begins with a chunk at %x", r.Address, r.Chunks[0].Address)
				}
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	text := []byte(strings.Repeat(strings.Join(eras[6].text(0), "\n")+"\n", 20))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Read(bytes.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}
