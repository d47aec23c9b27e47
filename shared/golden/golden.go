// Package golden finds the recorded truth that tests compare against: answers
// of TensorFlow's own allocator, planner benchmarks, and real inputs from
// public bug reports.
//
// The data lies in a folder named shared beside the checkout, or where
// TIDELINE_GOLDENS points. A test that needs it is skipped, loudly, on a
// machine that lacks it, and fails in CI, where its absence would mean that
// nothing was checked. Only tests import this package.
package golden

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir returns the folder of one family of goldens, such as "bfc".
func Dir(tb testing.TB, family string) string {
	tb.Helper()
	return find(tb, filepath.Join("goldens", family))
}

// Cases returns the folder of real inputs with their expected readings.
func Cases(tb testing.TB) string {
	tb.Helper()
	return find(tb, "cases")
}

func find(tb testing.TB, sub string) string {
	tb.Helper()
	root := os.Getenv("TIDELINE_GOLDENS")
	if root == "" {
		_, file, _, _ := runtime.Caller(0)
		root = filepath.Join(filepath.Dir(file), "..", "..", "..", "shared")
	}
	dir := filepath.Join(root, sub)
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return dir
	}
	const hint = "set TIDELINE_GOLDENS to the folder that holds goldens/ and cases/"
	if os.Getenv("CI") != "" {
		tb.Fatalf("golden data %s is missing in CI, so nothing would be checked: %s", dir, hint)
	}
	tb.Skipf("golden data %s is missing: %s", dir, hint)
	return ""
}
