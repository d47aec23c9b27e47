// Package tideline_test holds the rules of the house that concern the tree as
// a whole: who may import whom, that every package introduces itself, and
// that the documents speak of what is there.
//
// Imports are read from the sources rather than asked of the go tool: the
// test cache sees the files a test opens, not those that a child process
// reads, so a breach found by a child would stay "ok (cached)".
package tideline_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sourcePackage is what the rules need to know of a folder with Go files.
type sourcePackage struct {
	name     string
	docs     []string            // files that carry the package comment
	imports  map[string][]string // import path -> files, tests left out
	allTests bool
}

// tree parses every Go file of the module up to its imports.
func tree(t *testing.T) map[string]*sourcePackage {
	t.Helper()
	pkgs := map[string]*sourcePackage{}
	err := filepath.WalkDir(".", func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || p == "build/tools") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(p))
		if pkgs[dir] == nil {
			pkgs[dir] = &sourcePackage{imports: map[string][]string{}, allTests: true}
		}
		note(pkgs[dir], f, p)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) < 10 {
		t.Fatalf("only %d packages found: the test does not run in the module's root", len(pkgs))
	}
	return pkgs
}

func note(pkg *sourcePackage, f *ast.File, p string) {
	test := strings.HasSuffix(p, "_test.go")
	if f.Doc != nil {
		pkg.docs = append(pkg.docs, filepath.Base(p))
	}
	if test {
		return
	}
	pkg.allTests = false
	pkg.name = f.Name.Name
	for _, imp := range f.Imports {
		name, _ := strconv.Unquote(imp.Path.Value)
		pkg.imports[name] = append(pkg.imports[name], p)
	}
}

// layers says what the packages under a folder must not import, and why.
var layers = []struct {
	under  string
	except []string
	deny   []string
	why    string
}{
	{"protocol", nil, []string{"tideline/shared", "tideline/native", "tideline/wasm", "tideline/web"}, "the protocol stands below everything"},
	{"protocol/event", nil, []string{"tideline"}, "the vocabulary imports nothing of ours"},
	{"shared", nil, []string{"tideline/native", "tideline/wasm", "tideline/web"}, "the core knows no host"},
	{"web", nil, []string{"tideline/native", "tideline/wasm", "tideline/shared"}, "the page knows no runtime"},
	{"wasm", nil, []string{"tideline/native", "tideline/web"}, "the module is built from the core alone"},
	{"native", nil, []string{"tideline/wasm"}, "the agent serves the module as bytes"},
	{"protocol", nil, hostThings, "the protocol takes an io.Reader, an io.Writer, a time"},
	{"shared", []string{"shared/golden"}, hostThings, "the core opens no file, no socket, no browser"},
	{"wasm", nil, []string{"net$", "net/http", "encoding/json", "go.yaml.in", "gopkg.in", "google.golang.org/grpc"}, "the module's size"},
}

// A name that ends in $ means that package alone: net/url only takes text apart.
var hostThings = []string{"os", "net$", "net/http", "syscall", "io/ioutil", "google.golang.org/grpc"}

func TestImportsPointOneWay(t *testing.T) {
	pkgs := tree(t)
	for dir, pkg := range pkgs {
		for imp, files := range pkg.imports {
			for _, l := range layers {
				if within(dir, l.under) && !slices.ContainsFunc(l.except, func(e string) bool { return within(dir, e) }) && slices.ContainsFunc(l.deny, func(d string) bool { return within(imp, d) }) {
					t.Errorf("%v imports %s: %s", files, imp, l.why)
				}
			}
		}
	}
}

// modulesFolders are the folders of our own packages that the browser modules are
// made of, each with how it is come by.
func modulesFolders(t *testing.T, pkgs map[string]*sourcePackage) map[string][]string {
	t.Helper()
	seen := map[string][]string{}
	var follow func(dir string, trail []string)
	follow = func(dir string, trail []string) {
		if seen[dir] != nil || pkgs[dir] == nil {
			return
		}
		trail = append(slices.Clone(trail), dir)
		seen[dir] = trail
		for imp := range pkgs[dir].imports {
			if rest, ours := strings.CutPrefix(imp, "tideline/"); ours {
				follow(rest, trail)
			}
		}
	}
	for _, module := range []string{"wasm", "wasm/rerun/module", "wasm/reader/module"} {
		follow(module, nil)
	}
	if len(seen) < 40 {
		t.Fatalf("followed only %v from wasm", seen)
	}
	return seen
}

// TestModulesStaySmall: one import of net/http would triple what a visitor
// downloads.
func TestModulesStaySmall(t *testing.T) {
	pkgs := tree(t)
	heavy := []string{"net$", "net/http", "encoding/json", "compress/gzip", "reflect", "regexp", "text/template", "html/template", "go.yaml.in/yaml/v3", "google.golang.org/protobuf", "google.golang.org/grpc", "github.com/andybalholm/brotli"}
	for dir, trail := range modulesFolders(t, pkgs) {
		for imp := range pkgs[dir].imports {
			if slices.ContainsFunc(heavy, func(h string) bool { return within(imp, h) }) {
				t.Errorf("%s imports %s", strings.Join(trail, " -> "), imp)
			}
		}
	}
}

// sortBySlices are the packages of the modules that sort with package slices, and
// why they do. It is quicker, and compiled anew for each type of element, 7 to 25
// KB of a module; sort.Slice and sort.SliceStable are there once.
var sortBySlices = map[string]string{
	"shared/store":             "numbers of blocks, at each picture",
	"shared/plan":              "numbers of buffers and the search's keys, in its loops",
	"shared/program":           "numbers of nodes: int32, compiled for the store as well",
	"shared/rewrite":           "numbers of nodes, as above",
	"shared/analysis/finding":  "places, as above",
	"shared/analysis/ranks":    "places, as above",
	"wasm/bridge":              "places, as above",
	"shared/analysis/input":    "spans, for each step of a run",
	"shared/analysis/profiler": "rows of the profiler's table, which no module makes",
}

func TestModulesSortWithOneRoutine(t *testing.T) {
	pkgs := tree(t)
	sorts := map[string]bool{}
	folders := modulesFolders(t, pkgs)
	for dir := range folders {
		for _, p := range pkgs[dir].imports["slices"] {
			text, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			for n, line := range strings.Split(string(text), "\n") {
				if code, _, _ := strings.Cut(line, "//"); !strings.Contains(code, "slices.Sort") {
					continue
				}
				sorts[dir] = true
				if sortBySlices[dir] == "" {
					t.Errorf("%s:%d sorts with package slices, which is 7 to 25 KB of a module for each type: use sort.Slice or sort.SliceStable, or say in sortBySlices why not", p, n+1)
				}
			}
		}
	}
	for dir := range sortBySlices {
		if !sorts[dir] && folders[dir] != nil {
			t.Errorf("sortBySlices names %s, which does not sort with package slices", dir)
		}
	}
}

func within(p, folder string) bool {
	if exact, ok := strings.CutSuffix(folder, "$"); ok {
		return p == exact
	}
	return p == folder || strings.HasPrefix(p, folder+"/")
}

// TestEveryPackageIntroducesItself: one package comment each, in one file.
func TestEveryPackageIntroducesItself(t *testing.T) {
	for dir, pkg := range tree(t) {
		if len(pkg.docs) != 1 {
			t.Errorf("%s: the package comment stands in %v; it belongs in exactly one file", dir, pkg.docs)
		}
	}
}

// TestDocumentsPointAtFiles follows the relative links of every document.
func TestDocumentsPointAtFiles(t *testing.T) {
	docs, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "protocol/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, more...)
	}
	if len(docs) < 5 {
		t.Fatalf("found only %v", docs)
	}
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links(string(text)) {
			if _, err := os.Stat(path.Join(path.Dir(filepath.ToSlash(doc)), link)); err != nil {
				t.Errorf("%s links to %s, which is not there", doc, link)
			}
		}
	}
}

// links are the relative targets of a Markdown text's links.
func links(text string) []string {
	var out []string
	for _, part := range strings.Split(text, "](")[1:] {
		target, _, ok := strings.Cut(part, ")")
		if !ok || strings.Contains(target, "://") || strings.HasPrefix(target, "#") || strings.ContainsAny(target, " \n") {
			continue
		}
		target, _, _ = strings.Cut(target, "#")
		out = append(out, target)
	}
	return out
}

// TestTaskfileHasTheVerbs keeps the two ways of calling the build alike.
func TestTaskfileHasTheVerbs(t *testing.T) {
	tasks, err := os.ReadFile("Taskfile.yml")
	if err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile("build/main.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.SplitSeq(string(main), "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), `{"`)
		if !ok {
			continue
		}
		verb, _, _ := strings.Cut(rest, `"`)
		found++
		if !strings.Contains(string(tasks), "\n  "+verb+":\n") {
			t.Errorf("Taskfile.yml lacks the verb %s", verb)
		}
	}
	if found < 10 {
		t.Fatalf("found only %d verbs in build/main.go", found)
	}
}
