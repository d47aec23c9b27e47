package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// test checks the whole tree and ends with the counts of everything that ran.
func test(ctx context.Context, _ []string) error {
	if err := step("needed programs", func() error { return installNeeded(ctx) }); err != nil {
		return err
	}
	var total counts
	parts := []struct {
		name string
		run  func() error
	}{
		{"browser module", func() error { return wasm(ctx, nil) }},
		{"generated code", func() error { return generatedIsFresh(ctx) }},
		{"vet", func() error { return vet(ctx) }},
		{"lint", func() error { return lint(ctx, nil) }},
		{"unit tests", func() error { return goTest(ctx, &total, nil, unitPackages(ctx)...) }},
		{"tests with the race detector", func() error { return race(ctx, &total) }},
		{"CUDA backend on a fake driver", func() error { return fakeCUDA(ctx, &total) }},
		{"tests as WebAssembly", func() error { return wasmTests(ctx, &total) }},
		{"fuzzing", func() error { return fuzzAll(ctx, &total, 0, "") }},
		{"browser tests", func() error { return goTest(ctx, &total, nil, "./e2e/...") }},
	}
	for _, p := range parts {
		if err := step(p.name, p.run); err != nil {
			fmt.Println(total)
			return err
		}
	}
	fmt.Println(total)
	return nil
}

// unit runs the unit tests alone.
func unit(ctx context.Context, args []string) error {
	if len(args) == 0 {
		args = unitPackages(ctx)
	}
	return counted(func(total *counts) error { return goTest(ctx, total, nil, args...) })
}

func testWASM(ctx context.Context, _ []string) error {
	return counted(func(total *counts) error { return wasmTests(ctx, total) })
}

func e2e(ctx context.Context, args []string) error {
	if err := installNeeded(ctx); err != nil {
		return err
	}
	if err := wasm(ctx, nil); err != nil {
		return err
	}
	return counted(func(total *counts) error {
		return goTest(ctx, total, nil, append([]string{"./e2e/..."}, args...)...)
	})
}

// screenshots lets the browser tests renew the pictures of the docs.
func screenshots(ctx context.Context, _ []string) error {
	dir, err := filepath.Abs(filepath.Join("docs", "images"))
	if err != nil {
		return err
	}
	if err := os.Setenv("TIDELINE_SCREENSHOTS", dir); err != nil {
		return err
	}
	return e2e(ctx, []string{"-run", "TestScreenshots"})
}

func counted(f func(*counts) error) error {
	var total counts
	err := f(&total)
	fmt.Println(total)
	return err
}

// unitPackages are all but the browser tests, which need a browser.
func unitPackages(ctx context.Context) []string {
	all, err := goPackages(ctx, "./...")
	if err != nil {
		return []string{"./..."}
	}
	var unit []string
	for _, p := range all {
		if p != "tideline/e2e" && !strings.HasPrefix(p, "tideline/e2e/") {
			unit = append(unit, p)
		}
	}
	return unit
}

// wasmPackages are those that the browser module is made of.
func wasmPackages() []string { return []string{"./protocol/...", "./shared/...", "./wasm/..."} }

// testedAsWASM are the packages whose tests run under Node, too. The models and
// the graph passes are left to the native tests: what they make is held equal
// there by the event hashes of shared/launch, which run on both hosts, and
// their own tests take a minute under Node.
func testedAsWASM(ctx context.Context) ([]string, error) {
	c := exec.CommandContext(ctx, "go", append([]string{"list"}, wasmPackages()...)...)
	c.Env = jsWASM()
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the browser's modules: %w", err)
	}
	var tested []string
	for p := range strings.FieldsSeq(string(out)) {
		if p != "tideline/shared/zoo" && p != "tideline/shared/rewrite" {
			tested = append(tested, p)
		}
	}
	return tested, nil
}

// raced are the packages with goroutines of their own; elsewhere the race
// detector would cost minutes and could find nothing.
var raced = []string{"./native/agent/...", "./native/attach", "./native/feed/...", "./native/sharing/...", "./web/share"}

func race(ctx context.Context, total *counts) error {
	if left, err := withoutCompiler("the race detector"); left {
		return err
	}
	return goTest(ctx, total, []string{"CGO_ENABLED=1"}, append([]string{"-race", "-short"}, raced...)...)
}

// withoutCompiler says whether a part must be left out for want of a C
// compiler; in CI that is an error, since nothing would be checked.
func withoutCompiler(part string) (left bool, err error) {
	if _, err := exec.LookPath(compiler()); err == nil {
		return false, nil
	}
	if os.Getenv("CI") != "" {
		return true, fmt.Errorf("%s needs a C compiler and %q is not there: install gcc", part, compiler())
	}
	fmt.Printf("   left out: %s needs a C compiler (%s)\n", part, compiler())
	return true, nil
}

// fakeCUDA is the verb test:cuda as a part of the whole.
func fakeCUDA(ctx context.Context, total *counts) error {
	if left, err := withoutCompiler("the CUDA backend"); left {
		return err
	}
	return cudaTests(ctx, total, cudaPackages)
}

func compiler() string {
	if cc := os.Getenv("CC"); cc != "" {
		return cc
	}
	return "gcc"
}

// wasmTests runs the core's tests as WebAssembly under Node: what the browser
// computes must be what the agent computes.
func wasmTests(ctx context.Context, total *counts) error {
	root, err := goroot(ctx)
	if err != nil {
		return err
	}
	runner := filepath.Join(root, "lib", "wasm", "go_js_wasm_exec")
	packages, err := testedAsWASM(ctx)
	if err != nil {
		return err
	}
	args := append([]string{"-short", "-exec", runner}, packages...)
	return goTest(ctx, total, []string{"GOOS=js", "GOARCH=wasm"}, args...)
}

// vet runs once for the agent's platform and once for the browser's, which is
// also the Worker's.
func vet(ctx context.Context) error {
	if err := goCommand(ctx, "vet", "./..."); err != nil {
		return err
	}
	c := command(ctx, "go", append([]string{"vet", "./web/share/..."}, wasmPackages()...)...)
	c.Env = jsWASM()
	return c.Run()
}

// lint checks formatting and runs the linters of .golangci.yml.
func lint(ctx context.Context, args []string) error {
	linter, err := tool(ctx, "golangci-lint", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint")
	if err != nil {
		return err
	}
	return command(ctx, linter, append([]string{"run", "./..."}, args...)...).Run()
}

// generatedIsFresh fails when a template was changed without renewing its code.
func generatedIsFresh(ctx context.Context) error {
	templ, err := tool(ctx, "templ", "github.com/a-h/templ/cmd/templ")
	if err != nil {
		return err
	}
	if err := command(ctx, templ, "generate", "-check", "-path", "web").Run(); err != nil {
		return fmt.Errorf("the templ output is stale: run `go run ./build generate` and commit: %w", err)
	}
	return nil
}
