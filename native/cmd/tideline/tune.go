package main

import (
	"context"
	"fmt"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/alloc/contest"
	"tideline/shared/alloc/kinds"
	"tideline/shared/alloc/tune"
	"tideline/shared/remedy"
)

// tuneCalls bounds a search: up to half a minute on one core.
const tuneCalls = 200_000_000

// tune answers --best and --smallest-limit.
func (r *replayCmd) tune(ctx context.Context, c *console) error {
	switch {
	case r.Best && r.SmallestLimit:
		return usage("--best tells the smallest limit, too: leave --smallest-limit away")
	case r.Best && r.Matrix:
		return usage("--best is of one allocator: name it with --allocator")
	case r.Best && len(r.Set) > 0:
		return usage("--best chooses the settings: leave --set away")
	case r.SmallestLimit && r.Allocator == "" && !r.Matrix:
		return usage("--smallest-limit goes with --allocator NAME or --matrix")
	}
	var q *remedy.Requests
	if r.Best && r.Allocator == "" && r.File != "" {
		var err error
		if q, err = r.requests(c); err != nil {
			return err
		}
		k, err := kinds.ByName(q.Own.Kind)
		if err != nil {
			return usage("--best is of one allocator, and %s does not say which made its requests: name it with --allocator", r.File)
		}
		r.Allocator = k.Name
	}
	entries, err := r.entries()
	if err != nil {
		return err
	}
	limit, err := r.limit()
	if err != nil {
		return err
	}
	if q == nil {
		if q, err = r.requests(c); err != nil {
			return err
		}
	}
	o := tune.Options{Limit: limit, Calls: tuneCalls, Stop: func() bool { return ctx.Err() != nil }}
	if r.Best {
		t := q.For(entries[0].Kind.Name)
		x := r.best(t, entries[0].Kind, o)
		x.Start = q.Start
		if r.JSON {
			return printJSON(c, x)
		}
		x.print(c)
		return nil
	}
	x := limitsSummary(q, entries, o)
	if r.JSON {
		return printJSON(c, x)
	}
	x.print(c)
	return nil
}

// searched adds to a start what it means for a smallest limit.
func searched(start string) string {
	if strings.Contains(start, "given back") {
		start += " A limit must hold that state, the idle parts too, while it is built up; --start fresh asks what the requests alone need."
	}
	return start
}

func isVersion(text string) bool {
	_, _, ok := kinds.ParseVersion(text)
	return ok
}

// olderTorch is the release for which a second answer is given where the best
// setting has an option that it lacks.
const olderTorch = "2.8"

// best searches, and once more among what an older release has where the best
// setting is none of its.
func (r *replayCmd) best(t *contest.Trace, k *kinds.Kind, o tune.Options) *bestReport {
	o.Release = r.TorchVersion
	a := tune.Best(t, k, o)
	x := bestSummary(t, k, a)
	x.Release = o.Release
	for _, s := range a.Best.Settings {
		if since := k.Since(s.Name); since != "" {
			x.Since = append(x.Since, sinceRow{s.Name, since})
		}
		if !k.InRelease(s.Name, olderTorch) && r.TorchVersion == "" {
			o.Release = olderTorch
		}
	}
	if o.Release != x.Release {
		older := tune.Best(t, k, o)
		x.Older = &olderRow{Release: o.Release, bestRow: rowOf(&older.Best), Written: kinds.Written(k, older.Best.Settings), Scope: older.Scope.String()}
	}
	return x
}

// limit is what --limit says; 0 where it is not given.
func (r *replayCmd) limit() (int64, error) {
	if r.Limit == "" {
		return 0, nil
	}
	n, err := event.ParseBytes(r.Limit)
	if err != nil || n <= 0 {
		return 0, usage("--limit is %q, expected a size such as 12GiB", r.Limit)
	}
	return n, nil
}

// leastJSON is a smallest limit for machines. Bytes.
type leastJSON struct {
	Limit    int64  `json:"smallest_limit,omitempty"` // none where no limit serves
	Fails    int64  `json:"fails_at,omitempty"`       // the next lower one
	Granule  int64  `json:"granule"`
	Proven   bool   `json:"proven"` // for every larger limit
	Probed   int    `json:"probed"`
	UpTo     int64  `json:"probed_up_to,omitempty"`
	Verified bool   `json:"verified"` // limit and neighbour
	Text     string `json:"text"`
}

func leastOf(l *tune.Least) leastJSON {
	x := leastJSON{Limit: l.Limit, Fails: l.Below, Granule: l.Granule, Proven: l.Proven && l.Complete(), Probed: l.Probed, Verified: l.Complete(), Text: verified(l)}
	if !l.Proven && l.Limit > 0 {
		x.UpTo = l.Ceiling
	}
	return x
}

// verified says how far a smallest limit is certain.
func verified(l *tune.Least) string {
	switch {
	case l.Limit == 0:
		return "no limit that was tried serves all requests"
	case !l.Complete():
		return "the search was cut short: a smaller limit may do"
	case l.Proven:
		return fmt.Sprintf("%d bytes serve all requests and %d do not; every larger limit serves them, which %s stood for", l.Limit, l.Below, count(l.Probed, "replay"))
	}
	return fmt.Sprintf("%d bytes serve all requests and %d do not; so did %d larger limits that were tried, up to %s", l.Limit, l.Below, l.Probed, size(l.Ceiling))
}

// bestReport is the best setting beside the default.
type bestReport struct {
	Allocator   string     `json:"allocator"`
	Requests    string     `json:"requests_of"`
	Allocations int64      `json:"allocations"`
	Floor       int64      `json:"floor"`
	Label       string     `json:"label,omitempty"`
	Start       string     `json:"start,omitempty"` // what the replay sets out from
	Terms       int64      `json:"compared_under_limit"`
	Default     bestRow    `json:"default"`
	Best        bestRow    `json:"best"`
	Written     []string   `json:"written,omitempty"` // the best, as its user writes it
	Release     string     `json:"release,omitempty"` // of which the options are
	Since       []sinceRow `json:"since,omitempty"`   // of the best's options
	Older       *olderRow  `json:"older,omitempty"`   // where the best's options are newer
	Saved       int64      `json:"saved_limit_bytes"`
	Worth       bool       `json:"saves_memory"` // else the best only spares the driver calls
	Scope       string     `json:"scope"`
	Tried       int        `json:"tried"`
	Of          int64      `json:"combinations"`
	Impossible  int        `json:"impossible"`
	Replays     int        `json:"replays"`
	Values      []triedRow `json:"values"`
	LeftOut     []leftRow  `json:"left_out"`
}

type bestRow struct {
	Settings []string `json:"settings,omitempty"` // as --set takes them
	leastJSON
	PeakReserved int64  `json:"peak_reserved"`
	OutOfMemory  int64  `json:"out_of_memory"`
	DriverCalls  int64  `json:"driver_calls"`
	Error        string `json:"error,omitempty"` // why it cannot be made under the limit
}

// sinceRow is an option and the first release with it.
type sinceRow struct {
	Option  string `json:"option"`
	Release string `json:"release"`
}

// olderRow is the best setting that an older release has.
type olderRow struct {
	Release string `json:"release"`
	bestRow
	Written []string `json:"written,omitempty"`
	Scope   string   `json:"scope"`
}

type triedRow struct {
	Option string   `json:"option"`
	Values []string `json:"values"`
	Note   string   `json:"note,omitempty"`
}

type leftRow struct {
	Option string `json:"option"`
	Why    string `json:"why"`
}

func bestSummary(t *contest.Trace, k *kinds.Kind, a *tune.Answer) *bestReport {
	x := &bestReport{
		Allocator: k.Name, Requests: t.Name, Allocations: t.Allocs, Floor: t.Floor, Label: k.Label(), Terms: a.Terms,
		Default: rowOf(&a.Default), Best: rowOf(&a.Best), Written: kinds.Written(k, a.Best.Settings),
		Scope: a.Scope.String(), Tried: a.Tried, Of: a.Combinations, Impossible: a.Impossible, Replays: a.Replays,
		Values: []triedRow{}, LeftOut: []leftRow{},
	}
	if a.Default.Least.Limit > 0 {
		x.Saved = a.Default.Least.Limit - a.Best.Least.Limit
	}
	d, b := &x.Default, &x.Best
	x.Worth = x.Saved > 0 || d.Limit == 0 && b.Limit > 0 || d.Error != b.Error || b.PeakReserved < d.PeakReserved || b.OutOfMemory < d.OutOfMemory
	for _, axis := range a.Axes {
		x.Values = append(x.Values, triedRow(axis))
	}
	for _, l := range a.LeftOut {
		x.LeftOut = append(x.LeftOut, leftRow(l))
	}
	return x
}

func rowOf(o *tune.Outcome) bestRow {
	r := bestRow{leastJSON: leastOf(&o.Least), PeakReserved: o.At.PeakReserved, OutOfMemory: o.At.OutOfMemory, DriverCalls: o.At.DriverCalls}
	for _, s := range o.Settings {
		r.Settings = append(r.Settings, s.String())
	}
	if o.At.Err != nil {
		r.Error = o.At.Err.Error()
	}
	return r
}

func (x *bestReport) print(c *console) {
	c.say("%s through %s: %s, at most %s wanted at once\n", x.Requests, x.Allocator, count(x.Allocations, "allocation"), size(x.Floor))
	printStart(c, searched(x.Start))
	improved := len(x.Best.Settings) > 0
	var tab table
	line := func(title string, show func(r *bestRow) string) {
		cells := []string{title, show(&x.Default)}
		if improved {
			cells = append(cells, show(&x.Best))
		}
		tab.row(cells...)
	}
	head := []string{"", "default"}
	if improved {
		head = append(head, "best")
	}
	tab.row(head...)
	line("smallest limit", func(r *bestRow) string {
		if r.Limit == 0 {
			return "none found"
		}
		return size(r.Limit)
	})
	under := "under " + size(x.Terms) + ": "
	at := func(show func(r *bestRow) string) func(r *bestRow) string {
		return func(r *bestRow) string {
			if r.Error != "" {
				return "not made"
			}
			return show(r)
		}
	}
	line(under+"peak reserved", at(func(r *bestRow) string { return size(r.PeakReserved) }))
	line(under+"out of memory", at(func(r *bestRow) string { return fmt.Sprint(r.OutOfMemory) }))
	line(under+"driver calls", at(func(r *bestRow) string { return fmt.Sprint(r.DriverCalls) }))
	tab.print(c)
	switch {
	case !improved:
		c.say("\nThe default is best: %s.\n", x.Scope)
	case !x.Worth:
		c.say("\n%s\n", wrap(fmt.Sprintf("Nothing is worth setting: limit and peak stay as by default. The best of what was tried, %s, calls the driver %d times instead of %d, and saves no memory: %s.",
			strings.Join(x.Written, " "), x.Best.DriverCalls, x.Default.DriverCalls, x.Scope), 78))
	default:
		c.say("\nSet:\n")
		for _, w := range x.Written {
			c.say("  %s\n", w)
		}
		for _, n := range x.Since {
			c.say("  (%s: since PyTorch %s)\n", n.Option, n.Release)
		}
		for _, s := range x.Best.Settings {
			if strings.HasPrefix(s, "garbage_collection_threshold") {
				c.say("  and torch.cuda.set_per_process_memory_fraction: without a limit below the card's\n  memory PyTorch collects nothing\n")
			}
		}
		c.say("%s\n", wrap("It needs "+saving(x.Saved)+reservesLess(x.Default.PeakReserved-x.Best.PeakReserved)+". Of the settings tried it is the best by the smallest limit, then the peak reserved, then the calls of the driver: "+x.Scope+".", 78))
	}
	if x.Worth {
		x.printOlder(c)
	}
	c.say("\nDefault: %s.\n", x.Default.Text)
	if improved {
		c.say("Best: %s.\n", x.Best.Text)
	}
	c.say("Tried: %s of %d combinations, in %s; %s cannot be had.\n", count(x.Tried, "setting"), x.Of, count(x.Replays, "replay"), count(x.Impossible, "setting"))
	for _, v := range x.Values {
		note := ""
		if v.Note != "" {
			note = " (" + v.Note + ")"
		}
		c.say("  %s: %s%s\n", v.Option, strings.Join(v.Values, ", "), note)
	}
	for _, l := range x.LeftOut {
		c.say("  %s: left out, %s\n", l.Option, l.Why)
	}
	if x.Label != "" {
		c.say("* %s\n", x.Label)
	}
}

// printOlder tells the best setting of an older release.
func (x *bestReport) printOlder(c *console) {
	if x.Older == nil {
		return
	}
	o := x.Older
	if len(o.Written) == 0 {
		c.say("\nWith PyTorch %s, which lacks a part of that, the default is best: %s.\n", o.Release, o.Scope)
		return
	}
	c.say("\nWith PyTorch %s, which lacks a part of that:\n", o.Release)
	for _, w := range o.Written {
		c.say("  %s\n", w)
	}
	c.say("%s\n", wrap(fmt.Sprintf("Its smallest limit is %s (default %s), its peak reserved %s: %s. Another version: --torch-version.",
		size(o.Limit), size(x.Default.Limit), size(o.PeakReserved), o.Scope), 78))
}

// reservesLess says what the best saves beside its limit.
func reservesLess(bytes int64) string {
	if bytes <= 0 {
		return ""
	}
	return ", and reserves " + size(bytes) + " less where it is not pressed"
}

func saving(bytes int64) string {
	if bytes <= 0 {
		return "no smaller limit"
	}
	return size(bytes) + " less"
}

// limitsReport is the smallest limit of one allocator or of all.
type limitsReport struct {
	Allocator   string     `json:"allocator"`
	Allocations int64      `json:"allocations"`
	Floor       int64      `json:"floor"`
	Limit       int64      `json:"limit,omitempty"` // as recorded or asked for
	Start       string     `json:"start,omitempty"` // what the replay sets out from
	Rows        []limitRow `json:"rows"`
}

type limitRow struct {
	Allocator string            `json:"allocator"`
	Settings  map[string]string `json:"settings,omitempty"`
	Label     string            `json:"label,omitempty"`
	leastJSON
	Above   int64 `json:"above_floor"` // what it needs beyond what is wanted at once
	Replays int   `json:"replays"`

	title string
}

func limitsSummary(q *remedy.Requests, entries []contest.Entry, o tune.Options) *limitsReport {
	x := &limitsReport{Allocator: q.Own.Name, Allocations: q.Own.Allocs, Floor: q.Own.Floor, Limit: o.Limit, Start: q.Start}
	if x.Limit == 0 {
		x.Limit = q.Own.Limit
	}
	for _, e := range entries {
		t := q.For(e.Kind.Name)
		l, replays := tune.SmallestLimit(t, e, o)
		row := limitRow{Allocator: e.Kind.Name, Label: e.Kind.Label(), leastJSON: leastOf(&l), Replays: replays, title: e.Title()}
		if l.Limit > 0 {
			row.Above = l.Limit - t.Floor
		}
		for _, s := range e.Settings {
			if row.Settings == nil {
				row.Settings = map[string]string{}
			}
			row.Settings[s.Name] = s.Value
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

func (x *limitsReport) print(c *console) {
	c.say("%s: %s, at most %s wanted at once\n", x.Allocator, count(x.Allocations, "allocation"), size(x.Floor))
	printStart(c, searched(x.Start))
	if len(x.Rows) == 1 && x.Rows[0].Limit > 0 {
		r := &x.Rows[0]
		c.say("%s serves them from a limit of %s on, %s above that.\n%s.\n", r.title, size(r.Limit), size(r.Above), sentence(r.Text))
		if r.Label != "" {
			c.say("* %s\n", r.Label)
		}
		return
	}
	var tab table
	tab.row("", "smallest limit", "above the floor", "certain")
	modelled := ""
	for i := range x.Rows {
		r := &x.Rows[i]
		title := r.title
		if r.Label != "" {
			title, modelled = title+" *", r.Label
		}
		switch {
		case r.Limit == 0:
			tab.row(title, "none found")
		case r.Proven:
			tab.row(title, size(r.Limit), size(r.Above), "for every larger limit")
		case r.Verified:
			tab.row(title, size(r.Limit), size(r.Above), fmt.Sprintf("for %d larger limits", r.Probed))
		default:
			tab.row(title, size(r.Limit), size(r.Above), "not: cut short")
		}
	}
	tab.print(c)
	c.say("The limit was replayed, and the next lower one fails.\n")
	if modelled != "" {
		c.say("* %s\n", modelled)
	}
}

// sentence begins with a capital letter.
func sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
