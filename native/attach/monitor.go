package attach

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tideline/native/attach/answer"
)

// Monitor asks the server for a look at its devices over a time: utilisation,
// and with level 2 also step times and device types. It comes as text. Servers
// of programs on TPUs answer; those of CPU and GPU programs do not have it, and
// the error is one of kind NotProfiler then.
func Monitor(ctx context.Context, t Target, over time.Duration, level int) (string, error) {
	o := Options{Duration: over, Limit: 16 << 20}
	o.defaults()
	conn, err := dial(t, &o)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // every answer has been given
	in, cancel := context.WithTimeout(ctx, o.Duration+o.Grace)
	defer cancel()
	var a answer.Monitor
	err = conn.Invoke(in, monitorName, &monitorRequest{uint64(o.Duration.Milliseconds()), uint64(max(level, 1))}, &a)
	if status.Code(err) == codes.Unimplemented {
		return "", &Error{Target: t, Kind: NotProfiler, err: err, Text: "the server tells nothing of its devices: those of programs on TPUs do, those of CPU and GPU programs do not; take a profile instead"}
	}
	if err != nil {
		return "", explain(t, &o, folder{}, err)
	}
	return a.Text, nil
}
