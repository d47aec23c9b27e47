package main

import (
	"tideline/native/backend/vgpu"
	"tideline/native/dataset"
	"tideline/protocol/api"
	"tideline/shared/exec"
	"tideline/shared/launch"
)

// syntheticElements is the size of the made-up source, as large as MNIST.
const syntheticElements = 60_000

// compute gives what a run of this program computes with, and on: real
// arithmetic in host memory behind virtual cards, and real digits.
func compute(w *api.Workload) (exec.Backend, launch.Data, error) {
	if w.Input.Source == "synthetic" {
		return vgpu.New(), dataset.Synthetic(syntheticElements), nil
	}
	digits, err := dataset.Training()
	return vgpu.New(), digits, err
}
