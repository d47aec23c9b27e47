package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"tideline/native/sharing"
	"tideline/protocol/block"
	wire "tideline/protocol/share"
	"tideline/shared/ingest"
	"tideline/web/share"
)

type shareCmd struct {
	File      string        `arg:"" optional:"" help:"Timeline, or anything else that explain reads, to share as it is."`
	To        string        `placeholder:"URL" help:"Address of the share service, such as https://HOST or that of an agent."`
	Expires   time.Duration `placeholder:"TIME" help:"How long the link lives, such as 24h; the service's default otherwise."`
	UploadKey string        `env:"TIDELINE_UPLOAD_KEY" placeholder:"KEY" help:"Key of services that ask for one; for an agent, its token."`
	Redact    bool          `help:"Share it without names, paths, hosts, stacks and free text, as a timeline with what it means."`
	List      bool          `help:"List what was shared from this machine."`
	Delete    string        `placeholder:"LINK" help:"Delete a share that was made on this machine."`
	JSON      bool          `name:"json" help:"Print JSON."`
}

// Run shares a file, or lists or deletes what was shared.
func (s *shareCmd) Run(ctx context.Context, c *console) error {
	asked := 0
	for _, yes := range []bool{s.File != "", s.List, s.Delete != ""} {
		if yes {
			asked++
		}
	}
	if asked != 1 {
		return usage("give a file to share, or --list, or --delete LINK")
	}
	if s.Redact && s.File == "" {
		return usage("--redact is for a file that is shared")
	}
	client, err := sharingClient()
	if err != nil {
		return err
	}
	switch {
	case s.List:
		return s.list(c, client)
	case s.Delete != "":
		return s.remove(ctx, c, client)
	}
	return s.share(ctx, c, client)
}

func sharingClient() (*sharing.Client, error) {
	folder, err := sharing.DefaultFolder()
	return &sharing.Client{Folder: folder}, err
}

func (s *shareCmd) share(ctx context.Context, c *console, client *sharing.Client) error {
	switch {
	case s.To == "":
		return usage("say where to with --to URL: the address of a share service, or of an agent")
	case s.Expires < 0 || s.Expires > 0 && s.Expires < time.Second:
		return usage("--expires %v: take a second at least", s.Expires)
	}
	// What the page cannot open is hardly what somebody means to share.
	in, err := openTimeline("share", s.File)
	if err != nil {
		return err
	}
	_ = in.file.Close() // it was only read
	to, token := withoutToken(s.To)
	if client.UploadKey = s.UploadKey; client.UploadKey == "" {
		client.UploadKey = token
	}
	bar := newByteProgress(c, "sharing", s.JSON)
	client.Progress = bar.at
	r, err := client.ShareForm(ctx, s.File, to, s.form(ctx, c), s.Expires)
	bar.finish()
	if long, ok := errors.AsType[*sharing.ExpiryError](err); ok {
		return usage("--expires: %w", long)
	}
	if r == nil {
		return notGoingOn(err)
	}
	if s.JSON {
		return errors.Join(printJSON(c, shown(r)), err)
	}
	c.say("%s\n", r.Link)
	if s.Redact {
		c.note("Names, paths, hosts, stacks and free text were left out; sizes and times can tell a model to those who know it.\n")
	}
	c.note("%s, encrypted here, until %s. Whoever has the link can open it; delete it with tideline share --delete LINK.\n", size(r.Bytes), when(r.Expires))
	return err
}

// form is the form in which the file is shared: as it is, or redacted.
func (s *shareCmd) form(ctx context.Context, c *console) *sharing.Form {
	if !s.Redact {
		return nil
	}
	return &sharing.Form{Name: "redacted", Write: func(w io.Writer) error {
		f, err := os.Open(s.File)
		if err != nil {
			return fmt.Errorf("open %s: %w", s.File, without(err))
		}
		defer func() { _ = f.Close() }() // it was only read
		in, err := ingest.Open(s.File, f, ingest.Limits{})
		if err != nil {
			return err //nolint:wrapcheck // it names the file
		}
		complete(ctx, in, true)
		if err := ctx.Err(); err != nil {
			return err //nolint:wrapcheck // nothing is shared then
		}
		err = writeTimeline(in, w, block.Options{Deflate: true}, true)
		if in.Cut != "" {
			c.note("%s: %s; everything else was read\n", s.File, in.Cut)
		}
		return err
	}}
}

// notGoingOn adds what to do about a connection that stayed away.
func notGoingOn(err error) error {
	if _, answered := errors.AsType[*wire.Problem](err); answered {
		return err
	}
	if _, nobody := errors.AsType[*sharing.UnreachableError](err); nobody {
		return err
	}
	return fmt.Errorf("%w\nThe same command goes on where this one stopped", err)
}

// withoutToken lets the address that tideline serve prints be given as it is.
func withoutToken(address string) (to, token string) {
	u, err := url.Parse(address)
	if err != nil || !u.Query().Has("token") {
		return address, ""
	}
	token = u.Query().Get("token")
	u.RawQuery, u.Fragment = "", ""
	return u.String(), token
}

// receipt is what is printed of a share: everything but the owner's token.
type receipt struct {
	Link    string    `json:"link"`
	Expires time.Time `json:"expires"`
	File    string    `json:"file"`
	Form    string    `json:"form,omitempty"`
	Bytes   int64     `json:"bytes"`
}

func shown(r *sharing.Receipt) receipt { return receipt{r.Link, r.Expires, r.File, r.Form, r.Bytes} }

func when(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

func (s *shareCmd) list(c *console, client *sharing.Client) error {
	all, err := client.Receipts()
	if err != nil {
		return err
	}
	list := make([]receipt, len(all))
	for i, r := range all {
		list[i] = shown(r)
	}
	if s.JSON {
		return printJSON(c, list)
	}
	if len(list) == 0 {
		c.say("Nothing was shared from this machine.\n")
		return nil
	}
	var t table
	t.row("file", "size", "until", "link")
	for _, r := range list {
		until := when(r.Expires)
		if time.Now().After(r.Expires) {
			until = "over"
		}
		name := filepath.Base(r.File)
		if r.Form != "" {
			name += ", " + r.Form
		}
		t.row(name, size(r.Bytes), until, r.Link)
	}
	t.print(c)
	return nil
}

func (s *shareCmd) remove(ctx context.Context, c *console, client *sharing.Client) error {
	if err := client.Delete(ctx, s.Delete); err != nil {
		return err
	}
	c.note("Deleted. The link says so to whoever opens it.\n")
	return nil
}

type openCmd struct {
	Link   string `arg:"" help:"Link, in quotation marks: a shell takes # and & as its own."`
	Output string `short:"o" placeholder:"FILE" help:"Write the timeline there instead of serving it."`
	pageFlags
}

// Run loads and opens a share.
func (o *openCmd) Run(ctx context.Context, c *console) error {
	client, err := sharingClient()
	if err != nil {
		return err
	}
	out := o.Output
	if out == "" {
		dir, err := os.MkdirTemp("", "tideline-open-")
		if err != nil {
			return fmt.Errorf("make a folder for what is opened: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // the system's own cleaning takes what stays
		out = filepath.Join(dir, "shared.tideline")
	}
	bar := newByteProgress(c, "loading", o.JSON)
	client.Progress = bar.at
	got, err := client.Open(ctx, o.Link, out)
	bar.finish()
	if err != nil {
		return err
	}
	c.note("%s, shared until %s.\n", size(got.Bytes), when(got.Expires))
	if o.Output == "" {
		return o.serve(ctx, c, []string{out}, nil)
	}
	if o.JSON {
		return printJSON(c, map[string]any{"file": got.Path, "bytes": got.Bytes, "expires": got.Expires})
	}
	c.say("%s\n", got.Path)
	return nil
}

// shareRoom is what the shares of an agent may take of its disk, in bytes.
const shareRoom = 4 << 30

// shares is the share service beside an agent's page.
type shares struct {
	service *share.Service
	close   func() error
	log     func(string)
}

func openShares(folder string, log func(string)) (*shares, error) {
	disk, err := share.OpenDisk(folder, shareRoom)
	if err != nil {
		return nil, fmt.Errorf("%w (choose another with --data)", err)
	}
	s := share.New(share.Options{Store: disk, Allow: share.NewLimiter(time.Now).Allow, Log: log})
	return &shares{s, disk.Close, log}, nil
}

// sweeping takes away what has expired until it is told to stop, which waits for
// it: the store must not be closed under it.
func (s *shares) sweeping(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.sweep(ctx)
	}()
	return func() {
		cancel()
		<-over
	}
}

// sweep takes away what has expired, now and every hour.
func (s *shares) sweep(ctx context.Context) {
	const atOnce = 100
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		n, err := s.service.Sweep(ctx, atOnce)
		switch {
		case err == nil && n == atOnce:
			continue
		case err != nil && ctx.Err() == nil:
			s.log(fmt.Sprintf("take expired shares away: %v", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-hourly.C:
		}
	}
}
