package sim

import (
	"testing"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/exec"
)

const (
	cpu  event.DeviceID = 0
	gpu0 event.DeviceID = 1
	gpu1 event.DeviceID = 2
)

func open(t *testing.T) *Backend {
	t.Helper()
	b := New()
	err := b.Open([]*device.Logical{
		{Name: device.Local("CPU", 0)},
		{Name: device.Local("GPU", 0), Card: new(device.Card)},
		{Name: device.Local("GPU", 1), Card: new(device.Card)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func launch(b *Backend, dev event.DeviceID, nanos, after int64) exec.Span {
	s, _ := b.Launch(&exec.Kernel{Device: dev, Nanos: nanos, After: after})
	return s
}

func transfer(b *Backend, from, to event.DeviceID, stream event.StreamID, nanos int64) exec.Span {
	s, _ := b.Copy(&exec.Copy{From: exec.Ref{Device: from}, To: exec.Ref{Device: to}, Stream: stream, Nanos: nanos})
	return s
}

func TestHostRunsAheadOfTheDevice(t *testing.T) {
	b := open(t)
	launch(b, gpu0, 1000, 0)
	b.Spend(10)
	if s := launch(b, gpu0, 500, 0); s != (exec.Span{Begin: 1000, End: 1500}) {
		t.Errorf("the second kernel runs %v", s)
	}
	if b.Now() != 10 {
		t.Errorf("the host is at %d, want 10", b.Now())
	}
	b.WaitUntil(b.Idle(gpu0))
	if b.Now() != 1500 {
		t.Errorf("the host waited until %d", b.Now())
	}
}

func TestHostWorksItself(t *testing.T) {
	b := open(t)
	if s := launch(b, cpu, 100, 40); s != (exec.Span{Begin: 40, End: 140}) || b.Now() != 140 {
		t.Errorf("ran %v, host at %d", s, b.Now())
	}
}

func TestUploadWaitsForTheWorkQueuedBeforeIt(t *testing.T) {
	b := open(t)
	launch(b, gpu0, 1000, 0)
	if s := transfer(b, cpu, gpu0, event.StreamH2D, 50); s.Begin != 1000 {
		t.Errorf("the copy began at %d, want 1000", s.Begin)
	}
	if s := launch(b, gpu0, 10, 0); s.Begin != 1000 {
		t.Errorf("a kernel that does not need the copy began at %d, want 1000", s.Begin)
	}
	if s := launch(b, gpu0, 10, 1050); s.Begin != 1050 {
		t.Errorf("a kernel that reads the copy began at %d, want 1050", s.Begin)
	}
}

func TestDirectionsOverlapAndEachRunsInOrder(t *testing.T) {
	b := open(t)
	up1 := transfer(b, cpu, gpu0, event.StreamH2D, 100)
	up2 := transfer(b, cpu, gpu0, event.StreamH2D, 100)
	down := transfer(b, gpu0, cpu, event.StreamD2H, 100)
	if up1.Begin != 0 || down.Begin != 0 {
		t.Errorf("uploads and downloads do not overlap: %v %v", up1, down)
	}
	if up2.Begin != up1.End {
		t.Errorf("two uploads overlap: %v %v", up1, up2)
	}
}

func TestPeerCopyWaitsForBothComputeStreams(t *testing.T) {
	for _, busy := range [][2]int64{{300, 700}, {700, 300}} {
		b := open(t)
		launch(b, gpu0, busy[0], 0)
		launch(b, gpu1, busy[1], 0)
		if s := transfer(b, gpu0, gpu1, event.StreamD2D, 10); s.Begin != 700 {
			t.Errorf("computing until %v, the copy began at %d, want 700", busy, s.Begin)
		}
	}
}

func TestDownloadWaitsForTheWorkQueuedBeforeIt(t *testing.T) {
	b := open(t)
	launch(b, gpu0, 1000, 0)
	if s := transfer(b, gpu0, cpu, event.StreamD2H, 50); s.Begin != 1000 {
		t.Errorf("the copy began at %d, want 1000", s.Begin)
	}
	if s := launch(b, gpu0, 10, 0); s.Begin != 1000 {
		t.Errorf("a kernel began at %d, want 1000: it does not wait for the copy", s.Begin)
	}
}

func TestUploadIntoSafeMemoryWaitsForNoKernel(t *testing.T) {
	b := open(t)
	launch(b, gpu0, 1000, 0)
	s, err := b.Copy(&exec.Copy{From: exec.Ref{Device: cpu}, To: exec.Ref{Device: gpu0}, Stream: event.StreamH2D, Nanos: 50, Safe: true})
	if err != nil || s.Begin != 0 {
		t.Errorf("the copy began at %d (%v), want 0", s.Begin, err)
	}
}
