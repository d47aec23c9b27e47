package ingest

import (
	"bufio"
	"io"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/ingest/lines"
	"tideline/shared/ingest/memlog"
	"tideline/shared/ingest/rmmlog"
)

// historyHead is how much of a text is looked at for rows of a history: other
// output may come before them.
const historyHead = 1 << 16

// historyOf recognises a log that tells each allocation and free, by its first
// such line, and returns what tells it as events; nil for any other text.
func historyOf(in *bufio.Reader) func(io.Reader, *event.Strings, event.Sink) error {
	head, _ := in.Peek(historyHead) // an error comes again when it is read
	rmm, mem := rmmlog.New(nil), memlog.New(nil)
	text := lines.New(strings.NewReader(string(head)))
	for {
		s, err := text.Next()
		if err != nil {
			return nil
		}
		s = lines.StripQuotes(s)
		switch {
		case rmm.Line(text.Count(), s):
			return func(r io.Reader, strs *event.Strings, sink event.Sink) error {
				_, err := rmmlog.Timeline(r, strs, sink)
				return err
			}
		case mem.Line(text.Count(), s):
			return func(r io.Reader, strs *event.Strings, sink event.Sink) error {
				_, err := memlog.Timeline(r, strs, sink)
				return err
			}
		}
	}
}
