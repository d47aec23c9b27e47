package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"tideline/native/backend/cuda/driver"
)

// cudaSource is where the header, the shim and the fake driver lie.
const cudaSource = "native/backend/cuda/driver"

// cudaPackages are those that the tag cuda changes, besides the command.
var cudaPackages = []string{"./native/backend/cuda/...", "./native/monitor/...", "./build/gpu-check"}

// cudaEnvironment builds the driver shim and gives the environment in which the
// go tool builds against it. It needs a C compiler and nothing of NVIDIA.
func cudaEnvironment(ctx context.Context) ([]string, error) {
	if _, err := exec.LookPath(compiler()); err != nil {
		return nil, fmt.Errorf("building for NVIDIA cards needs a C compiler and %q is not there: install gcc", compiler())
	}
	shim := filepath.Join("bin", "cuda")
	if err := os.MkdirAll(shim, 0o755); err != nil {
		return nil, err
	}
	if err := driver.Shim(ctx, cudaSource, shim); err != nil {
		return nil, err
	}
	return driver.Environment(cudaSource, shim)
}

// testCUDA vets and tests what the tag cuda adds, on the fake driver.
func testCUDA(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = cudaPackages
	}
	return counted(func(total *counts) error { return cudaTests(ctx, total, args) })
}

func cudaTests(ctx context.Context, total *counts, args []string) error {
	env, err := cudaEnvironment(ctx)
	if err != nil {
		return err
	}
	err = step("vet with the tag cuda", func() error {
		return goWith(ctx, env, append([]string{"vet", "-tags", "cuda"}, append(cudaPackages, "./native/cmd/tideline")...)...)
	})
	if err != nil {
		return err
	}
	return goTest(ctx, total, env, append([]string{"-tags", "cuda"}, args...)...)
}

// binaryCUDA builds the agent with the page inside and the backend for NVIDIA
// cards. It starts on machines without a driver, too.
func binaryCUDA(ctx context.Context, _ []string) error {
	if err := step("browser module", func() error { return wasm(ctx, nil) }); err != nil {
		return err
	}
	return step("agent with CUDA", func() error {
		env, err := cudaEnvironment(ctx)
		if err != nil {
			return err
		}
		return goWith(ctx, env, "build", "-tags", "cuda", "-trimpath", "-o", binaryPath(), "./native/cmd/tideline")
	})
}

// gpuCheck runs everything that needs a real card, and writes what it measured
// into docs/measured.md.
func gpuCheck(ctx context.Context, args []string) error {
	env, err := cudaEnvironment(ctx)
	if err != nil {
		return err
	}
	program := filepath.Join("bin", "gpu-check")
	if err := goWith(ctx, env, "build", "-tags", "cuda", "-o", program, "./build/gpu-check"); err != nil {
		return err
	}
	c := command(ctx, "./"+program, args...)
	if err := c.Run(); err != nil {
		return errors.Join(errors.New("the check on a real card did not pass"), err)
	}
	return nil
}

// goWith runs the go tool with more environment than our own.
func goWith(ctx context.Context, env []string, args ...string) error {
	c := command(ctx, "go", args...)
	c.Env = append(os.Environ(), env...)
	return c.Run()
}
