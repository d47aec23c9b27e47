package main

import (
	"context"
	"errors"
	"io"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/blame"
	"tideline/shared/ingest"
	"tideline/shared/redact"
	"tideline/shared/remedy"
)

// complete fills the readings of an opened input as explain does: who holds the
// memory, and, with reruns, what other settings would have come to. What a
// timeline keeps is as it was.
func complete(ctx context.Context, in *ingest.Input, reruns bool) {
	stop := func() bool { return ctx.Err() != nil }
	blame.Fill(in, blame.Options{Stop: stop})
	if reruns {
		remedy.Fill(in, remedy.Options{Stop: stop})
	}
}

// writeTimeline writes an input as a .tideline with what it means.
func writeTimeline(in *ingest.Input, out io.Writer, o block.Options, redacted bool) error {
	strs := new(event.Strings)
	told := strs
	var red *redact.Redactor
	if redacted {
		red, told = redact.New(), new(event.Strings)
	}
	w := timeline.NewWriter(out, timeline.Options{Strings: told, Block: o})
	sink := event.Sink(w)
	if redacted {
		sink = red.Events(strs, told, w)
	}
	err := in.Emit(strs, sink)
	if keep := in.Keep(); keep != nil && err == nil {
		if redacted {
			keep = red.Readings(keep)
		}
		err = w.WriteReadings(keep.Append(nil))
	}
	return errors.Join(err, w.Close())
}
