package tideline_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestParityIsShownByTests holds docs/parity.md to the tree: every test it
// names is there, every row that holds names one, and the numbers at its head
// are those of its tables.
func TestParityIsShownByTests(t *testing.T) {
	text, err := os.ReadFile("docs/parity.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := regexp.MustCompile("`([a-z0-9]+\\.(?:Test|Example)\\w*)`")
	rows, held, partly := 0, 0, 0
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || cells[1] == "holds" || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		names := named.FindAllStringSubmatch(cells[2], -1)
		for _, n := range names {
			if !tests[n[1]] {
				t.Errorf("docs/parity.md names %s, which is not there", n[1])
			}
		}
		switch {
		case cells[1] == "yes" && len(names) > 0:
			held++
		case cells[1] == "partly" && len(names) > 0:
			partly++
		case cells[1] != "no" || len(cells[2]) < 12:
			t.Errorf("docs/parity.md: neither a test nor a reason: %s", line)
		}
	}
	head := fmt.Sprintf("%d of %d hold (%.1f %%), %d in part", held, rows, 100*float64(held)/float64(max(rows, 1)), partly)
	if rows < 100 || !strings.Contains(string(text), head) {
		t.Errorf("docs/parity.md: its tables say %q", head)
	}
}

// testNames are the tests and examples of the tree, by package folder.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				names[filepath.Base(filepath.Dir(p))+"."+fn.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
