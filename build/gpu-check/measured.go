//go:build cuda

package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const introduction = `# Measured on real cards

What ` + "`go run ./build gpu-check`" + ` found, newest first. Each table is one run of it.
`

// write puts a table under the introduction, above the older ones.
func write(name string, when time.Time, title string, rows []row) error {
	older, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var b strings.Builder
	b.WriteString(introduction)
	fmt.Fprintf(&b, "\n## %s, %s\n\n| what | figure |\n| --- | --- |\n", when.Format(time.DateOnly), title)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", cell(r.what), cell(r.figure))
	}
	if rest, ok := strings.CutPrefix(string(older), introduction); ok {
		b.WriteString(rest)
	} else if len(older) > 0 {
		return fmt.Errorf("%s does not begin as this program writes it: move it aside", name)
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}

// cell keeps text within its cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", "/", "\n", " ").Replace(s)
}
