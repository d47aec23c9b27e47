package pipeline_test

import (
	"fmt"

	"tideline/shared/pipeline"
)

// A map of 30 us an element is too slow for a step of 100 us a batch of 8:
// with prefetch a step takes the map's 240 us, and the map is to blame.
func ExampleModel() {
	p, err := pipeline.New(pipeline.Settings{
		Elements: 1000, Map: pipeline.Map{Cost: 30_000}, Batch: []int{8}, Prefetch: 2,
	}, nil, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	const train = 100_000
	now := int64(0)
	for range 4 {
		b, err := p.Next(now)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("asked at %d us, ready at %d us, %s\n", now/1000, b.Ready/1000, b.Stage)
		now = b.Ready + train
	}
	// Output:
	// asked at 0 us, ready at 240 us, map
	// asked at 340 us, ready at 480 us, map
	// asked at 580 us, ready at 720 us, map
	// asked at 820 us, ready at 960 us, map
}
