// Package vgpu is the backend of virtual GPUs: arithmetic is real, on host
// memory that mirrors the devices' addresses; the clock is the modelled one of
// shared/sim, so that times say what the preset's card would take, not what
// this machine takes.
//
// Work is done in the order in which it is issued. That is the order of a
// device's single compute stream, so memory that was freed and handed out
// again is never read too late.
package vgpu

import (
	"tideline/native/backend/cpu"
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
	"tideline/shared/sim"
)

// Backend computes for virtual devices, the host among them. It serves one
// run.
type Backend struct {
	sim.Backend
	memory cpu.Memory
}

var _ exec.Reserver = (*Backend)(nil)

// New returns a backend at time 0.
func New() *Backend { return new(Backend) }

// Set says how to compute, before the run begins.
func (b *Backend) Set(a cpu.Arithmetic) { b.memory.Arithmetic = a }

// Open implements exec.Backend.
func (b *Backend) Open(devices []*device.Logical) error {
	b.memory.Open(len(devices))
	return b.Backend.Open(devices)
}

// Close implements exec.Backend.
func (b *Backend) Close() { b.memory.Close() }

// Map implements exec.Backend.
func (b *Backend) Map(dev event.DeviceID, addr uint64, bytes int64) error {
	return b.memory.Map(dev, addr, bytes)
}

// Unmap implements exec.Backend.
func (b *Backend) Unmap(dev event.DeviceID, addr uint64, bytes int64) {
	b.memory.Unmap(dev, addr, bytes)
}

// Reserve implements exec.Reserver.
func (b *Backend) Reserve(dev event.DeviceID, addr uint64, bytes int64) error {
	return b.memory.Reserve(dev, addr, bytes)
}

// Unreserve implements exec.Reserver.
func (b *Backend) Unreserve(dev event.DeviceID, addr uint64, bytes int64) {
	b.memory.Unreserve(dev, addr, bytes)
}

// Bytes implements exec.Backend.
func (b *Backend) Bytes(r exec.Ref) []byte { return b.memory.Bytes(r) }

// Launch implements exec.Backend.
func (b *Backend) Launch(k *exec.Kernel) (exec.Span, error) {
	if err := b.memory.Run(k); err != nil {
		return exec.Span{}, err
	}
	return b.Backend.Launch(k)
}

// Copy implements exec.Backend.
func (b *Backend) Copy(c *exec.Copy) (exec.Span, error) {
	if err := b.memory.Copy(c); err != nil {
		return exec.Span{}, err
	}
	return b.Backend.Copy(c)
}
