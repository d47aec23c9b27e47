package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// bench prints our own speeds: natively, and of the same tasks as WebAssembly
// where there is Node. With -cblas FOLDER the matrix products are compared with
// the BLAS library in that folder; the rest goes to tideline bench.
func bench(ctx context.Context, args []string) error {
	folder, args, err := cblasFolder(args)
	if err != nil {
		return err
	}
	native, module := filepath.Join("bin", "bench"), filepath.Join("bin", "bench.wasm")
	if err := step("command", func() error { return benchCommand(ctx, native, folder) }); err != nil {
		return err
	}
	with, err := underNode(ctx, module)
	if err != nil {
		return err
	}
	c := command(ctx, "./"+native, slices.Concat([]string{"bench"}, with, args)...)
	if folder != "" {
		c.Env = append(os.Environ(), "LD_LIBRARY_PATH="+folder+string(os.PathListSeparator)+os.Getenv("LD_LIBRARY_PATH"))
	}
	return c.Run()
}

// cblasFolder takes -cblas FOLDER out of the arguments.
func cblasFolder(args []string) (folder string, rest []string, err error) {
	i := slices.Index(args, "-cblas")
	if i < 0 {
		return "", args, nil
	}
	if i+1 == len(args) {
		return "", nil, fmt.Errorf("-cblas needs the folder of libopenblas")
	}
	folder, err = filepath.Abs(args[i+1])
	return folder, slices.Concat(args[:i], args[i+2:]), err
}

// benchCommand builds the command. Measuring needs no page in it.
func benchCommand(ctx context.Context, path, folder string) error {
	if folder == "" {
		return goCommand(ctx, "build", "-trimpath", "-o", path, "./native/cmd/tideline")
	}
	c := command(ctx, "go", "build", "-trimpath", "-tags=benchcblas", "-o", path, "./native/cmd/tideline")
	c.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_LDFLAGS=-L"+folder)
	return c.Run()
}

// underNode builds the tasks as WebAssembly and gives the arguments by which
// tideline bench runs them; none without Node.
func underNode(ctx context.Context, module string) ([]string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Println("no Node on this machine: WebAssembly is not measured")
		return nil, nil //nolint:nilerr // the other figures do without
	}
	err := step("WebAssembly", func() error {
		c := command(ctx, "go", "build", "-trimpath", "-o", module, "./wasm/bench")
		c.Env = jsWASM()
		return c.Run()
	})
	if err != nil {
		return nil, err
	}
	root, err := goroot(ctx)
	if err != nil {
		return nil, err
	}
	return []string{"--wasm", filepath.Join(root, "lib", "wasm", "go_js_wasm_exec"), "--wasm", module}, nil
}
