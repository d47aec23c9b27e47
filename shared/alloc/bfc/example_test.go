package bfc_test

import (
	"fmt"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
)

// A card of 16 GiB with an allocator that grows up to 1 GiB of it.
func Example() {
	card := alloc.NewCard(16 << 30)
	driver, err := alloc.NewSpace(alloc.SpaceOptions{Card: card, Alignment: 2 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	gpu, err := bfc.New(driver, bfc.Options{Name: "GPU_0_bfc", Limit: 1 << 30, Growth: true, GarbageCollection: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	b, ok := gpu.Allocate(alloc.Request{Bytes: 1000})
	fmt.Println(ok, b.Size, gpu.Stats().Pool, card.Held())
	if err := gpu.Free(b.Address); err != nil {
		fmt.Println(err)
	}
	_, ok = gpu.Allocate(alloc.Request{Bytes: 2 << 30, NoRetry: true})
	fmt.Println(ok, gpu.Occupancy()[:3])
	// Output:
	// true 1024 2097152 2097152
	// false ___
}
