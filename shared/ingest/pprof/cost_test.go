package pprof

import (
	"runtime"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// manySamples is a profile of n samples of the same few stacks and labels.
func manySamples(n int) []byte {
	message := func(b []byte, field protowire.Number, fill func(b []byte) []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), fill(nil))
	}
	number := func(b []byte, field protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
	}
	var b []byte
	for _, s := range []string{"", "space", "bytes", "kind", "buffer"} {
		b = message(b, 6, func(m []byte) []byte { return append(m, s...) })
	}
	b = message(b, 1, func(m []byte) []byte { return number(number(m, 1, 1), 2, 2) })
	for i := range n {
		b = message(b, 2, func(m []byte) []byte {
			for d := range 8 {
				m = number(m, 1, uint64(1+(i+d)%50))
			}
			m = number(m, 2, uint64(i))
			return message(m, 3, func(l []byte) []byte { return number(number(l, 1, 3), 2, 4) })
		})
	}
	for i := range 50 {
		b = message(b, 4, func(m []byte) []byte { return number(m, 1, uint64(1+i)) })
	}
	return b
}

// What the samples of a profile share is kept once, and short slices lie
// together: a sample costs no allocation of its own.
func TestASampleCostsNoAllocation(t *testing.T) {
	const n = 20_000
	b := manySamples(n)
	var p *Profile
	allocs := testing.AllocsPerRun(3, func() {
		var err error
		if p, err = Decode(b); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > n/50 {
		t.Errorf("%.0f allocations for %d samples", allocs, n)
	}
	if len(p.Samples) != n || p.Locations != 50 || p.Samples[77].Values[0] != 77 || p.Samples[77].Label("kind") != "buffer" || len(p.Samples[77].stack) != 8 {
		t.Errorf("%d samples, %d locations, sample 77: %+v", len(p.Samples), p.Locations, p.Samples[77])
	}
}

func TestAClaimedLengthCostsNothing(t *testing.T) {
	const table = "\x32\x00\x0a\x04\x08\x01\x10\x02"
	for name, file := range map[string]string{
		"a string of 4 GiB":     "\x32\x00\x32\xff\xff\xff\xff\x0f" + "abc",
		"a sample of 4 GiB":     table + "\x12\xff\xff\xff\xff\x0f" + "abc",
		"numbers of 4 GiB":      table + "\x12\x08\x0a\xff\xff\xff\xff\x0f\x01\x01",
		"a label of 4 GiB":      table + "\x12\x08\x1a\xff\xff\xff\xff\x0f\x01\x01",
		"a location of 2^64-1":  table + "\x22\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" + "\x12",
		"a location's of 4 GiB": table + "\x22\xff\xff\xff\xff\x0f" + "abc",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode([]byte(file))
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 256<<10 {
			t.Errorf("%s: %d bytes taken for a file of %d", name, got, len(file))
		}
	}
}
