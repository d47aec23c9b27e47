package monitor

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
)

// fake is a source of one card, whose use rises with every look.
type fake struct{ looks, closed atomic.Int32 }

func (f *fake) Cards() ([]Card, error) {
	n := int64(f.looks.Add(1))
	return []Card{{Name: "Fake", Total: 16 << 30, Used: n << 20, Utilisation: 50, PCI: "0000:3b:00.0"}}, nil
}

func (f *fake) Close() { f.closed.Add(1) }

// tell emits a short run, an event whenever the source was looked at again.
func tell(t *testing.T, sink event.Sink, strings *event.Strings, looks *atomic.Int32) {
	t.Helper()
	emit := func(e event.Event) { e.Step = event.NoStep; sink.Emit(&e) }
	emit(event.Event{Kind: event.Settings})
	for d := range event.DeviceID(3) {
		facts := event.Fields{{Key: "name", Value: "d"}}
		emit(event.Event{Kind: event.DeviceFacts, Device: d, Text: strings.ID(facts.Encode())})
	}
	for i := range int64(6) {
		if looks != nil {
			for was, waited := looks.Load(), 0; looks.Load() < was+2; waited++ {
				if waited > 5000 {
					t.Fatal("nobody looks at the cards")
				}
				time.Sleep(time.Millisecond)
			}
		}
		emit(event.Event{Kind: event.Alloc, Time: 1000 * i, Device: 1, Address: uint64(i+1) << 20, Size: 256, Requested: 256})
	}
	emit(event.Event{Kind: event.End, Time: 9000})
}

type list struct {
	events []event.Event
	hash   *eventhash.Hasher
}

func (l *list) Emit(e *event.Event) { l.events = append(l.events, *e); l.hash.Emit(e) }

func TestCardsAreToldInTheRunsOrder(t *testing.T) {
	var plainStrings, strings event.Strings
	plain := &list{hash: eventhash.New(&plainStrings)}
	tell(t, plain, &plainStrings, nil)

	got := &list{hash: eventhash.New(&strings)}
	src := new(fake)
	tell(t, Follow(got, &strings, func() (Source, error) { return src, nil }, time.Millisecond), &strings, &src.looks)
	if got.hash.Sum64() != plain.hash.Sum64() {
		t.Error("samples change the hash of a run")
	}
	var last int64
	samples, facts := 0, 0
	for i, e := range got.events {
		if e.Time < last {
			t.Errorf("event %d, a %v, is of time %d, after %d", i, e.Kind, e.Time, last)
		}
		last = e.Time
		switch {
		case e.Kind == event.DeviceFacts && e.Device == 3:
			facts++
		case e.Kind == event.Sample:
			samples++
			if e.Device != 3 || facts != 1 {
				t.Errorf("event %d is a sample of device %d after %d facts about it", i, e.Device, facts)
			}
		}
	}
	if samples < 12 {
		t.Errorf("%d samples of two figures in six events, each after a look", samples)
	}
	for waited := 0; src.closed.Load() == 0; waited++ {
		if waited > 5000 {
			t.Fatal("the source is not let go after the end of the run")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestWithoutCardsARunIsAsItWas(t *testing.T) {
	var strings event.Strings
	got := &list{hash: eventhash.New(&strings)}
	tell(t, Follow(got, &strings, func() (Source, error) { return nil, errors.New("no driver") }, time.Millisecond), &strings, nil)
	if n := len(got.events); n != 11 {
		t.Errorf("%d events, want the run's 11", n)
	}
}
