package runtime

import (
	"fmt"
	"os"
	"strconv"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
)

// Options say what a Runtime has. The zero value is a machine with a CPU.
type Options struct {
	// GPUs are presets of the machine's cards, in the driver's order. Hardware,
	// if it has any, takes their place: cards that other runs share.
	GPUs     []string
	Hardware device.Hardware
	// Env is the environment; nil is empty. OSEnv is the process's own.
	Env device.Env
	// Process remembers across runtimes what a process fixes for good; nil is a
	// fresh process.
	Process *device.Process

	// Backend does the work; nil is the virtual GPU: real arithmetic, modelled
	// time. It must compute: contents are read.
	Backend exec.Backend
	Strings *event.Strings
	Sink    event.Sink // nil drops the events

	Seed             uint64
	IntraOp, InterOp int // threads; 0: the system's choice
	CopyPolicy       CopyPolicy
	// CPUMemoryStats gives memory figures of the CPU, as is reported of the
	// newest TensorFlow; up to 2.18 asking for them is an error.
	CPUMemoryStats bool
	// FreeTapeGradually lets a plain tape give up each value with the last
	// gradient op that reads it, as newer releases do, instead of at the end.
	FreeTapeGradually bool
	// PinSmallIntegers is TF_EAGER_ENABLE_SMALL_TENSOR_CPU_PINNING.
	PinSmallIntegers bool
}

// OSEnv is the environment of this process.
func OSEnv(name string) (string, bool) { return os.LookupEnv(name) }

// CopyPolicy is what eager execution does with an input on another device.
type CopyPolicy = exec.CopyPolicy

// The policies, see exec.CopyPolicy.
const (
	Silent         = exec.CopySilent
	SilentForInt32 = exec.CopySilentForInt32
	Warn           = exec.CopyWarn
	Explicit       = exec.CopyExplicit
)

// ParseCopyPolicy reads a policy by its word; "" is the default, Silent.
// ValueError: another word.
func ParseCopyPolicy(s string) (CopyPolicy, error) {
	switch s {
	case "", "silent":
		return Silent, nil
	case "silent_for_int32":
		return SilentForInt32, nil
	case "warn":
		return Warn, nil
	case "explicit":
		return Explicit, nil
	}
	return 0, &Error{Kind: device.ValueError, Setting: "device policy", Message: strconv.Quote(s) + " is none of explicit, warn, silent, silent_for_int32"}
}

// Error is a refusal or failure with TensorFlow's kind.
type Error = device.Error

// ErrInitialized is the cause of a RuntimeError about a setting that comes too
// late.
var ErrInitialized = device.ErrInitialized

// cards makes the cards that Options.GPUs asks for.
func (o *Options) cards() (device.Hardware, error) {
	hw := o.Hardware
	if len(hw.GPUs)+len(hw.TPUs) > 0 {
		return hw, nil
	}
	m := device.NewMachine(nil)
	for i, name := range o.GPUs {
		p, ok := device.Find(name)
		if !ok {
			return hw, &Error{Kind: device.ValueError, Device: strconv.Quote(name), Setting: "GPUs", Cause: device.ErrUnknown, Message: "no preset of this name"}
		}
		c, err := m.Card(fmt.Sprintf("%s#%d", name, i), p)
		if err != nil {
			return hw, fmt.Errorf("make card %s: %w", name, err)
		}
		hw.GPUs = append(hw.GPUs, c)
	}
	return hw, nil
}
