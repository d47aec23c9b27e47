package runtime_test

import (
	"errors"
	"fmt"

	"tideline/native/runtime"
	"tideline/shared/device"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func open(gpus ...string) *runtime.Runtime {
	rt, err := runtime.New(runtime.Options{GPUs: gpus})
	must(err)
	return rt
}

// List the GPUs, and let their memory grow as needed.
func Example_memoryGrowth() {
	rt := open("t4-16g", "t4-16g")
	defer rt.Close()
	gpus := rt.PhysicalDevices("GPU")
	fmt.Println("Num GPUs Available:", len(gpus))
	for _, gpu := range gpus {
		must(rt.SetMemoryGrowth(gpu, true))
	}
	logical, err := rt.LogicalDevices("GPU")
	must(err)
	fmt.Println(len(gpus), "Physical GPUs,", len(logical), "Logical GPUs, growth", logical[0].Growth)
	// Output:
	// Num GPUs Available: 2
	// 2 Physical GPUs, 2 Logical GPUs, growth true
}

// Place tensors on the CPU and let the product run on the GPU.
func Example_manualPlacement() {
	rt := open("t4-16g")
	defer rt.Close()
	var a, b *runtime.Tensor
	must(rt.On("/CPU:0", func() error {
		a = runtime.Must(runtime.Constant(rt, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
		b = runtime.Must(runtime.Constant(rt, []float32{1, 2, 3, 4, 5, 6}, 3, 2))
		return nil
	}))
	c := runtime.Must(rt.MatMul(a, b))
	x, err := runtime.Read[float32](c)
	must(err)
	fmt.Println(a.Device())
	fmt.Println(c.Device())
	fmt.Println(x)

	must(rt.On("/GPU:0", func() error {
		d := runtime.Must(rt.Add(c, c))
		fmt.Println(d.Device())
		return nil
	}))
	// Output:
	// /job:localhost/replica:0/task:0/device:CPU:0
	// /job:localhost/replica:0/task:0/device:GPU:0
	// [22 28 49 64]
	// /job:localhost/replica:0/task:0/device:GPU:0
}

// Let TensorFlow see the first GPU only.
func Example_onlyTheFirstGPU() {
	rt := open("t4-16g", "v100-16g")
	defer rt.Close()
	gpus := rt.PhysicalDevices("GPU")
	must(rt.SetVisible("GPU", gpus[0]))
	logical, err := rt.LogicalDevices("GPU")
	must(err)
	fmt.Println(len(gpus), "Physical GPUs,", len(logical), "Logical GPU")
	// Output:
	// 2 Physical GPUs, 1 Logical GPU
}

// Cut one card into two logical GPUs of 1 GiB each.
func Example_twoLogicalGPUs() {
	rt := open("t4-16g")
	defer rt.Close()
	gpus := rt.PhysicalDevices("GPU")
	must(rt.SetLogical(
		gpus[0],
		device.LogicalConfig{Limit: device.MiB(1024)},
		device.LogicalConfig{Limit: device.MiB(1024)},
	))
	logical, err := rt.LogicalDevices("GPU")
	must(err)
	fmt.Println(len(gpus), "Physical GPU,", len(logical), "Logical GPUs")
	for _, l := range logical {
		fmt.Println(l.Name.Short(), l.Limit)
	}
	// Output:
	// 1 Physical GPU, 2 Logical GPUs
	// /GPU:0 1073741824
	// /GPU:1 1073741824
}

// Settings of devices are frozen by the first op; the error says which device
// and which setting.
func Example_tooLate() {
	rt := open("t4-16g")
	defer rt.Close()
	gpus := rt.PhysicalDevices("GPU")
	must(rt.SetMemoryGrowth(gpus[0], true))
	fmt.Println("growth is set for", gpus[0].Name)
	runtime.Must(runtime.Constant(rt, []float32{1}))

	for _, err := range []error{
		rt.SetMemoryGrowth(gpus[0], false),
		rt.SetVisible("GPU"),
		rt.SetLogical(gpus[0], device.LogicalConfig{Limit: device.MiB(1024)}),
	} {
		fmt.Println(errors.Is(err, device.RuntimeError), err)
	}
	fmt.Println("the same value again:", rt.SetMemoryGrowth(gpus[0], true))
	// Output:
	// growth is set for /physical_device:GPU:0
	// true RuntimeError: memory growth of /physical_device:GPU:0: physical devices cannot be modified after initialisation: set it at the program's start, before the first op or list of logical devices
	// true RuntimeError: visible devices of /physical_device:GPU:0: visible devices cannot change after initialisation: set it at the program's start, before the first op or list of logical devices
	// true RuntimeError: logical devices of /physical_device:GPU:0: virtual devices cannot be modified after initialisation: set it at the program's start, before the first op or list of logical devices
	// the same value again: <nil>
}

// What a device's allocator holds: chunks, the scratch buffer of every GPU
// among them.
func ExampleRuntime_MemoryInfo() {
	rt := open("t4-16g")
	defer rt.Close()
	t := runtime.Must(runtime.Constant(rt, make([]float32, 1000), 1000))
	info, err := rt.MemoryInfo("GPU:0")
	must(err)
	fmt.Println(info.Current, info.Peak)
	t.Release()
	must(rt.ResetPeak("GPU:0"))
	info, err = rt.MemoryInfo("GPU:0")
	must(err)
	fmt.Println(info.Current, info.Peak)
	// Output:
	// 5376 5376
	// 1280 1280
}

// A gradient tape holds what the gradients need, and computes them.
func ExampleTape() {
	rt := open("t4-16g")
	defer rt.Close()
	x := runtime.Must(runtime.Constant(rt, []float32{3}))
	tape := rt.Tape(false)
	tape.Watch(x)
	y := runtime.Must(rt.Mul(x, x))
	g, err := tape.Gradient(y, x)
	must(err)
	v, err := g[0].Scalar()
	must(err)
	fmt.Println(v)
	// Output:
	// 6
}

// A function is traced once for each kind of arguments.
func ExampleFunction() {
	rt := open("t4-16g")
	defer rt.Close()
	double := rt.Function("double", func(args ...any) ([]*runtime.Tensor, error) {
		x := args[0].(*runtime.Tensor)
		fmt.Println("tracing with", x.Shape())
		y, err := rt.Add(x, x)
		return []*runtime.Tensor{y}, err
	})
	for _, n := range []int{2, 2, 3} {
		x := runtime.Must(runtime.Constant(rt, make([]float32, n), int64(n)))
		_, err := double.Call(x)
		must(err)
	}
	fmt.Println(double.Traces(), double.Signatures())
	// Output:
	// tracing with [2]
	// tracing with [3]
	// 2 [float32[2] float32[3]]
}
