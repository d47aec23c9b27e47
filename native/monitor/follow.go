package monitor

import (
	"strconv"
	"sync/atomic"
	"time"

	"tideline/protocol/event"
)

// FollowEvery is how often a run is told of the cards beside it.
const FollowEvery = 250 * time.Millisecond

// untaken is how long samples are taken that no event of the run picks up:
// then the run is over, or was never begun.
const untaken = time.Minute

// Follower is a sink that tells, among the events of a run on a real clock,
// what the machine's cards looked like meanwhile. The cards are looked at by a
// goroutine of its own; what it saw last is told right before the run's next
// event, at its time, so that the order of a timeline holds. Where no cards can
// be seen it hands events on and does nothing else.
type Follower struct {
	sink    event.Sink
	strings *event.Strings
	open    func() (Source, error)
	every   time.Duration

	latest atomic.Pointer[[]Card] // not told yet
	state  atomic.Int32
	over   chan struct{}

	// What only the run's goroutine touches.
	next  event.DeviceID // above the run's devices
	first event.DeviceID // of the cards, once they were told of
	told  int            // how many were
	ended bool
}

// The states of a follower's goroutine.
const (
	resting = iota
	looking
	blind // there is nothing to be seen
)

// Follow makes a follower in front of a sink. It looks at the cards, which open
// gives, from the first event to the End.
func Follow(sink event.Sink, strings *event.Strings, open func() (Source, error), every time.Duration) *Follower {
	return &Follower{sink: sink, strings: strings, open: open, every: every, over: make(chan struct{})}
}

// Emit hands an event on, behind what is to be told of the cards.
func (f *Follower) Emit(e *event.Event) {
	switch e.Kind {
	case event.DeviceFacts:
		f.next = max(f.next, e.Device+1)
	case event.Settings, event.AllocatorFacts:
		// The head of a timeline is left whole.
	default:
		if f.latest.Load() != nil {
			f.tell(e.Time)
		}
	}
	switch {
	case e.Kind == event.End:
		if !f.ended {
			f.ended = true
			close(f.over)
		}
	case !f.ended && f.state.CompareAndSwap(resting, looking):
		go f.look()
	}
	f.sink.Emit(e)
}

// most bounds the cards that are told of.
const most = 64

func (f *Follower) tell(at int64) {
	list := f.latest.Swap(nil)
	if list == nil {
		return
	}
	cards := *list
	if f.told == 0 {
		f.first = f.next
	}
	for i := range cards[:min(len(cards), most)] {
		dev := f.first + event.DeviceID(i)
		if i >= f.told {
			f.told++
			cards[i].Facts(f.sink, f.strings, dev, at)
		}
		cards[i].Emit(f.sink, f.strings, dev, at)
	}
}

// look samples the cards until the run ends, or seems to have.
func (f *Follower) look() {
	src, err := f.open()
	if err != nil {
		f.state.Store(blind) // a run does not fail because nobody watches
		return
	}
	defer src.Close()
	t := time.NewTicker(f.every)
	defer t.Stop()
	for idle := time.Duration(0); idle < untaken; idle += f.every {
		cards, err := src.Cards()
		if err != nil {
			f.state.Store(blind)
			return
		}
		if f.latest.Swap(&cards) == nil {
			idle = 0
		}
		select {
		case <-t.C:
		case <-f.over:
			return
		}
	}
	f.state.Store(resting) // until the next event
}

// Facts tells who a card is, as the device dev of a timeline, at time t.
func (c *Card) Facts(sink event.Sink, strings *event.Strings, dev event.DeviceID, t int64) {
	facts := event.Fields{
		{Key: "name", Value: c.Name + " #" + strconv.Itoa(c.Index)},
		{Key: "kind", Value: "card"},
		{Key: "total", Value: event.FormatBytes(c.Total)},
		{Key: "pci", Value: c.PCI},
	}
	if c.UUID != "" {
		facts = append(facts, event.Field{Key: "uuid", Value: c.UUID})
	}
	e := event.Event{Kind: event.DeviceFacts, Time: t, Device: dev, Text: strings.ID(facts.Encode()), Step: event.NoStep}
	sink.Emit(&e)
}
