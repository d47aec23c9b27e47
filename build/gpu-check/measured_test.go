//go:build cuda

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Newest first, under one introduction, and nothing that was there is lost.
func TestFiguresJoinTheOlderOnes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "measured.md")
	if err := os.WriteFile(name, []byte("# Speeds\n\nours\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"first card", "second card"} {
		if err := write(name, time.Unix(0, 0), title, []row{{"a|b", "1\n2"}}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s := string(text)
	if !strings.HasPrefix(s, "# Speeds\n\nours\n\n"+introduction) || strings.Count(s, introduction) != 1 ||
		strings.Index(s, "second card") > strings.Index(s, "first card") || strings.Count(s, "| a/b | 1 2 |\n") != 2 {
		t.Errorf("%s", s)
	}
}
