package cpu

import (
	"strings"
	"testing"

	"tideline/shared/device"
	"tideline/shared/exec"
)

func TestHeapRegionsThatTouchAreOneMemory(t *testing.T) {
	var m Memory
	m.Open(2)
	defer m.Close()
	const page = 1 << 16
	for i := range uint64(9) {
		if err := m.Map(0, 0x10000+i*page, page); err != nil {
			t.Fatal(err)
		}
		all := m.Bytes(exec.Ref{Address: 0x10000, Bytes: int64(i+1) * page})
		if all == nil {
			t.Fatalf("a block across %d regions is not mapped", i+1)
		}
		for j := range i {
			if all[j*page] != byte(j+1) {
				t.Fatalf("content of region %d was lost when region %d came", j, i)
			}
		}
		all[i*page] = byte(i + 1)
	}
	if m.Bytes(exec.Ref{Address: 0x10000, Bytes: 9*page + 1}) != nil || m.Bytes(exec.Ref{Address: 0xffff, Bytes: 2}) != nil {
		t.Error("memory beyond the regions is mapped")
	}
}

func TestRegionsOfDevicesAreApart(t *testing.T) {
	var m Memory
	m.Open(2)
	defer m.Close()
	for _, addr := range []uint64{0x3000, 0x1000, 0x9000} {
		if err := m.Map(1, addr, 0x1000); err != nil {
			t.Fatal(err)
		}
	}
	if m.Bytes(exec.Ref{Device: 0, Address: 0x1000, Bytes: 4}) != nil {
		t.Error("a region of device 1 is seen on device 0")
	}
	b := m.Bytes(exec.Ref{Device: 1, Address: 0x3ffc, Bytes: 4})
	if b == nil {
		t.Fatal("the last bytes of a region are not mapped")
	}
	b[0] = 7
	if c := m.Bytes(exec.Ref{Device: 1, Address: 0x3000, Bytes: 0x1000}); c[0xffc] != 7 {
		t.Error("two views of one address differ")
	}
	m.Unmap(1, 0x3000, 0x1000)
	if m.Bytes(exec.Ref{Device: 1, Address: 0x3000, Bytes: 4}) != nil {
		t.Error("a region is mapped after Unmap")
	}
}

func TestAcceleratorsAreRefused(t *testing.T) {
	err := New(nil).Open([]*device.Logical{{Name: device.Local("CPU", 0)}, {Name: device.Local("GPU", 0), Card: new(device.Card)}})
	if err == nil || !strings.Contains(err.Error(), "/GPU:0") {
		t.Errorf("got %v", err)
	}
}

// turned is a clock that only its users move.
type turned struct{ now int64 }

func (c *turned) Now() int64        { c.now++; return c.now }
func (c *turned) Sleep(nanos int64) { c.now += nanos }

func TestWaitingBlocksTheHost(t *testing.T) {
	c := &turned{}
	b := New(c)
	b.Spend(1_000_000)
	if c.now > 10 {
		t.Error("a real clock was moved by what work is modelled to cost")
	}
	b.WaitUntil(5000)
	if now := b.Now(); now < 5000 {
		t.Errorf("the clock shows %d after waiting until 5000", now)
	}
}
