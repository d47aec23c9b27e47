package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tideline/native/agent"
	"tideline/native/agent/record"
	"tideline/native/monitor"
	"tideline/protocol/event"
	"tideline/shared/launch"
)

type watchCmd struct {
	Output string        `short:"o" placeholder:"FILE" help:"Write a timeline instead of serving the page."`
	Every  time.Duration `default:"500ms" help:"Time between two looks at the cards."`
	For    time.Duration `placeholder:"DURATION" help:"How long to watch; until interrupted by default."`
	SMI    string        `name:"smi" default:"${smi}" env:"TIDELINE_NVIDIA_SMI" help:"Command that tells of the cards where NVML cannot be had."`
	pageFlags
}

// Run watches the cards.
func (x *watchCmd) Run(ctx context.Context, c *console) error {
	if x.Every < 10*time.Millisecond {
		return usage("--every %v is too short: looking at a card takes some milliseconds; take at least 10ms", x.Every)
	}
	if x.For < 0 {
		return usage("--for %v is negative", x.For)
	}
	cards, err := monitor.Find(ctx, x.SMI)
	if err != nil {
		return err
	}
	list, err := cards.Cards()
	if err == nil && len(list) == 0 {
		err = errors.New("the driver tells of no card")
	}
	if err != nil {
		cards.Close()
		return err
	}
	for i := range list {
		c.note("%s: %s of %s used\n", list[i].Name, size(list[i].Used), size(list[i].Total))
	}
	if x.Output != "" {
		return x.write(ctx, c, cards)
	}
	return x.serve(ctx, c, nil, func(a *agent.Agent) (string, error) {
		run, err := a.Go("cards of this machine", "", 0, func(o launch.Options) (launch.Result, error) {
			return x.watch(ctx, cards, o)
		})
		if err != nil {
			cards.Close()
		}
		return "#run=" + run.ID, err
	})
}

// write records to a file.
func (x *watchCmd) write(ctx context.Context, c *console, cards monitor.Source) error {
	if err := replaceable(x.Output); err != nil {
		return err
	}
	f, err := record.Create(x.Output, true)
	if err != nil {
		return err
	}
	var strs event.Strings
	rec := record.New(f, &strs, false)
	res, err := x.watch(ctx, cards, launch.Options{
		Strings: &strs, Sink: rec, Stop: func() bool { rec.Poll(); return false },
	})
	if err != nil {
		res = launch.Result{Reason: event.EndFailed, Message: err.Error()}
	}
	end := event.Event{Kind: event.End, Time: rec.Time(), Step: event.NoStep, Cause: uint8(res.Reason), Text: strs.ID(res.Message)}
	rec.Emit(&end)
	if err := errors.Join(err, rec.Finish(), f.Close()); err != nil {
		return fmt.Errorf("watch the cards into %s: %w", x.Output, err)
	}
	c.say("%s: %s\n", x.Output, count(int(res.Events), "look"))
	return nil
}

// poll is how long the recording waits for what was told to be read.
const poll = 50 * time.Millisecond

// watch tells of the cards as samples until it is time, or interrupted. Events
// of its result counts the looks. It closes the source.
func (x *watchCmd) watch(ctx context.Context, cards monitor.Source, o launch.Options) (launch.Result, error) {
	defer cards.Close()
	began := time.Now()
	res := launch.Result{Reason: event.EndDone}
	known := 0
	var last int64
	look := func() error {
		list, err := cards.Cards()
		if err != nil {
			return err
		}
		last = max(last, int64(time.Since(began)))
		for i := range list {
			dev := event.DeviceID(i)
			if i >= known {
				known++
				list[i].Facts(o.Sink, o.Strings, dev, last)
			}
			list[i].Emit(o.Sink, o.Strings, dev, last)
		}
		res.Events++
		return nil
	}
	t := time.NewTicker(min(x.Every, poll))
	defer t.Stop()
	for next := began; ; {
		if now := time.Now(); !now.Before(next) {
			if err := look(); err != nil {
				return res, err
			}
			next = now.Add(x.Every)
		}
		if x.For > 0 && time.Since(began) >= x.For {
			return res, nil
		}
		if o.Stop() {
			res.Reason = event.EndStopped
			return res, nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return res, nil
		}
	}
}
