package redact

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write words.txt anew from the sources")

// sources are the folders whose texts are Tideline's own words: what reports,
// readers, settings and timelines say. Models are left out, for their ops have
// names as anybody's do.
var sources = []string{
	"protocol/event", "protocol/api", "protocol/timeline", "protocol/block", "shared/analysis", "shared/ingest", "shared/fit", "shared/device",
	"shared/alloc", "shared/pipeline", "shared/remedy", "shared/blame", "shared/export", "shared/redact", "shared/launch", "native/explain", "native/monitor",
}

// extra are words that stand in no text of the sources.
var extra = []string{
	"float0", "bfloat0", "int0", "uint0", "bool", "half", "complex0", "string", "resource", "variant", "f0", "bf0", "s0", "u0", "pred",
	"lenet0", "resnet0", "mlp", "lstm", "bert", "unet", "transformer", "gpt0",
	"gpu_0_bfc", "gpu_0_torch", "rmm_0", "gpu_host_bfc", "cpu", "gpu_host_pinned", "cuda_host_bfc", "cuda_gpu_allocator", "bfc", "cudamallocasync",
	"tideline", "html", "json",
	// Devices, as ONNX Runtime names its arenas.
	"cuda", "cudapinned", "hip", "hippinned", "rocm", "dml", "migraphx", "tensorrt", "cann", "openvino", "webgpu",
	// Cards, as nvidia-smi and PyTorch name them.
	"nvidia", "amd", "geforce", "tesla", "quadro", "titan", "rtx", "gtx", "super", "instinct", "l0s", "l0", "a0", "h0", "v0", "t0", "p0", "k0", "b0",
	"gh0", "gb0", "m0", "xp", "ti", "sxm0", "pcie", "nvl", "hbm0", "mi0x", "mi0", "ada", "laptop", "a0g", "tpu0", "tpu",
}

var verb = regexp.MustCompile(`%[-+# 0-9.*\[\]]*[a-zA-Z]`)

// ownWords collects the words of the sources' string literals.
func ownWords(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, w := range extra {
		seen[w] = true
	}
	for _, dir := range sources {
		_ = filepath.WalkDir(filepath.Join("../..", dir), func(p string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if _, imports := n.(*ast.ImportSpec); imports {
					return false
				}
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					return true
				}
				s = strings.ReplaceAll(s, "%%", "%")
				s = verb.ReplaceAllStringFunc(s, func(v string) string {
					if strings.ContainsAny(v[len(v)-1:], "sqvw") {
						return " "
					}
					return "0"
				})
				for _, w := range splitWords(s) {
					seen[w] = true
				}
				return true
			})
			return nil
		})
	}
	delete(seen, "")
	list := make([]string, 0, len(seen))
	for w := range seen {
		if !isNumber(w) && strings.IndexFunc(w, letter) >= 0 && len(w) < 64 && !strings.ContainsAny(w, "\x00\ufffd") {
			list = append(list, w)
		}
	}
	slices.Sort(list)
	return list
}

func splitWords(s string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(s, func(c rune) bool { return c < 0x80 && isBreak(byte(c)) }) {
		core, _, _ := trim(w)
		core = normal(core)
		out = append(out, core)
		for _, mark := range []string{"=", ":"} {
			out = append(out, strings.Split(core, mark)...)
		}
	}
	return out
}

// TestWordsAreOfTheSources: no word of words.txt is anybody else's, and few of
// ours are missing. go test ./shared/redact -update writes it anew.
func TestWordsAreOfTheSources(t *testing.T) {
	want := ownWords(t)
	if *update {
		if err := os.WriteFile("words.txt", []byte(strings.Join(want, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have := strings.Fields(wordList)
	if !slices.IsSorted(have) || len(have) < 1000 {
		t.Fatalf("%d words, sorted: %v", len(have), slices.IsSorted(have))
	}
	missing := 0
	for _, w := range want {
		if !own()[w] {
			missing++
		}
	}
	if missing*20 > len(want) {
		t.Errorf("%d of %d words of the sources are missing: run go test ./shared/redact -update", missing, len(want))
	}
	gone := 0
	for _, w := range have {
		if _, ok := slices.BinarySearch(want, w); !ok {
			gone++
		}
	}
	if gone*20 > len(have) {
		t.Errorf("%d of %d words are no longer in the sources: run go test ./shared/redact -update", gone, len(have))
	}
}
