package pipeline_test

import (
	"fmt"

	"tideline/shared/pipeline"
)

// Two files are read in turn; the second of two epochs comes from the cache.
func ExampleDataset() {
	files := pipeline.FromFiles(
		pipeline.File{Elements: 3, Open: 30, Read: 15, Bytes: 1000},
		pipeline.File{Elements: 2, Open: 30, Read: 15, Bytes: 1000},
	)
	m, err := files.Interleave(2, 1, 1).Cache().Repeat(2).Batch(5, false).Open(nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := int64(0)
	for {
		b, err := m.Next(now)
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%v after %d\n", b.Indices, b.Ready-now)
		now = b.Ready
	}
	for _, b := range m.Dataset().Buffers(1) {
		fmt.Printf("%s holds %d x %d bytes\n", b.Stage, b.Count, b.Bytes)
	}
	// Output:
	// [0 3 1 4 2] after 135
	// [0 3 1 4 2] after 0
	// the input is exhausted
	// cache holds 5 x 1000 bytes
}
