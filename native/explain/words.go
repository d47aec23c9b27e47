package explain

import (
	"strings"

	"tideline/protocol/event"
)

// words puts a reading into sentences: why it failed, what stays open, and
// what to do. Every sentence follows from a number or a line of the input.
func (f *failure) words() (why string, open, next []string) {
	for _, a := range f.Advice() {
		next = append(next, a.Text)
	}
	return f.Why(), f.Undecided(f.recorded == nil), next
}

func bytesOf(n int64) string { return event.FormatBytes(n) }

// certain lists what holds although the verdict is open.
func (f *failure) certain() []string {
	if !f.Verdict.Undetermined() {
		return nil
	}
	out := make([]string, len(f.Certain))
	for i, s := range f.Certain {
		out[i] = strings.ToUpper(s[:1]) + s[1:] + "."
	}
	return out
}
