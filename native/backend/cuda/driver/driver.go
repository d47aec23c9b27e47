// Package driver builds what the CUDA backend is linked against, and the fake
// driver that its tests run on, from the C sources beside it.
//
// include/cuda.h is the part of the driver's interface that is used, shim/ is
// the static library that opens the real driver at first use, fake/ a driver on
// host memory. constants.txt lists what NVIDIA's own headers say of every name
// in ours. All of it needs a C compiler and no toolkit of NVIDIA.
package driver

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// compiler is the C compiler: $CC, or gcc.
func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

func run(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// Shim builds the static libcuda.a in a folder, which must exist. source is the
// folder of this package.
func Shim(ctx context.Context, source, to string) error {
	object := filepath.Join(to, "shim.o")
	err := run(ctx, compiler(), "-O2", "-fPIC", "-Wall", "-I", filepath.Join(source, "include"),
		"-c", filepath.Join(source, "shim", "shim.c"), "-o", object)
	if err != nil {
		return fmt.Errorf("build the driver shim: %w", err)
	}
	if err := run(ctx, "ar", "rcs", filepath.Join(to, "libcuda.a"), object); err != nil {
		return fmt.Errorf("build the driver shim: %w", err)
	}
	return os.Remove(object)
}

// Environment is what the go tool needs to build with the tag cuda against the
// shim in a folder. Its flags come before the binding's own, so that ours wins
// over an installed toolkit, some of whose headers the binding does not take.
func Environment(source, shim string) ([]string, error) {
	include, err := filepath.Abs(filepath.Join(source, "include"))
	if err != nil {
		return nil, err
	}
	lib, err := filepath.Abs(shim)
	if err != nil {
		return nil, err
	}
	return []string{"CGO_ENABLED=1", "CGO_CFLAGS=-O2 -g -Wno-deprecated-declarations -I" + include, "CGO_LDFLAGS=-L" + lib}, nil
}

// Fake builds the fake driver as a shared library.
func Fake(ctx context.Context, source, library string) error {
	dir := filepath.Join(source, "fake")
	err := run(ctx, compiler(), "-shared", "-O2", "-fPIC", "-Wall", "-Wextra", "-I", filepath.Join(source, "include"),
		filepath.Join(dir, "fake.c"), filepath.Join(dir, "kernels.c"), "-lm", "-lpthread", "-o", library)
	if err != nil {
		return fmt.Errorf("build the fake driver: %w", err)
	}
	return nil
}

// State is the numbers that a fake driver shares with those who watch it, by
// the names of fake/state.h.
type State struct {
	file  *os.File
	index map[string]int
}

var numbered = regexp.MustCompile(`\b([A-Z][A-Z0-9_]+)\b(?:\s*=\s*(\d+))?\s*,`)

// NewState makes the file, all zeros. A process whose environment names it as
// TIDELINE_FAKE_STATE shares it.
func NewState(source, name string) (*State, error) {
	text, err := os.ReadFile(filepath.Join(source, "fake", "state.h"))
	if err != nil {
		return nil, err
	}
	s := &State{index: map[string]int{}}
	next := 0
	for _, m := range numbered.FindAllSubmatch(withoutComments(text), -1) {
		if len(m[2]) > 0 {
			if _, err := fmt.Sscan(string(m[2]), &next); err != nil {
				return nil, err
			}
		}
		s.index[string(m[1])] = next
		next++
	}
	if s.file, err = os.Create(name); err != nil {
		return nil, err
	}
	return s, s.file.Truncate(64 * 8)
}

var comment = regexp.MustCompile(`(?s)/\*.*?\*/`)

func withoutComments(c []byte) []byte { return comment.ReplaceAll(c, nil) }

// Get reads a number. It panics on a name that is not in state.h.
func (s *State) Get(name string) int64 {
	var b [8]byte
	if _, err := s.file.ReadAt(b[:], s.at(name)); err != nil {
		panic(err)
	}
	return int64(binary.LittleEndian.Uint64(b[:]))
}

// Set writes a number.
func (s *State) Set(name string, v int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	if _, err := s.file.WriteAt(b[:], s.at(name)); err != nil {
		panic(err)
	}
}

func (s *State) at(name string) int64 {
	i, ok := s.index[name]
	if !ok {
		panic("state.h has no " + name)
	}
	return 8 * int64(i)
}

// Name is the file's.
func (s *State) Name() string { return s.file.Name() }
