package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/remedy"
)

// contest replays the requests for memory alone through other allocators.
func (r *replayCmd) contest(c *console) error {
	if r.Options {
		return r.listOptions(c)
	}
	entries, err := r.entries()
	if err != nil {
		return err
	}
	o := contest.Options{}
	if o.Limit, err = r.limit(); err != nil {
		return err
	}
	q, err := r.requests(c)
	if err != nil {
		return err
	}
	rows := make([]contest.Result, len(entries))
	looks := make([]contest.Inspection, len(entries))
	for i, e := range entries {
		t := q.For(e.Kind.Name)
		if rows[i] = t.Run(e, o); len(rows) == 1 && rows[i].Err != nil {
			return rows[i].Err
		}
		looks[i] = t.Inspect(e, o, &rows[i])
	}
	if o.Limit == 0 {
		o.Limit = q.Own.Limit
	}
	if r.JSON {
		x := contestSummary(q.Own, rows, looks, o.Limit)
		x.Start = q.Start
		return printJSON(c, x)
	}
	printContest(c, q, rows, looks, o.Limit)
	return nil
}

// listOptions tells what an allocator can be set to.
func (r *replayCmd) listOptions(c *console) error {
	k, err := kinds.ByName(r.Allocator)
	if err != nil {
		return usageError{err}
	}
	c.say("%s: %s\n", k.Name, k.Doc)
	for _, o := range k.Options {
		std := "by the limit or not set"
		if o.Default != "" {
			std = o.Default
		}
		c.say("\n  %s\n%s\n      Takes %s. Default: %s.\n", o.Name, indented(o.Doc, 6), o.Want, std)
		if since := k.Since(o.Name); since != "" {
			c.say("      Since PyTorch %s.\n", since)
		}
	}
	return nil
}

func indented(text string, by int) string {
	margin := strings.Repeat(" ", by)
	return margin + strings.ReplaceAll(wrap(text, 78-by), "\n", "\n"+margin)
}

// entries are the allocators that the flags ask for.
func (r *replayCmd) entries() ([]contest.Entry, error) {
	switch {
	case r.Answers != "" || r.Output != "":
		return nil, usage("--allocator and --matrix compare figures: they go with neither --answers nor -o")
	case r.File == "":
		return nil, usage("give a timeline or an allocation trace to replay")
	case r.Matrix && (r.Allocator != "" || len(r.Set) > 0):
		return nil, usage("--matrix has its own allocators and settings: leave --allocator and --set away, or --matrix")
	case r.Matrix:
		return contest.Matrix(), nil
	}
	k, err := kinds.ByName(r.Allocator)
	if err != nil {
		return nil, usageError{err}
	}
	e := contest.Entry{Kind: k}
	for _, text := range r.Set {
		s, err := kinds.ParseSetting(text)
		if err != nil {
			return nil, usageError{err}
		}
		e.Settings = append(e.Settings, s)
	}
	if err := k.Check(e.Settings); err != nil {
		return nil, usageError{err}
	}
	return []contest.Entry{e}, nil
}

// requests are those of one allocator of the file, from where they set out.
func (r *replayCmd) requests(c *console) (*remedy.Requests, error) {
	t, err := readTrace(r.File)
	if t != nil || err != nil {
		return &remedy.Requests{Own: t, Others: t}, err
	}
	in, err := openTimeline("replay", r.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.file.Close() }() // it was only read
	var rec *contest.Recorder
	if err := in.replay(func(strs *event.Strings) event.Sink {
		rec = contest.NewRecorder(strs)
		return rec
	}); err != nil {
		return nil, err
	}
	in.printDamage(c)
	if t, err = r.choose(rec.Traces()); err != nil || in.told == nil {
		return &remedy.Requests{Own: t, Others: t}, err
	}
	q, err := remedy.RequestsOf(in.told, t, r.Start == startFresh, remedy.Options{})
	if _, cut := errors.AsType[*remedy.CutError](err); cut {
		return nil, fmt.Errorf("%s: %w. `tideline explain` tells what it does say; --start fresh replays what is listed as if nothing else had been there", r.File, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.File, err)
	}
	return q, nil
}

// startFresh is --start for an allocator that has held nothing before.
const startFresh = "fresh"

// printStart says from where the requests set out.
func printStart(c *console, start string) {
	if start != "" {
		c.say("%s\n", wrap("Start: "+start, 78))
	}
}

// choose picks the allocator that --of names, or the one of a device that held
// most.
func (r *replayCmd) choose(all []*contest.Trace) (*contest.Trace, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no requests for memory to replay", r.File)
	}
	var best *contest.Trace
	names := make([]string, 0, len(all))
	for _, t := range all {
		names = append(names, t.Name)
		if t.Name == r.Of {
			return t, nil
		}
		onDevice := t.Kind != "system"
		if best == nil || onDevice && best.Kind == "system" || onDevice == (best.Kind != "system") && t.Floor > best.Floor {
			best = t
		}
	}
	if r.Of != "" {
		return nil, usage("%s has no allocator %q. It has: %s", r.File, r.Of, strings.Join(names, ", "))
	}
	return best, nil
}

// readTrace reads an allocation trace, packed or not; nil when the file is
// something else.
func readTrace(name string) (*contest.Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", name, without(err))
	}
	defer func() { _ = f.Close() }() // it was only read
	in := bufio.NewReader(f)
	const magic = "bfc-trace "
	if head, _ := in.Peek(2); bytes.Equal(head, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("decompress %s: %w", name, err)
		}
		in = bufio.NewReader(z)
	}
	// Whoever opens it next says what is wrong with what is no trace.
	if head, _ := in.Peek(len(magic)); string(head) != magic {
		return nil, nil //nolint:nilnil // no trace is no error
	}
	t, err := contest.FromTrace(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return t, nil
}

// printContest writes the rows for people.
func printContest(c *console, q *remedy.Requests, rows []contest.Result, looks []contest.Inspection, limit int64) {
	t := q.Own
	under := "without a limit"
	if limit > 0 {
		under = "limit " + size(limit)
	}
	c.say("%s: %s, at most %s wanted at once, %s\n", t.Name, count(t.Allocs, "allocation"), size(t.Floor), under)
	printStart(c, q.Start)
	var tab table
	tab.row("", "peak in use", "peak reserved", "never used", "waste in blocks", "scattered", "pinned", "out of memory", "driver calls", "waits")
	modelled := ""
	var notMade []string
	line := func(title string, r *contest.Result, look *contest.Inspection) {
		if r.Err != nil {
			tab.row(title, "not made")
			notMade = append(notMade, title+": "+r.Err.Error())
			return
		}
		scattered, pinned := percent(r.External), ""
		if r == t.Original {
			scattered = "" // the events do not tell
		}
		if look != nil && look.Peak != nil {
			pinned = size(look.Peak.Pinned)
		}
		tab.row(title, size(r.PeakInUse), size(r.PeakReserved), percent(r.Fragmentation()), percent(r.Internal()), scattered, pinned,
			fmt.Sprint(r.OutOfMemory), fmt.Sprint(r.DriverCalls), fmt.Sprint(r.Waits+r.Syncs))
	}
	if t.Original != nil {
		line("as recorded", t.Original, nil)
	}
	for i := range rows {
		title := rows[i].Title()
		if rows[i].Label != "" {
			title, modelled = title+" *", rows[i].Label
		}
		line(title, &rows[i], &looks[i])
	}
	tab.print(c)
	for _, why := range notMade {
		c.say("%s\n", wrap("Not made: "+why, 78))
	}
	if len(rows) == 1 {
		printHolding(c, "At the peak", looks[0].Peak)
		printHolding(c, "At the first failed request", looks[0].Failure)
	}
	if modelled != "" {
		c.say("* %s\n", modelled)
	}
	for i := range rows {
		if rows[i].OutOfMemory > 0 {
			c.say("A failed request is left out and the replay goes on; the program would have ended there.\n")
			break
		}
	}
}

// printHolding says what could be used of what an allocator held.
func printHolding(c *console, when string, h *contest.Holding) {
	if h == nil {
		return
	}
	fits := count(h.Usable, "more request")
	if h.Usable == contest.MostUsable {
		fits = fmt.Sprintf("%d or more requests", h.Usable)
	}
	text := fmt.Sprintf("%s (before call %d) %s of %s would be served from what is held, without growth. %s of it never lay in a block.",
		when, h.Call, fits, size(h.For), size(h.NeverUsed))
	if h.Pinned > 0 {
		text += fmt.Sprintf(" %s lie idle in regions that blocks in use keep from going back, %s of that where they are less than a tenth of the region", size(h.Pinned), size(h.PinnedBySmall))
		if p := h.Pins; len(p) > 0 {
			text += fmt.Sprintf("; worst: the region of %s at 0x%x, for %s of %s in all", size(p[0].Size), p[0].Address, count(p[0].Blocks, "block"), size(p[0].Live))
		}
		text += "."
	}
	c.say("%s\n", wrap(text, 78))
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// contestReport is the comparison for machines. Sizes are bytes.
type contestReport struct {
	Allocator   string       `json:"allocator"`
	Allocations int64        `json:"allocations"`
	Floor       int64        `json:"floor"` // the most that was wanted at once
	Limit       int64        `json:"limit,omitempty"`
	Start       string       `json:"start,omitempty"` // what the replay sets out from
	Rows        []contestRow `json:"rows"`
}

type contestRow struct {
	Allocator     string            `json:"allocator"` // "recorded" for the original
	Settings      map[string]string `json:"settings,omitempty"`
	Label         string            `json:"label,omitempty"`
	Error         string            `json:"error,omitempty"`
	PeakInUse     int64             `json:"peak_in_use"`
	PeakReserved  int64             `json:"peak_reserved"`
	Utilisation   float64           `json:"utilisation"`
	Fragmentation float64           `json:"fragmentation"`
	Internal      float64           `json:"internal"`
	External      *float64          `json:"external,omitempty"`
	Cost          int64             `json:"cost"` // peak reserved beyond the floor
	OutOfMemory   int64             `json:"out_of_memory"`
	FirstFailed   int               `json:"first_failed_call,omitempty"`
	DriverCalls   int64             `json:"driver_calls"`
	Waits         int64             `json:"waits"`
	Syncs         int64             `json:"synchronisations"`
	AtPeak        *holdingRow       `json:"at_peak,omitempty"`
	AtFailure     *holdingRow       `json:"at_first_failure,omitempty"`
}

// holdingRow is contest.Holding for machines. Bytes.
type holdingRow struct {
	Call          int64    `json:"before_call"`
	Reserved      int64    `json:"reserved"`
	InUse         int64    `json:"in_use"`
	NeverUsed     int64    `json:"growth_waste"` // in no block up to then
	Pinned        int64    `json:"pinned"`
	PinnedBySmall int64    `json:"pinned_by_small"`
	For           int64    `json:"usable_for"` // a size
	Usable        int      `json:"usable"`     // how many requests of it
	Pins          []pinRow `json:"pins,omitempty"`
}

type pinRow struct {
	Address string `json:"address"`
	Size    int64  `json:"size"`
	Idle    int64  `json:"idle"`
	Live    int64  `json:"in_use"`
	Blocks  int    `json:"blocks"`
}

func holdingOf(h *contest.Holding) *holdingRow {
	if h == nil {
		return nil
	}
	x := &holdingRow{
		Call: h.Call, Reserved: h.Reserved, InUse: h.InUse, NeverUsed: h.NeverUsed,
		Pinned: h.Pinned, PinnedBySmall: h.PinnedBySmall, For: h.For, Usable: h.Usable,
	}
	for _, p := range h.Pins {
		x.Pins = append(x.Pins, pinRow{fmt.Sprintf("0x%x", p.Address), p.Size, p.Idle, p.Live, p.Blocks})
	}
	return x
}

func contestSummary(t *contest.Trace, rows []contest.Result, looks []contest.Inspection, limit int64) *contestReport {
	x := &contestReport{Allocator: t.Name, Allocations: t.Allocs, Floor: t.Floor, Limit: limit}
	add := func(name string, r *contest.Result, look contest.Inspection) {
		row := contestRow{
			AtPeak: holdingOf(look.Peak), AtFailure: holdingOf(look.Failure),
			Allocator: name, Label: r.Label, PeakInUse: r.PeakInUse, PeakReserved: r.PeakReserved,
			Utilisation: r.Utilisation(), Fragmentation: r.Fragmentation(), Internal: r.Internal(),
			Cost: r.Cost(t), OutOfMemory: r.OutOfMemory, FirstFailed: r.FirstFailed,
			DriverCalls: r.DriverCalls, Waits: r.Waits, Syncs: r.Syncs,
		}
		if r != t.Original {
			row.External = &r.External
		}
		if r.Err != nil {
			row.Error, row.Cost = r.Err.Error(), 0
		}
		for _, s := range r.Settings {
			if row.Settings == nil {
				row.Settings = map[string]string{}
			}
			row.Settings[s.Name] = s.Value
		}
		x.Rows = append(x.Rows, row)
	}
	if t.Original != nil {
		add("recorded", t.Original, contest.Inspection{})
	}
	for i := range rows {
		add(rows[i].Kind, &rows[i], looks[i])
	}
	return x
}
