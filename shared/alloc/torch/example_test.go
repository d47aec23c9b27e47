package torch_test

import (
	"fmt"

	"tideline/shared/alloc"
	"tideline/shared/alloc/torch"
)

// Eight tensors of 16 MiB, then four of 32 MiB, as when a batch grows: ordinary
// segments cannot join, pages of an expandable one can.
func Example() {
	for _, text := range []string{"", "expandable_segments:True"} {
		s, err := torch.ParseSettings(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		a, err := torch.New(torch.NewDevice(alloc.NewCard(16<<30), 0), torch.Options{Settings: s})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, step := range []struct{ n, bytes int64 }{{8, 16 << 20}, {4, 32 << 20}} {
			var blocks []alloc.Block
			for range step.n {
				b, _ := a.AllocateOn(torch.Request{Bytes: step.bytes})
				blocks = append(blocks, b)
			}
			for _, b := range blocks {
				if err := a.Free(b.Address); err != nil {
					fmt.Println(err)
				}
			}
		}
		fmt.Printf("%q: %d MiB reserved\n", text, a.Stats().Pool>>20)
	}
	// Output:
	// "": 256 MiB reserved
	// "expandable_segments:True": 140 MiB reserved
}
