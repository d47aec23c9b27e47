package zoo_test

import (
	"fmt"

	"tideline/shared/zoo"
)

// A training step of ResNet-50 in Keras's mixed precision.
func ExampleBuild() {
	b, err := zoo.Build("resnet50", zoo.Options{Batch: 32, Train: true, Optimizer: "adam", Precision: "mixed_float16"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Program.Parameters(), "parameters in", len(b.Blocks), "blocks, the last of which is", b.Blocks[15])
	_, err = zoo.Build("unet", zoo.Options{Batch: 1, Image: 572})
	fmt.Println(err)
	// Output:
	// 25636712 parameters in 16 blocks, the last of which is block16
	// image 572: unet takes multiples of 16, such as 560 or 576
}
