package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// testTensorFlow attaches to real programs of TensorFlow and JAX in training.
// Their packages come from the Python registry into a folder that is removed
// afterwards, or into one that is given and kept for the next time.
func testTensorFlow(ctx context.Context, args []string) error {
	var dir string
	switch len(args) {
	case 0:
		made, err := os.MkdirTemp("", "tideline-tensorflow-")
		if err != nil {
			return fmt.Errorf("make a folder for TensorFlow: %w", err)
		}
		defer func() { _ = os.RemoveAll(made) }() // a temporary folder; the system clears those, too
		dir = made
	case 1:
		dir = args[0]
	default:
		return errors.New("test:tensorflow takes one folder, where the Python packages are kept")
	}
	python, err := venv(ctx, dir)
	if err != nil {
		return err
	}
	return counted(func(total *counts) error {
		return goTest(ctx, total, []string{"TIDELINE_PYTHON=" + python}, "-count=1", "-tags", "tensorflow", "-run", "TestReal", "./native/attach")
	})
}

// venv makes a Python environment with TensorFlow and JAX, unless it is there.
func venv(ctx context.Context, dir string) (python string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", dir, err)
	}
	python = filepath.Join(dir, "bin", "python")
	if runtime.GOOS == "windows" {
		python = filepath.Join(dir, "Scripts", "python.exe")
	}
	if command(ctx, python, "-c", "import importlib.util as u, sys; sys.exit(not (u.find_spec('tensorflow') and u.find_spec('jax')))").Run() == nil {
		return python, nil
	}
	host, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("TensorFlow needs Python and there is no python3: install it (python3, python3-venv)")
	}
	err = step("Python environment", func() error {
		if err := command(ctx, host, "-m", "venv", dir).Run(); err != nil {
			return fmt.Errorf("make a Python environment (is python3-venv installed?): %w", err)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return python, step("TensorFlow and JAX, some 500 MB", func() error {
		if err := command(ctx, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", tensorFlow(), "jax[cpu]").Run(); err != nil {
			return fmt.Errorf("install TensorFlow and JAX (have they a wheel for this Python and machine?): %w", err)
		}
		return nil
	})
}

// tensorFlow is the package without CUDA where there is one.
func tensorFlow() string {
	if runtime.GOARCH == "amd64" && runtime.GOOS != "darwin" {
		return "tensorflow-cpu"
	}
	return "tensorflow"
}
