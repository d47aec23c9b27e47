// Package device is what the runtime knows of hardware: device names, the
// presets of real cards with the source of every figure, the model of time,
// the memory budget that TensorFlow would give a logical device, the settings
// of tf.config with the rules of when each may change, and the physical cards
// that runs share.
//
// # From settings to devices
//
// Cards come from a Machine. A Config holds what a program sets, refuses at
// once what TensorFlow refuses at once, and makes the devices in Initialize:
//
//	card, err := machine.Card("t4-16g#0", preset)
//	c := device.NewConfig(device.Hardware{GPUs: []*device.Card{card}}, env)
//	gpu := c.PhysicalDevices("GPU")[0]
//	err = c.SetMemoryGrowth(gpu, true)        // or:
//	err = c.SetLogical(gpu, device.LogicalConfig{Limit: 1 << 30}, …)
//	c.Options.Fraction = 0.5                  // raw GPU options, where wanted
//	a, err := c.Initialize(nil)
//	// a.Devices: CPU:0, GPU:0, …; a.Log, a.Warnings, a.HostLimit, …
//	defer a.Release()                         // gives the contexts' memory back
//
// Whoever wants what TensorFlow's Python does not offer (growth that differs
// between cards, an order of its own) calls Options.Create, the device layer
// below, with a visible list and virtual devices. Bytes that other processes
// hold are taken off with Card.Hold before. The allocator of a Logical draws
// from Logical.Space.
//
// Errors are *Error: with TensorFlow's kind (errors.Is(err,
// device.ValueError)), the device and the setting.
//
// It allocates nothing for tensors (shared/alloc) and runs nothing
// (shared/exec). All times are integers, so that a model gives the same
// nanoseconds on every host.
package device
