package exec_test

import (
	"errors"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/zoo"
)

func (b *bench) model(name string, batch int) *exec.Plan {
	b.t.Helper()
	p, err := zoo.Program(name, zoo.Options{Batch: batch, Train: true, Optimizer: "adam"})
	if err != nil {
		b.t.Fatal(err)
	}
	plan, err := b.rt.Compile(p, nil, true)
	if err != nil {
		b.t.Fatal(err)
	}
	return plan
}

// liveSum is the largest sum of bytes that a device's tensors ever came to,
// counted in units of 64 bytes and without the blocks around an arena.
func (b *bench) liveSum(dev event.DeviceID) int64 {
	var now, most int64
	size := map[event.AllocatorID]map[uint64]int64{}
	for _, e := range b.events {
		if e.Device != dev || b.strings.At(e.Tensor) == "planned arena" {
			continue
		}
		if size[e.Allocator] == nil {
			size[e.Allocator] = map[uint64]int64{}
		}
		at := size[e.Allocator]
		switch e.Kind {
		case event.Alloc:
			at[e.Address] = (e.Requested + 63) / 64 * 64
			now += at[e.Address]
		case event.Free:
			now -= at[e.Address] // 0 for an arena
			delete(at, e.Address)
		default:
		}
		most = max(most, now)
	}
	return most
}

func TestPlannedPeakIsWithinTwoPercentOfTheLargestSumOfLiveBytes(t *testing.T) {
	for _, model := range zoo.Names() {
		for _, batch := range []int{1, 8, 32, 64} {
			b := newBenchWith(t, 120<<30, func(c *exec.Config) { c.Mode = exec.Planned })
			p := b.model(model, batch)
			if _, err := b.rt.Step(p, 0, now{}); errors.Is(err, exec.ErrOutOfMemory) {
				t.Logf("%s %d: more than the card has: %d", model, batch, b.rt.OOM().Requested)
				continue
			}
			b.step(p)
			live, peak := b.liveSum(gpu), b.rt.Stats(gpu).PeakInUse
			if testing.Verbose() {
				t.Logf("%s %d: live %d, peak %d (%+.2f %%), arenas %+v", model, batch, live, peak, 100*float64(peak-live)/float64(live), p.Arenas())
			}
			if live < mib {
				continue // the toys among the models: the allocator's own rounding weighs more
			}
			if float64(peak) > 1.02*float64(live) {
				t.Errorf("%s at batch %d: planned peak %d, largest sum of live bytes %d", model, batch, peak, live)
			}
		}
	}
}
