package driver

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func needCompiler(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(compiler()); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no C compiler: %v", err)
		}
		t.Skipf("no C compiler: %v", err)
	}
}

// changed are the facts that differ between the two versions in constants.txt,
// and why the older one is right for us.
var changed = map[string]string{
	"CU_CTX_FLAGS_MASK":               "grew with new flags; nothing uses it",
	"sizeof(CUDA_KERNEL_NODE_PARAMS)": "12 maps the plain names to a second version of struct and function; ours are the first, which drivers keep",
}

// Every constant and layout of our header is what NVIDIA's header says.
func TestHeaderAgreesWithNVIDIAs(t *testing.T) {
	needCompiler(t)
	text, err := os.ReadFile("constants.txt")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	want := map[string]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] == "#" {
			continue
		}
		old, now := f[1], f[2]
		if old == "-" {
			old = now
		}
		if old == "-" {
			old = f[3]
		}
		if now != "-" && old != now && changed[f[0]] == "" {
			t.Errorf("%s is %s in 11.8 and %s in 12.9", f[0], old, now)
		}
		names = append(names, f[0])
		want[f[0]] = old
	}
	if len(names) < 350 {
		t.Fatalf("only %d facts in constants.txt", len(names))
	}
	for name, got := range evaluate(t, names) {
		if got != want[name] {
			t.Errorf("%s is %s in our header, %s in NVIDIA's", name, got, want[name])
		}
	}
	everythingListed(t, want)
}

// evaluate lets the C compiler say what expressions are with our header.
func evaluate(t *testing.T, expressions []string) map[string]string {
	t.Helper()
	var c strings.Builder
	c.WriteString("#include <cuda.h>\n#include <stdio.h>\nint main(void)\n{\n")
	for _, e := range expressions {
		fmt.Fprintf(&c, "\tprintf(\"%s %%lld\\n\", (long long)(%s));\n", e, e)
	}
	c.WriteString("\treturn 0;\n}\n")
	dir := t.TempDir()
	source, program := filepath.Join(dir, "facts.c"), filepath.Join(dir, "facts")
	if err := os.WriteFile(source, []byte(c.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), compiler(), "-Iinclude", source, "-o", program); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	in := bufio.NewScanner(bytes.NewReader(out))
	for in.Scan() {
		f := strings.Fields(in.Text())
		got[f[0]] = f[1]
	}
	if len(got) != len(expressions) {
		t.Fatalf("%d facts of %d", len(got), len(expressions))
	}
	return got
}

// everythingListed fails for a constant of the header that constants.txt does
// not have.
func everythingListed(t *testing.T, listed map[string]string) {
	t.Helper()
	header, err := os.ReadFile(filepath.Join("include", "cuda.h"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(CU\w+) = `).FindAllStringSubmatch(string(header), -1) {
		if listed[m[1]] == "" {
			t.Errorf("%s of the header is not in constants.txt", m[1])
		}
	}
}

// The shim has every function of the header, by the symbol that drivers export.
func TestShimDefinesWhatTheHeaderDeclares(t *testing.T) {
	needCompiler(t)
	dir := t.TempDir()
	if err := Shim(t.Context(), ".", dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "nm", "--defined-only", filepath.Join(dir, "libcuda.a")).Output()
	if err != nil {
		t.Fatal(err)
	}
	functions, err := os.ReadFile(filepath.Join("include", "functions.def"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"cuInit", "cuDeviceGetCount", "cuDriverGetVersion", "tideline_driver_problem"}
	for _, m := range regexp.MustCompile(`(?m)^TIDELINE_FUNCTION\((\w+)`).FindAllStringSubmatch(string(functions), -1) {
		names = append(names, m[1])
	}
	if len(names) < 160 {
		t.Fatalf("only %d functions", len(names))
	}
	for _, n := range names {
		if !strings.Contains(string(out), " T "+n+"\n") {
			t.Errorf("the shim has no %s", n)
		}
	}
}

// Without a driver the shim answers as the binding needs it: initialised, no
// cards, and everything else an error.
func TestShimAnswersWithoutADriver(t *testing.T) {
	needCompiler(t)
	dir := t.TempDir()
	if err := Shim(t.Context(), ".", dir); err != nil {
		t.Fatal(err)
	}
	const program = `
#include <cuda.h>
#include <stdio.h>
const char *tideline_driver_problem(void);
int main(void)
{
	int n = -1, version = -1;
	CUdeviceptr p;
	printf("%d %d %d ", cuInit(0), cuDeviceGetCount(&n), cuDriverGetVersion(&version));
	printf("%d %d %d %s\n", n, version, cuMemAlloc(&p, 4), tideline_driver_problem());
	return 0;
}
`
	source, binary := filepath.Join(dir, "ask.c"), filepath.Join(dir, "ask")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), compiler(), "-Iinclude", source, "-L"+dir, "-lcuda", "-ldl", "-lpthread", "-o", binary); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), binary)
	c.Env = append(os.Environ(), "TIDELINE_CUDA_DRIVER=/nowhere/libcuda.so.1")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "0 0 0 0 0 100 TIDELINE_CUDA_DRIVER: /nowhere/libcuda.so.1: cannot open shared object file"; !strings.HasPrefix(string(out), want) {
		t.Errorf("got %q, want %q…", out, want)
	}
}
