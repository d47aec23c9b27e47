package kinds_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"tideline/shared/alloc/kinds"
)

var update = flag.Bool("update", false, "write the tables of options into the document")

// TestTheDocumentTellsEveryOption holds the tables of docs/allocators.md to the
// options that there are.
func TestTheDocumentTellsEveryOption(t *testing.T) {
	const path = "../../../docs/allocators.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for _, k := range kinds.All() {
		if !strings.Contains(doc, k.Name) {
			t.Errorf("%s says nothing of %s", path, k.Name)
		}
		if len(k.Options) == 0 {
			continue
		}
		doc = withTable(t, doc, k)
	}
	if *update {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if doc != string(text) && !*update {
		t.Errorf("%s tells other options than there are: go test ./shared/alloc/kinds -update", path)
	}
}

// withTable is the document with the table of k's options after its mark.
func withTable(t *testing.T, doc string, k *kinds.Kind) string {
	t.Helper()
	mark := "<!-- options " + k.Name + " -->\n"
	before, after, ok := strings.Cut(doc, mark)
	if !ok {
		t.Fatalf("no mark %q", mark)
	}
	lines := strings.SplitAfter(strings.TrimLeft(after, "\n"), "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], "|") {
		lines = lines[1:]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %s | takes | default | |\n| --- | --- | --- | --- |\n", k.Name)
	for _, o := range k.Options {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Name, o.Want, o.Default, o.Doc)
	}
	rest := strings.TrimLeft(strings.Join(lines, ""), "\n")
	if rest != "" {
		rest = "\n" + rest
	}
	return before + mark + b.String() + rest
}
