package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"tideline/examples"
	"tideline/native/agent"
	"tideline/native/agent/record"
	"tideline/protocol/api"
	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/ingest"
	"tideline/shared/launch"
	"tideline/web/ui"
)

const defaultAddress = agent.DefaultAddress

type serveCmd struct {
	File []string `arg:"" optional:"" help:"Files to open in the page: timelines, and whatever else explain reads."`
	pageFlags
}

// pageFlags say how the page is served.
type pageFlags struct {
	Addr  string   `default:"${addr}" help:"Address to listen on; port 0 takes any free one."`
	Host  []string `placeholder:"NAME" help:"Name, beside localhost, that browsers may call this machine by."`
	Token string   `env:"TIDELINE_TOKEN" help:"Token that requests must carry; random by default."`
	Data  string   `placeholder:"DIR" help:"Folder for recordings; the user's cache folder by default."`
	Open  bool     `help:"Open the page in the default browser."`
	JSON  bool     `name:"json" help:"Print the address as JSON."`
}

// Run serves until the command is interrupted.
func (s *serveCmd) Run(ctx context.Context, c *console) error {
	return s.serve(ctx, c, s.File, nil)
}

// serve shows files in the page, and a run that begin starts and names in a
// fragment, until the command is interrupted.
func (s *pageFlags) serve(ctx context.Context, c *console, files []string, begin func(*agent.Agent) (fragment string, err error)) error {
	if s.Token != "" && len(s.Token) < 8 {
		return usage("--token has %d characters, too few to keep anybody out: take at least 8, or leave it out for a random one", len(s.Token))
	}
	o, err := s.options(c)
	if err != nil {
		return err
	}
	shares, err := openShares(filepath.Join(o.Data, "shares"), o.Log)
	if err != nil {
		return err
	}
	defer func() { _ = shares.close() }() // every answer has been given
	o.Share = shares.service
	defer shares.sweeping(ctx)()
	a, err := agent.New(o)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }() // said below when it matters
	for _, name := range files {
		src, of, err := openFile(c, name)
		if err != nil {
			return err
		}
		a.ServeMade(filepath.Base(name), src, of)
	}
	fragment := ""
	if begin != nil {
		if fragment, err = begin(a); err != nil {
			return err
		}
	}
	l, err := agent.Listen(ctx, s.Addr)
	if err != nil {
		return err
	}
	url := a.URL(l) + fragment
	if s.JSON {
		if err := printJSON(c, map[string]string{"url": url, "addr": l.Addr().String(), "token": a.Token(), "data": o.Data}); err != nil {
			return err
		}
	} else {
		c.say("Tideline is at %s\nRecordings are kept in %s\nStop it with Ctrl-C.\n", url, o.Data)
	}
	if s.Open {
		if err := openBrowser(ctx, url); err != nil {
			c.note("tideline: open the browser: %v: open the address yourself\n", err)
		}
	}
	if err := a.ServeOn(ctx, l); err != nil {
		return err
	}
	return a.Close()
}

func (s *pageFlags) options(c *console) (agent.Options, error) {
	known := launch.Known()
	o := agent.Options{
		Version: version(), Page: ui.Handler(ui.Options{Agent: true, Share: ui.ShareYes}), Guest: ui.Handler(ui.Options{Guest: true}), Token: s.Token, Data: s.Data, Hosts: s.Host,
		Models: known.Models, Presets: presets(), Compute: virtually,
		Log: func(line string) { c.note("%s\n", line) },
	}
	if o.Data == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return o, fmt.Errorf("find a folder for recordings (give one with --data): %w", err)
		}
		o.Data = filepath.Join(cache, "tideline")
	}
	var err error
	o.Demos, err = demos()
	return o, err
}

func presets() []api.Preset {
	var out []api.Preset
	for _, p := range device.Presets() {
		out = append(out, api.Preset{Name: p.Name, Title: p.Title, Total: p.Total.Value})
	}
	return out
}

// demos are the example workloads. The first line of each is a remark that
// says what it shows.
func demos() ([]api.Demo, error) {
	names, err := examples.Files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("list the examples: %w", err)
	}
	var out []api.Demo
	for _, n := range names {
		text, err := examples.Files.ReadFile(n.Name())
		if err != nil {
			return nil, fmt.Errorf("read the example %s: %w", n.Name(), err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		out = append(out, api.Demo{
			Name: strings.TrimSuffix(n.Name(), ".yaml"), Title: strings.TrimSpace(strings.TrimPrefix(first, "#")), YAML: string(text),
		})
	}
	return out, nil
}

// openFile opens a timeline, or what can be told as one, for watching. Of what
// is none, the page is given the file as well.
func openFile(c *console, name string) (record.Source, agent.Original, error) {
	in, err := openTimeline("serve", name)
	if err != nil {
		return nil, agent.Original{}, err
	}
	if in.told == nil {
		src, err := in.watch(c)
		return src, agent.Original{}, err
	}
	defer func() { _ = in.file.Close() }() // it was only read
	src, err := in.inMemory()
	if err != nil || in.told.Kind == ingest.KindTimeline {
		in.printDamage(c)
		return src, agent.Original{}, err
	}
	return src, agent.Original{Kind: in.told.Kind, Open: func() (io.ReadSeekCloser, error) {
		return os.Open(name) //nolint:wrapcheck // the agent names the file
	}}, nil
}

// watch opens a .tideline where it lies.
func (in *input) watch(c *console) (record.Source, error) {
	st, err := in.file.Stat()
	if err != nil {
		_ = in.file.Close() // it was only read
		return nil, fmt.Errorf("open %s: %w", in.name, err)
	}
	src, err := record.Open(in.file, st.Size(), in.file.Close)
	if err != nil {
		_ = in.file.Close() // as above
		return nil, fmt.Errorf("open %s: %w", in.name, err)
	}
	if src.Check() == nil {
		return src, nil
	}
	// Blocks behind a gap lean on strings that are gone. The reader mends that
	// and marks what is missing, so what is watched is its account of the file.
	defer func() { _ = in.file.Close() }() // as above
	mended, err := in.inMemory()
	for _, d := range in.stream.Damage() {
		c.note("%s: %v; everything else can be seen\n", in.name, d)
	}
	return mended, err
}

// inMemory records what is not a sound .tideline, so that it streams like one. Of
// a packed one the readings that it keeps are streamed, too.
func (in *input) inMemory() (record.Source, error) {
	if in.told != nil && in.told.Kind == ingest.KindTimeline {
		var b bytes.Buffer
		if err := writeTimeline(in.told, &b, block.Options{}, false); err != nil {
			return nil, err
		}
		return record.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), nil) //nolint:wrapcheck // it was just written
	}
	var rec *record.Recording
	err := in.replay(func(strs *event.Strings) event.Sink {
		rec = record.New(new(record.Memory), strs, false)
		return rec
	})
	if finishErr := rec.Finish(); err == nil {
		err = finishErr
	}
	return rec, err
}

// virtually computes for the page, whose runs share the agent's own machine.
func virtually(w *api.Workload, o *launch.Options) error {
	return compute(w, o, virtualOnly("the page runs on virtual cards; tideline run takes the machine's own"))
}
