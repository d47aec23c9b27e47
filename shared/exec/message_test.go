package exec_test

import (
	"errors"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/exec"
	"tideline/shared/program"
)

// A tensor that does not fit is named as TensorFlow's log names it: its shape,
// the C++ name of its type, the device, the allocator and the op.
func TestAFailedAllocationIsToldInTensorFlowsWords(t *testing.T) {
	for _, c := range []struct {
		dtype program.DType
		shape program.Shape
		want  string
	}{
		{program.Float32, program.Shape{64, 224, 224, 3}, "shape[64,224,224,3] and type float"},
		{program.Float16, program.Shape{64, 224, 224, 3}, "shape[64,224,224,3] and type half"},
		{program.BFloat16, program.Shape{64, 224, 224, 3}, "shape[64,224,224,3] and type bfloat16"},
		{program.Float64, program.Shape{2 << 20}, "shape[2097152] and type double"},
		{program.Int64, program.Shape{2, 1 << 20}, "shape[2,1048576] and type int64"},
	} {
		for _, m := range []exec.Mode{exec.Eager, exec.Graph} {
			b := newBenchWith(t, 16*mib, func(c *exec.Config) { c.Mode = m })
			p := b.compile(func(b *program.Builder) {
				x := b.Op(program.OpCast, program.Attrs{DType: c.dtype}, b.Input("x", program.Float32, program.Shape{1}))
				b.Fetch("z", b.Op(program.OpBroadcastTo, program.Attrs{Shape: c.shape}, x))
			})
			if _, err := b.rt.Step(p, 0, now{}); !errors.Is(err, exec.ErrOutOfMemory) {
				t.Fatalf("%s %v in 16 MiB: %v", c.dtype, c.shape, err)
			}
			want := "OOM when allocating tensor with " + c.want + " on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [op BroadcastTo]"
			if m == exec.Graph {
				want += "; hint: " // a graph knows what it held
			}
			told := ""
			for _, e := range b.events {
				if e.Kind == event.Log && e.Flags&event.Failure != 0 {
					told = b.strings.At(e.Text)
				}
			}
			if !strings.HasPrefix(told, want) || m == exec.Eager && told != want {
				t.Errorf("%s: told %q, want %q", m, told, want)
			}
		}
	}
}
