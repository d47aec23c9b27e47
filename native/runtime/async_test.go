package runtime

import (
	"testing"

	"tideline/shared/device"
)

func TestAsynchronousExecutionHoldsInputsUntilItIsWaitedFor(t *testing.T) {
	for _, sync := range []bool{true, false} {
		rt, _ := newRuntime(t, gpus(1))
		ok(t, rt.SetSynchronous(sync))
		x := mebi(t, rt, 1)
		for range 3 {
			y := Must(rt.Relu(x))
			x.Release()
			x = y
		}
		want := int64(4 * mebibyte)
		if sync {
			want = 2 * mebibyte
		}
		if _, peak := inUse(t, rt); peak != want {
			t.Errorf("synchronous %v: peak %d, want %d", sync, peak, want)
		}
		ok(t, rt.Wait())
		if now, _ := inUse(t, rt); now != mebibyte {
			t.Errorf("synchronous %v: %d bytes after waiting", sync, now)
		}
	}
}

func TestAnAsynchronousFailurePoisonsItsOutputsAndCancelsWhatFollows(t *testing.T) {
	rt, _ := newRuntime(t, gpus(1))
	ok(t, rt.SetLogical(rt.PhysicalDevices("GPU")[0], device.LogicalConfig{Limit: device.MiB(16)}))
	ok(t, rt.SetSynchronous(false))
	a, b, small := mebi(t, rt, 5), mebi(t, rt, 5), floats(t, rt, []float32{1})
	rest := mebi(t, rt, 2)
	bad, err := rt.Add(a, b) // no room, which is not told here
	ok(t, err)
	after, err := rt.Relu(small) // cancelled
	ok(t, err)
	for _, x := range []*Tensor{bad, after} {
		_, err := Read[float32](x)
		refused(t, err, device.ResourceExhausted, "AddV2", "GPU_0_bfc")
	}
	refused(t, rt.Wait(), device.ResourceExhausted, "AddV2")
	refused(t, rt.Wait(), device.ResourceExhausted, "AddV2") // it stays
	rt.ClearErrors()
	ok(t, rt.Wait())
	if y, err := Must(rt.Relu(small)).Scalar(); y != 1 || err != nil {
		t.Error(y, err)
	}
	still := Must(rt.Relu(bad)) // poison spreads
	_, err = Read[float32](still)
	refused(t, err, device.ResourceExhausted, "AddV2")
	_, err = twice(rt).Call(bad)
	refused(t, err, device.ResourceExhausted, "AddV2")
	ok(t, rt.SetSynchronous(true))
	_, err = rt.Relu(bad)
	refused(t, err, device.ResourceExhausted, "AddV2")
	bad.Release()
	rest.Release()
	after.Release()
}
