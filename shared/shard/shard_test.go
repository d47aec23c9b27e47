package shard_test

import (
	"math"
	"testing"

	"tideline/shared/shard"
)

// The published example: 2,851 million parameters, 32 million of them in the
// largest layer, one host of eight. It prints GiB of parameters rounded to
// millions.
func TestThePublishedExample(t *testing.T) {
	m := shard.Model{Params: 2851e6, Largest: 32e6}
	for _, c := range []struct {
		stage        shard.Stage
		sharded      bool
		device, host float64
	}{
		{shard.Two, true, 15.93, 127.48},
		{shard.TwoOffload, true, 5.31, 127.48},
		{shard.Three, true, 6.10, 1.47},
		{shard.Three, false, 6.10, 127.48},
		{shard.ThreeOffload, true, 0.79, 63.74},
		{shard.ThreeOffload, false, 0.79, 127.48},
		{shard.ThreeOffloadAll, true, 0.12, 71.71},
		{shard.ThreeOffloadAll, false, 0.12, 127.48},
	} {
		n := shard.Nodes{Devices: 8, PerNode: 8, Sharded: c.sharded}
		device, host := gib(c.stage.Device(m, n)), gib(c.stage.Host(m, n))
		if math.Abs(device-c.device) > 0.05 || math.Abs(host-c.host) > 0.05 {
			t.Errorf("%s, built sharded %v: %.2f GiB on a device, %.2f on the host; want %.2f and %.2f", c.stage, c.sharded, device, host, c.device, c.host)
		}
	}
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

// The rows of the formulas, in bytes, where the least a host holds decides.
func TestRowsOfState(t *testing.T) {
	m := shard.Model{Params: 1000, Largest: 100}
	for _, c := range []struct {
		stage        shard.Stage
		n            shard.Nodes
		device, host int64
	}{
		{shard.Two, shard.Nodes{Devices: 1, PerNode: 1}, 20000, 6000},
		{shard.Two, shard.Nodes{Devices: 16, PerNode: 4}, 5000, 24000},
		{shard.TwoOffload, shard.Nodes{Devices: 2, PerNode: 2}, 2000, 24000},
		{shard.TwoOffload, shard.Nodes{Devices: 16, PerNode: 4}, 2000, 96000},
		{shard.Three, shard.Nodes{Devices: 2, PerNode: 2}, 9400, 12000},
		{shard.Three, shard.Nodes{Devices: 2, PerNode: 2, Sharded: true}, 9400, 1200},
		{shard.ThreeOffload, shard.Nodes{Devices: 2, PerNode: 2}, 1400, 24000},
		{shard.ThreeOffload, shard.Nodes{Devices: 8, PerNode: 8}, 650, 48000},
		{shard.ThreeOffload, shard.Nodes{Devices: 8, PerNode: 8, Sharded: true}, 650, 24000},
		{shard.ThreeOffloadAll, shard.Nodes{Devices: 2, PerNode: 2}, 400, 27000},
		{shard.ThreeOffloadAll, shard.Nodes{Devices: 8, PerNode: 8}, 400, 48000},
		{shard.ThreeOffloadAll, shard.Nodes{Devices: 8, PerNode: 8, Sharded: true}, 400, 27000},
		{shard.Two, shard.Nodes{}, 20000, 6000}, // none is one
	} {
		if device, host := c.stage.Device(m, c.n), c.stage.Host(m, c.n); device != c.device || host != c.host {
			t.Errorf("%s over %+v: %d and %d, want %d and %d", c.stage, c.n, device, host, c.device, c.host)
		}
	}
}

// The rows of a layer: 2048 tokens, batch 1, 12288 wide, 96 heads, whose scores
// are 80 bytes a token and unit.
func TestRowsOfALayer(t *testing.T) {
	const sbh = 2048 * 12288
	l := shard.Layer{Sequence: 2048, Batch: 1, Width: 12288, Heads: 96}
	for _, c := range []struct {
		recipe  shard.Recipe
		devices int64
		want    float64 // of sbh
	}{
		{shard.Plain, 1, 34 + 80},
		{shard.Plain, 8, 34 + 80}, // divides nothing
		{shard.Tensor, 1, 34 + 80},
		{shard.Tensor, 8, 10 + 3 + 10},
		{shard.TensorSequence, 8, 114. / 8},
		{shard.Selective, 8, 34. / 8},
		{shard.Full, 8, 2},
		{shard.TensorSequence, 0, 114},
	} {
		if got := l.Kept(c.recipe, c.devices); got != int64(c.want*sbh) {
			t.Errorf("%s over %d: %d, want %.0f", c.recipe, c.devices, got, c.want*sbh)
		}
	}
	if got := (shard.Layer{Sequence: 4, Batch: 3, Width: 2, Heads: 1}).Kept(shard.Plain, 1); got != 4*3*2*(34+10) {
		t.Errorf("a small layer keeps %d", got)
	}
}

// Over more devices nothing grows on each, and on one tensor parallelism divides
// nothing.
func TestMoreDevicesNeverHoldMoreEach(t *testing.T) {
	m := shard.Model{Params: 1_557_611_200, Largest: 80_411_200}
	l := shard.Layer{Sequence: 1024, Batch: 4, Width: 1600, Heads: 25}
	for n := int64(1); n < 64; n++ {
		for _, s := range shard.Stages() {
			if a, b := s.Device(m, shard.Nodes{Devices: n}), s.Device(m, shard.Nodes{Devices: n + 1}); b > a {
				t.Errorf("%s: %d on each of %d, %d on each of one more", s, a, n, b)
			}
		}
		for _, r := range shard.Recipes() {
			if a, b := l.Kept(r, n), l.Kept(r, n+1); b > a {
				t.Errorf("%s: %d on each of %d, %d on each of one more", r, a, n, b)
			}
		}
	}
	for _, r := range []shard.Recipe{shard.Tensor, shard.TensorSequence} {
		if l.Kept(r, 1) != l.Kept(shard.Plain, 1) {
			t.Errorf("%s on one device is not the layer as it is", r)
		}
	}
}
