//go:build cuda

package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

const introduction = `## Measured on real cards

What ` + "`go run ./build gpu-check`" + ` found, newest first. Each table is one run of it.
`

// write puts a table under the introduction, above the older ones. A file that
// says other things too gets the introduction and the table at its end.
func write(name string, when time.Time, title string, rows []row) error {
	older, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	before, after, found := strings.Cut(string(older), introduction)
	if !found && before != "" {
		before = strings.TrimRight(before, "\n") + "\n\n"
	}
	return os.WriteFile(name, []byte(before+introduction+table(when, title, rows)+after), 0o644)
}

func table(when time.Time, title string, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s, %s\n\n| what | figure |\n| --- | --- |\n", when.Format(time.DateOnly), title)
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s |\n", cell(r.what), cell(r.figure))
	}
	return b.String()
}

// cell keeps text within its cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", "/", "\n", " ").Replace(s)
}
