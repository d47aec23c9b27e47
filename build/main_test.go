package main

import (
	"context"
	"strings"
	"testing"
)

// TestHelpDoesNothing: who asks what a verb does does not wait for it.
func TestHelpDoesNothing(t *testing.T) {
	t.Chdir(".") // dispatch moves to the root
	done := ""
	verbs = []verb{{"make", "makes it", func(_ context.Context, args []string) error {
		done += " " + strings.Join(args, ",")
		return nil
	}}}
	for _, args := range [][]string{{"--help"}, {"help"}, {"make", "--help"}, {"make", "x", "-h"}} {
		if err := dispatch(t.Context(), args); err != nil || done != "" {
			t.Errorf("%v: %v, done%s", args, err, done)
		}
	}
	if err := dispatch(t.Context(), []string{"make", "x"}); err != nil || done != " x" {
		t.Errorf("%v, done%s", err, done)
	}
	if err := dispatch(t.Context(), []string{"other"}); err == nil {
		t.Error("another verb is no error")
	}
}
