package driverlog

import (
	"strings"
	"testing"
)

const sample = `name: GeForce GTX 1080 major: 6 minor: 1 memoryClockRate(GHz): 1.7335
totalMemory: 7.92GiB freeMemory: 7.80GiB
Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7527 MB memory) -> physical GPU
E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 7.35G (7892882432 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory
Internal: CUDA runtime implicit initialization on GPU:1 failed. Status: out of memory
`

func TestRead(t *testing.T) {
	r, err := Read(strings.NewReader(sample))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Refused) != 1 || r.Refused[0] != 7892882432 || r.Line != 4 || !r.Context || r.Device != 1 ||
		r.Total.Text != "7.92GiB" || r.Free.Text != "7.80GiB" || r.Promised.N != 7527<<20 {
		t.Errorf("%+v", r)
	}
}

const starts = `I gpu_device.cc:885] Found device 0 with properties: 
name: TITAN X (Pascal)
Total memory: 11.90GiB
Free memory: 381.44MiB
2020-01-14 21:14:55.360139: I gpu_device.cc:1555] Found device 1 with properties:
pciBusID: 0000:01:00.0 name: GeForce GTX 1650 computeCapability: 7.5
coreClock: 1.245GHz coreCount: 16 deviceMemorySize: 4.00GiB deviceMemoryBandwidth: 104.34GiB/s
Created device /job:localhost/replica:0/task:0/device:GPU:1 with 52 MB memory:  -> device: 1, name: Tesla T4, pci bus id: 0000:00:04.0, compute capability: 7.5
Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7527 MB memory) -> physical GPU (device: 2, name: GeForce GTX 1080, pci bus id: 0000:01:00.0, compute capability: 6.1)
Total memory: 1.00GiB
`

func TestStarts(t *testing.T) {
	r, _ := Read(strings.NewReader(starts)) // nothing is refused in it
	if len(r.Starts) != 2 {
		t.Fatalf("%+v", r.Starts)
	}
	a, b := r.Started(0, 99), r.Started(1, 99)
	if a.Line != 1 || a.Total.Text != "11.90GiB" || a.Free.Text != "381.44MiB" || a.Promised.N != 7527<<20 || a.Name != "GeForce GTX 1080" {
		t.Errorf("%+v", a)
	}
	if b.Line != 5 || b.Total.Text != "4.00GiB" || b.Free.Known || b.Promised.N != 52<<20 || b.Name != "Tesla T4" || b.Bus != "0000:00:04.0" {
		t.Errorf("%+v", b)
	}
	if r.Started(2, 99) != nil || r.Started(1, 5) != nil {
		t.Error("a device of no number")
	}
}

// TestStartsAgain: sessions of one process are one start, another process is
// another.
func TestStartsAgain(t *testing.T) {
	one := "Found device 0 with properties:\ntotalMemory: 11.00GiB freeMemory: 10.00GiB\nCreated TensorFlow device (/device:GPU:0 with 9000 MB memory)\nCreated TensorFlow device (/device:GPU:0 with 9000 MB memory)\n"
	other := "Found device 0 with properties:\ntotalMemory: 11.00GiB freeMemory: 1.00GiB\nCreated TensorFlow device (/device:GPU:0 with 700 MB memory)\n"
	r, _ := Read(strings.NewReader(one + other)) // nothing is refused in it
	if len(r.Starts) != 2 || r.Started(0, 5).Free.Text != "10.00GiB" || r.Started(0, 9).Free.Text != "1.00GiB" {
		t.Errorf("%+v", r.Starts)
	}
}

const pools = `I0000 00:00:1744072952.016749  920194 gpu_helpers.cc:136] XLA backend allocating 3825205248 bytes on device 0 for BFCAllocator.
I0000 00:00:1744072952.017087  920194 gpu_helpers.cc:177] XLA backend will use up to 1275068416 bytes on device 0 for CollectiveBFCAllocator.
2022-01-31 18:40:43.141 [info] XLA backend will use up to 5582861107 bytes on device 1 for BFCAllocator.
XLA backend will use up to 38654230528 bytes on device 0 for SimpleAllocator.
XLA backend allocating some bytes on device 0 for BFCAllocator.
XLA backend allocating 99999999999999999999 bytes on device 0 for BFCAllocator.
`

func TestPools(t *testing.T) {
	r, _ := Read(strings.NewReader(pools)) // nothing is refused in it
	if len(r.Pools) != 2 {
		t.Fatalf("%+v", r.Pools)
	}
	a, b := r.Pool(0, 9), r.Pool(1, 9)
	if a == nil || *a != (Pool{Line: 1, Device: 0, Limit: 3825205248, Whole: true}) || b == nil || *b != (Pool{Line: 3, Device: 1, Limit: 5582861107}) {
		t.Errorf("%+v, %+v", a, b)
	}
	if r.Pool(2, 9) != nil || r.Pool(1, 3) != nil {
		t.Error("a pool of no device, or before it is told")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add(pools)
	f.Add("failed to allocate 7 (99999999999999999999 bytes) from device MEMORY\nreated MB memory\nTotal memory: \nFree memory: 1.00GiB")
	f.Add(starts)
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Read(strings.NewReader(s))
		if (err == nil) == r.Empty() || len(r.Refused) > r.Count || len(r.Starts) > maxStarts || len(r.Pools) > maxStarts {
			t.Errorf("%v with %+v", err, r)
		}
	})
}
