// Package ledger says where all memory of a device is at an instant: with other
// processes, with this one outside its allocators, in use, idle, never taken.
//
// Every byte is in exactly one row, and the rows sum to the device: what no
// figure accounts for is a row of its own, and never spread over the others. A
// row that the input does not tell apart is not zero but unknown. The package
// counts; where the figures come from, and why a request failed, is for others.
package ledger

import (
	"tideline/protocol/event"
	"tideline/shared/analysis/cause"
)

// Row is a place that bytes of a device are in.
type Row uint8

// The rows, in the order in which they are shown.
const (
	Others      Row = iota // other processes
	Outside                // this process, outside its allocators: context, libraries, kernels
	Live                   // in use, as asked for; what was in use where that is not told
	Waste                  // in use beyond what was asked for
	Pending                // freed, waiting for a stream or an event
	Idle                   // free in the pool that the request could use
	Stranded               // free in another stream, pool or arena, out of the request's reach
	Never                  // the limit would allow it and the driver has it: never taken
	Beyond                 // the driver has it, and the limit does not allow it
	Unaccounted            // of the device, and in none of the others
	NumRows     = iota
)

var rows = [NumRows]struct{ key, words string }{
	Others:      {"other_processes_bytes", "other processes"},
	Outside:     {"outside_allocators_bytes", "this process, outside its allocators"},
	Live:        {"live_bytes", "in use, as asked for"},
	Waste:       {"internal_waste_bytes", "in use, not asked for"},
	Pending:     {"pending_bytes", "freed, waiting for a stream"},
	Idle:        {"idle_bytes", "idle in the pool"},
	Stranded:    {"stranded_bytes", "idle out of reach: another stream, pool or arena"},
	Never:       {"never_taken_bytes", "free, within the limit"},
	Beyond:      {"outside_limit_bytes", "free, outside the limit"},
	Unaccounted: {"unaccounted_bytes", "not accounted for"},
}

// Key is the row's name in the report for programs.
func (r Row) Key() string { return rows[r].key }

// String is the row in words.
func (r Row) String() string { return rows[r].words }

// Inputs are the figures of a device and of what the process has of it. Any
// may be unknown but the total.
type Inputs struct {
	Total      cause.Amount
	Others     cause.Amount // held by other processes
	Outside    cause.Amount // of this process, outside its allocators
	Reserved   cause.Amount // by its allocators
	InUse      cause.Amount // of that, without Pending
	Requested  cause.Amount // of InUse
	Pending    cause.Amount
	Stranded   cause.Amount // of what is idle
	Limit      cause.Amount // on Reserved; unknown: the device
	DriverFree cause.Amount
}

// Ledger is a device's memory by rows.
type Ledger struct {
	Total   int64
	Rounded bool // the figures are those of rounded text: Unaccounted is as coarse
	row     [NumRows]cause.Amount
}

// Row is one row; not known where the input does not tell it apart. It is then
// part of another: waste of Live, what is stranded of Idle, the rest of
// Unaccounted.
func (l *Ledger) Row(r Row) cause.Amount { return l.row[r] }

// Of makes the ledger; nil without a total, or where nothing of it is known.
func Of(in Inputs) *Ledger {
	if !in.Total.Known || in.Total.N <= 0 || !in.Reserved.Known && !in.InUse.Known {
		return nil
	}
	l := &Ledger{Total: in.Total.N}
	l.row[Others], l.row[Outside], l.row[Pending] = in.Others, in.Outside, in.Pending
	l.inUse(&in)
	l.idle(&in)
	l.free(&in)
	rest := l.Total
	for _, a := range l.row {
		rest -= a.N // 0 where unknown
	}
	l.row[Unaccounted] = cause.Of(rest)
	return l
}

func (l *Ledger) inUse(in *Inputs) {
	l.row[Live] = in.InUse
	if in.InUse.Known && in.Requested.Known {
		l.row[Live] = in.Requested
		l.row[Waste] = cause.Of(in.InUse.N - in.Requested.N)
	}
}

func (l *Ledger) idle(in *Inputs) {
	if !in.Reserved.Known || !in.InUse.Known {
		return
	}
	l.row[Idle] = cause.Of(in.Reserved.N - in.InUse.N - in.Pending.N)
	if in.Stranded.Known {
		l.row[Stranded] = in.Stranded
		l.row[Idle].N -= in.Stranded.N
	}
}

func (l *Ledger) free(in *Inputs) {
	if !in.DriverFree.Known {
		return
	}
	l.row[Never] = in.DriverFree
	if in.Limit.Known && in.Reserved.Known {
		n := min(in.DriverFree.N, max(0, in.Limit.N-in.Reserved.N))
		l.row[Never], l.row[Beyond] = cause.Of(n), cause.Of(in.DriverFree.N-n)
	}
}

// Line is a row for people.
type Line struct {
	Name  string
	Bytes int64
}

// Lines are the rows that hold anything.
func (l *Ledger) Lines() (out []Line) {
	for r := range Row(NumRows) {
		a := l.row[r]
		if !a.Known || a.N == 0 || r == Unaccounted && l.Rounded && max(a.N, -a.N) < l.Total/1000 {
			continue // of rounded figures a thousandth says nothing
		}
		name := r.String()
		if r == Idle && l.row[Stranded].N > 0 {
			name = "idle within reach of the request"
		}
		out = append(out, Line{name, a.N})
	}
	return out
}

// Title heads the lines.
func (l *Ledger) Title() string {
	return "Where the " + event.FormatBytes(l.Total) + " of the card were"
}
