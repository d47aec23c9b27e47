package vgpu_test

import (
	"sync"
	"testing"

	"tideline/native/backend/vgpu"
	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/launch"
)

// Runs on several goroutines share a card through a machine with a lock.
func TestConcurrentRunsShareACard(t *testing.T) {
	train, _ := load(t)
	m := device.NewMachine(new(sync.Mutex))
	w := api.Workload{
		Model: "mlp", Train: &api.Train{}, Batch: []int{8}, Steps: 10,
		Devices: []api.Device{{Preset: "lab-256m", Card: "shared", Growth: true}},
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			res, err := launch.Run(w, launch.Options{Backend: vgpu.New(), Data: train, Machine: m})
			if err != nil || res.Reason != event.EndDone {
				t.Errorf("%v %s", err, res.Message)
			}
		})
	}
	wg.Wait()
	p, _ := device.Find("lab-256m")
	c, err := m.Card("shared", p)
	if err != nil {
		t.Fatal(err)
	}
	if c.Free() != c.Total() {
		t.Errorf("%d bytes are still held", c.Total()-c.Free())
	}
}
