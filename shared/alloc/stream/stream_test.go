package stream_test

import (
	"testing"

	"tideline/shared/alloc/stream"
)

func TestWaitsAreTransitive(t *testing.T) {
	var o stream.Order
	m := o.Mark(3)
	if o.Behind(1, 3, m) || o.Done(3, m) {
		t.Error("nothing orders stream 1 behind 3 yet")
	}
	if !o.Behind(3, 3, m) {
		t.Error("a stream is behind itself")
	}
	o.Wait(2, 3)
	o.Wait(1, 2)
	if !o.Behind(1, 3, m) {
		t.Error("1 waited for 2, which waited for 3")
	}
	later := o.Mark(3)
	if o.Behind(1, 3, later) || o.Behind(2, 3, later) {
		t.Error("work given after the wait is not waited for")
	}
	o.Finish(1)
	if !o.Done(3, m) || o.Done(3, later) {
		t.Error("what a finished stream waited for is done, and no more")
	}
	o.Synchronize()
	if !o.Done(3, later) || !o.Behind(1, 3, later) || !o.Behind(9, 3, later) {
		t.Error("after a synchronisation all is done and behind everyone")
	}
	if o.Mark(3) != later+1 || m != 1 {
		t.Error("marks count from 1")
	}
}
