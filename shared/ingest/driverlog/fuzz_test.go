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

func FuzzRead(f *testing.F) {
	f.Add(sample)
	f.Add("failed to allocate 7 (99999999999999999999 bytes) from device MEMORY\nreated MB memory\nTotal memory: \nFree memory: 1.00GiB")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Read(strings.NewReader(s))
		if (err == nil) == r.Empty() || len(r.Refused) > r.Count {
			t.Errorf("%v with %+v", err, r)
		}
	})
}
