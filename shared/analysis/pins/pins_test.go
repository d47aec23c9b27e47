package pins_test

import (
	"slices"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
	"tideline/shared/analysis/pins"
)

const mib = 1 << 20

func region(address uint64, chunks ...event.Chunk) event.Region {
	r := event.Region{Address: address}
	for _, c := range chunks {
		c.Address = address + uint64(r.Size)
		r.Chunks = append(r.Chunks, c)
		r.Size += c.Size
	}
	return r
}

func used(n int64) event.Chunk { return event.Chunk{Size: n, Requested: n, InUse: true} }
func idle(n int64) event.Chunk { return event.Chunk{Size: n} }

func TestWhatKeepsMostByLeastComesFirst(t *testing.T) {
	got := pins.Of(event.ChunkMap{
		region(0x1000, used(512), idle(512)),              // one for one
		region(0x2000, idle(1024)),                        // kept by nothing
		region(0x3000, used(1024)),                        // keeps nothing
		region(0x4000, used(1), idle(999)),                // most
		region(0x5000, idle(90), used(4), used(6)),        // nine for one, smaller
		region(0x6000, idle(900), used(40), used(60)),     // nine for one
		region(0x7000, idle(1<<60), used(1<<60), idle(1)), // one for one, and no overflow
	})
	var order []uint64
	for _, p := range got {
		order = append(order, p.Address)
	}
	if want := []uint64{0x4000, 0x6000, 0x5000, 0x7000, 0x1000}; !slices.Equal(order, want) {
		t.Fatalf("%x, want %x", order, want)
	}
	if p := got[1]; p.Idle != 900 || p.Live != 100 || p.Blocks != 2 || p.Largest != 0x6000+940 || p.Size != 1000 {
		t.Errorf("%+v", p)
	}
	if n := pins.Idle(got[:3]); n != 999+900+90 {
		t.Errorf("%d idle", n)
	}
	p := got[1]
	p.Holder = "conv1"
	if s := p.Line(); s != "900 B idle of 1000 B, kept by 2 blocks of 100 B, conv1 the largest" {
		t.Error(s)
	}
}

// TestWithoutThePinTheSegmentIsFree: a block that outlives the others keeps a
// segment of PyTorch's; freed, and the cache emptied, exactly the bytes that the
// pin names go back to the driver.
func TestWithoutThePinTheSegmentIsFree(t *testing.T) {
	for _, freed := range []bool{false, true} {
		a, err := torch.New(torch.NewDevice(alloc.NewCard(0), 0), torch.Options{})
		if err != nil {
			t.Fatal(err)
		}
		take := func(n int64) uint64 {
			b, ok := a.Allocate(alloc.Request{Bytes: n})
			if !ok {
				t.Fatalf("%d bytes were refused", n)
			}
			return b.Address
		}
		big, long := take(12*mib), take(2*mib) // 12 MiB a segment of its own, the other of 20 MiB
		rest := take(9 * mib)
		free := func(addr uint64) {
			if err := a.Free(addr); err != nil {
				t.Fatal(err)
			}
		}
		free(big)
		free(rest)
		a.EmptyCache()
		list := pins.Of(a.ChunkMap())
		if len(list) != 1 || list[0].Blocks != 1 || list[0].Live != 2*mib || list[0].Idle != 18*mib {
			t.Fatalf("%+v", list)
		}
		before := a.Stats().Pool
		if freed {
			free(long)
		}
		a.EmptyCache()
		if got, want := before-a.Stats().Pool, list[0].Idle+list[0].Live; freed != (got == want) {
			t.Errorf("freed %v: %d bytes went back, the pin names %d", freed, got, want)
		}
		a.Close()
	}
}
