//go:build !cuda

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "gpu-check: built without the tag cuda; run it as: go run ./build gpu-check")
	os.Exit(1)
}
