//go:build cuda

package cuda

import (
	"fmt"
	"math"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"tideline/native/backend/cuda/lower"
	"tideline/protocol/event"
)

// probe is a card with a stream and two events for measuring, used on the
// card's goroutine.
type probe struct {
	g        *gpu
	stream   cu.Stream
	from, to cu.Event
	blocks   []cu.DevicePtr
}

// measure runs f on the card's goroutine with a probe.
func (d *Driver) measure(card int, f func(p *probe) error) error {
	if card < 0 || card >= len(d.devices) {
		return fmt.Errorf("card %d: this machine has %d", card, len(d.devices))
	}
	g := d.devices[card]
	if err := g.acquire(); err != nil {
		return err
	}
	defer g.release()
	return g.do(func() error {
		p := &probe{g: g}
		var err error
		if p.stream, err = cu.MakeStream(cu.NonBlocking); err != nil {
			return g.fail("make a stream", err)
		}
		defer func() { _ = p.stream.Destroy() }() // fails only with a broken context
		for _, e := range []*cu.Event{&p.from, &p.to} {
			if *e, err = cu.MakeEvent(cu.DefaultEvent); err != nil {
				return g.fail("make an event", err)
			}
			defer func() { _ = cu.DestroyEvent(e) }() // as above
		}
		defer func() {
			for _, b := range p.blocks {
				_ = cu.MemFree(b) // as above
			}
		}()
		return f(p)
	})
}

func (p *probe) block(bytes int64) (cu.DevicePtr, error) {
	b, err := cu.MemAlloc(bytes)
	if err != nil {
		return 0, p.g.fail("allocate "+event.FormatBytes(bytes), err)
	}
	p.blocks = append(p.blocks, b)
	return b, nil
}

// seconds is the best of some rounds of f on the stream, by the card's clock;
// by the host's where the card's says nothing or less, as it does for a
// pageable copy that the host makes in pieces.
func (p *probe) seconds(rounds int, f func() error) (float64, error) {
	best := math.Inf(1)
	for range rounds {
		begin := time.Now()
		if err := p.from.Record(p.stream); err != nil {
			return 0, p.g.fail("measure", err)
		}
		if err := f(); err != nil {
			return 0, p.g.fail("measure", err)
		}
		if err := p.to.Record(p.stream); err != nil {
			return 0, p.g.fail("measure", err)
		}
		if err := p.stream.Synchronize(); err != nil {
			return 0, p.g.fail("measure", err)
		}
		took := time.Since(begin).Seconds()
		if ms, err := p.from.Elapsed(p.to); err == nil && ms > 0 {
			took = ms / 1000
		}
		best = min(best, took)
	}
	return best, nil
}

const rounds = 5

// Bandwidth copies so many bytes up and down and gives the rates in bytes per
// second, the best of a few rounds.
func (d *Driver) Bandwidth(card int, bytes int64, pinned bool) (up, down float64, err error) {
	err = d.measure(card, func(p *probe) error {
		dev, err := p.block(bytes)
		if err != nil {
			return err
		}
		mem := make([]byte, bytes)
		at := unsafe.Pointer(unsafe.SliceData(mem))
		if pinned {
			if at, err = hostAlloc(bytes); err != nil {
				return p.g.fail("lock "+event.FormatBytes(bytes)+" of host memory", err)
			}
			defer func() { _ = cu.MemFreeHost(at) }() // fails only with a broken context
		}
		u, err := p.seconds(rounds, func() error { return cu.MemcpyHtoDAsync(dev, at, bytes, p.stream) })
		if err != nil {
			return err
		}
		dn, err := p.seconds(rounds, func() error { return cu.MemcpyDtoHAsync(at, dev, bytes, p.stream) })
		up, down = float64(bytes)/u, float64(bytes)/dn
		return err
	})
	return up, down, err
}

// Product multiplies two n x n matrices on a card, by our kernel or by cuBLAS,
// and gives the product and the best time of a few rounds in seconds.
func (d *Driver) Product(card int, n int64, a, b []float32, ours bool) (c []float32, seconds float64, err error) {
	if int64(len(a)) != n*n || int64(len(b)) != n*n {
		return nil, 0, fmt.Errorf("product of %dx%d: the matrices have %d and %d elements", n, n, len(a), len(b))
	}
	c = make([]float32, n*n)
	err = d.measure(card, func(p *probe) error {
		var at [3]cu.DevicePtr
		for i, m := range [][]float32{a, b, c} {
			var err error
			if at[i], err = p.block(4 * n * n); err != nil {
				return err
			}
			if err := cu.MemcpyHtoDAsync(at[i], unsafe.Pointer(unsafe.SliceData(m)), 4*n*n, p.stream); err != nil {
				return p.g.fail("copy a matrix up", err)
			}
		}
		l := &lane{d: p.g}
		cmd := lower.ProductOf(lower.Gemm{A: uint64(at[0]), B: uint64(at[1]), C: uint64(at[2]), M: n, N: n, K: n})
		if !ours {
			var err error
			if l.blas, err = openBLAS(p.stream); err != nil {
				return err
			}
			defer l.blas.close()
		}
		s, err := p.seconds(rounds, func() error { return l.command(&cmd, p.stream) })
		if err != nil {
			return err
		}
		seconds = s
		if err := cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(c)), at[2], 4*n*n, p.stream); err != nil {
			return p.g.fail("copy the product down", err)
		}
		return p.stream.Synchronize()
	})
	return c, seconds, err
}
