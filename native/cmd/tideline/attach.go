package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"tideline/native/agent"
	"tideline/native/agent/record"
	"tideline/native/attach"
	"tideline/native/explain"
	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/shared/ingest"
)

type attachCmd struct {
	Target  string        `arg:"" placeholder:"tf://HOST:PORT" help:"Profiler server of a running TensorFlow or JAX program: tf://HOST:PORT."`
	Output  string        `short:"o" placeholder:"FILE" help:"Write the profile instead of serving the page; a .tideline by that ending."`
	Explain bool          `help:"Print what the profile means instead of serving the page, as tideline explain does; with --json as JSON."`
	For     time.Duration `default:"2s" placeholder:"DURATION" help:"How long to record."`
	Monitor bool          `help:"Print what the server tells of its devices over that time, and take no profile (programs on TPUs)."`

	HostLevel   uint          `default:"2" help:"What is recorded of the host: 1 what the program marks, 2 also the allocators and expensive ops, 3 all ops."`
	DeviceLevel uint          `default:"1" help:"What is recorded of devices: 0 nothing, 1 kernels and copies."`
	Python      bool          `help:"Record calls of Python functions, too; slows the program."`
	Folder      string        `placeholder:"DIR" help:"Where servers that do not send profiles write them, as they see it; a temporary one by default."`
	Grace       time.Duration `default:"2m" help:"How long the server may take to put the profile together."`
	Limit       string        `default:"1GiB" placeholder:"SIZE" help:"Largest profile to take."`
	pageFlags
}

// Run takes a profile.
func (x *attachCmd) Run(ctx context.Context, c *console) error {
	t, err := x.check()
	if err != nil {
		return err
	}
	limit, err := event.ParseBytes(x.Limit)
	if err != nil || limit <= 0 {
		return usage("--limit %q is no size: write it like 512MiB", x.Limit)
	}
	if x.Monitor {
		return x.monitor(ctx, c, t)
	}
	c.note("%s: recording for %v; Ctrl-C ends that early\n", t, x.For)
	o := attach.Options{Duration: x.For, Grace: x.Grace, Limit: limit, Folder: x.Folder, Levels: attach.Levels{Host: x.HostLevel, Device: x.DeviceLevel}}
	if x.Python {
		o.Levels.Python = 1
	}
	got, err := attach.Profile(ctx, t, o)
	if err != nil {
		return fmt.Errorf("attach to %w", err)
	}
	c.note("%s: a profile of %s in %s\n", t, size(int64(len(got.Data))), span(int64(got.Took)))
	return x.show(ctx, c, got)
}

// check finds mistakes before anybody is asked.
func (x *attachCmd) check() (attach.Target, error) {
	t, err := attach.ParseTarget(x.Target)
	switch {
	case err != nil:
		return t, usage("%w", err)
	case x.For < time.Millisecond:
		return t, usage("--for %v is too short: take at least 1ms", x.For)
	case x.For > attach.MaxDuration:
		return t, usage("--for %v is too long: the program keeps what is recorded in its memory; take at most %v", x.For, attach.MaxDuration)
	case x.Grace <= 0:
		return t, usage("--grace %v leaves the server no time", x.Grace)
	case x.HostLevel > 3 || x.DeviceLevel > 3:
		return t, usage("--host-level %d --device-level %d: levels are 0 to 3", x.HostLevel, x.DeviceLevel)
	case x.HostLevel == 0 && x.DeviceLevel == 0:
		return t, usage("--host-level 0 and --device-level 0 record nothing")
	case x.Output != "":
		return t, profileReplaceable(x.Output)
	}
	return t, nil
}

// profileReplaceable keeps a slip of the finger from overwriting something that
// is neither a profile nor a timeline.
func profileReplaceable(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return nil // not there, or creating it will say what is wrong
	}
	defer func() { _ = f.Close() }() // it was only read
	head, _ := io.ReadAll(io.LimitReader(f, ingest.HeadBytes))
	switch ingest.Recognise(head) {
	case ingest.Empty, ingest.XSpace, ingest.Timeline, ingest.GZip:
		return nil
	default:
	}
	return usage("%s exists and is no profile: choose another name with -o", name)
}

func (x *attachCmd) monitor(ctx context.Context, c *console, t attach.Target) error {
	text, err := attach.Monitor(ctx, t, x.For, 2)
	if err != nil {
		return fmt.Errorf("attach to %w", err)
	}
	if x.JSON {
		return printJSON(c, map[string]string{"target": t.String(), "monitor": text})
	}
	c.say("%s\n", strings.TrimRight(text, "\n"))
	return nil
}

// show writes, explains or serves a profile.
func (x *attachCmd) show(ctx context.Context, c *console, got *attach.Capture) error {
	if x.Output != "" {
		if err := x.write(ctx, c, got); err != nil {
			return err
		}
	}
	if x.Explain {
		// Ctrl-C may have ended the recording; explaining it is quick.
		return explain.Explain(got.Name, bytes.NewReader(got.Data), c.out, explain.Options{JSON: x.JSON, Width: width(c)}) //nolint:wrapcheck // it names the file
	}
	if x.Output != "" {
		return nil
	}
	d, err := read(got)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		c.note("tideline: stopped, so no page is served; -o FILE or --explain keep what was recorded\n")
		return errSaid
	}
	for _, open := range d.Reading.Open {
		c.note("%s\n", open)
	}
	src, err := recordingOf(d)
	if err != nil {
		return fmt.Errorf("open %s: %w", got.Name, err)
	}
	return x.serve(ctx, c, nil, func(a *agent.Agent) (string, error) {
		a.ServeMade(got.Name, src, agent.Original{Kind: d.Reading.Kind, Open: func() (io.ReadSeekCloser, error) {
			return inHand{bytes.NewReader(got.Data)}, nil
		}})
		return "", nil
	})
}

// read reads what was taken, and says by the way whether it is anything.
func read(got *attach.Capture) (*ingest.Data, error) {
	d, err := ingest.ReadData(got.Name, bytes.NewReader(got.Data), ingest.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read what the server sent (-o FILE keeps it): %w", err)
	}
	return d, nil
}

// inHand is a file that is in memory.
type inHand struct{ *bytes.Reader }

// Close implements io.Closer.
func (inHand) Close() error { return nil }

// recordingOf tells a profile as a recording, which streams like a run.
func recordingOf(d *ingest.Data) (record.Source, error) {
	strs := new(event.Strings)
	rec := record.New(new(record.Memory), strs, false)
	d.Emit(strs, rec)
	return rec, rec.Finish()
}

// write keeps a profile as it came, or as a timeline.
func (x *attachCmd) write(ctx context.Context, c *console, got *attach.Capture) error {
	out := got.Data
	if strings.HasSuffix(x.Output, ".tideline") {
		in, err := ingest.Open(got.Name, bytes.NewReader(got.Data), ingest.Limits{})
		if err != nil {
			return fmt.Errorf("read what the server sent (-o FILE keeps it): %w", err)
		}
		complete(ctx, in, true)
		var b bytes.Buffer
		if err := writeTimeline(in, &b, block.Options{Deflate: true}, false); err != nil {
			return fmt.Errorf("write %s: %w", x.Output, err)
		}
		out = b.Bytes()
	}
	if err := os.WriteFile(x.Output, out, 0o666); err != nil { //nolint:gosec // as every file a user makes; the umask narrows it
		return fmt.Errorf("write %s: %w", x.Output, without(err))
	}
	switch {
	case x.Explain:
		c.note("%s: %s\n", x.Output, size(int64(len(out))))
	case x.JSON:
		return printJSON(c, map[string]any{"file": x.Output, "bytes": len(out), "profile": got.Name})
	default:
		c.say("%s: %s; tideline explain %s says what it means\n", x.Output, size(int64(len(out))), x.Output)
	}
	return nil
}
