package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tideline/protocol/api/workfile"
	"tideline/shared/export/csv"
	"tideline/shared/ingest"
	"tideline/shared/launch"
	"tideline/shared/plan"
)

// fileSort is what a file is for.
type fileSort uint8

// The sorts.
const (
	ofNoSort fileSort = iota
	aWorkload
	aTable // of buffers
	aTrace // of an allocator's calls
	aTableOfAllocations
	aTimeline
	aReport // that explain reads
)

// elsewhere turns the error of a verb that cannot read a file into one that says
// what the file is and which verb is for it; it is the error itself where that is
// not known, or the file cannot be looked at again.
func elsewhere(verb, name string, err error) error {
	if err == nil || name == "-" {
		return err
	}
	f, openErr := os.Open(name)
	if openErr != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, readErr := io.ReadAll(io.LimitReader(f, workfile.MaxSize+1))
	if readErr != nil {
		return err
	}
	if what := sortOf(text).verb(verb, name); what != "" {
		return usageError{errors.New(name + " is " + what)}
	}
	return err
}

// sortOf tells what a file is by its beginning, which holds all of a workload.
func sortOf(text []byte) fileSort {
	if z, err := gzip.NewReader(bytes.NewReader(text)); err == nil {
		text, _ = io.ReadAll(io.LimitReader(z, ingest.HeadBytes)) // as far as it goes
	}
	head := text[:min(len(text), ingest.HeadBytes)]
	switch form := ingest.Recognise(head); {
	case bytes.HasPrefix(head, []byte("bfc-trace ")):
		return aTrace
	case ingest.IsData(head):
		return aReport
	case form == ingest.Timeline || form == ingest.TimelineText:
		return aTimeline
	case form != ingest.Log && form != ingest.JSON:
		return ofNoSort
	}
	if line, _, _ := strings.Cut(string(head), "\n"); strings.TrimRight(line, "\r") == strings.Join(csv.Header, ",") {
		return aTableOfAllocations
	}
	if w, _ := workfile.Read(text, launch.Known()); w != nil && w.Model != "" {
		return aWorkload
	}
	if _, err := plan.ReadCSV(bytes.NewReader(text)); err == nil {
		return aTable
	}
	if _, err := ingest.Open("", bytes.NewReader(text), ingest.Limits{}); err == nil {
		return aReport
	}
	return ofNoSort
}

// further is what a verb wants behind its first file.
var further = map[string]string{"convert": " OUT", "diff": " OTHER.tideline"}

// verb says what a file of this sort is and what to do with it for whoever
// called verb; "" where verb itself is for it.
func (s fileSort) verb(verb, name string) string {
	runs := verb == "run" || verb == "fit" || verb == "validate"
	switch {
	case s == ofNoSort, s == aWorkload && runs, s == aTable && verb == "plan", s >= aTimeline && !runs && verb != "plan":
		return ""
	case s == aWorkload && verb == "plan":
		return fmt.Sprintf("a workload, not a table of buffers: tideline run -o run.tideline %s, then tideline convert --csv buffers run.tideline buffers.csv, then tideline plan buffers.csv", name)
	case s == aWorkload:
		return fmt.Sprintf("a workload, not what became of one: tideline run -o run.tideline %s, then tideline %s run.tideline%s", name, verb, further[verb])
	case s == aTable:
		return "a table of buffers: tideline plan " + name
	case s == aTrace:
		return fmt.Sprintf("an allocation trace: tideline replay --matrix %s compares allocators on it, tideline replay --answers %s gives the addresses", name, name)
	case s == aTableOfAllocations && verb == "plan":
		return "a table of allocations, not of buffers: tideline convert --csv buffers FILE buffers.csv, with the file that it was made of, then tideline plan buffers.csv"
	case s == aTableOfAllocations:
		return fmt.Sprintf("a table of allocations for spreadsheets, which convert wrote: give tideline %s the file that it was made of, or convert that to .tideline, which keeps all", verb)
	case verb == "plan":
		return fmt.Sprintf("no table of buffers: tideline convert --csv buffers %s buffers.csv, then tideline plan buffers.csv", name)
	case s == aTimeline:
		return fmt.Sprintf("a timeline, not a workload: tideline serve %s shows it, tideline explain %s says what it means, tideline replay %s reruns it with changes", name, name, name)
	}
	return fmt.Sprintf("a report about memory, not a workload: tideline explain %s says what it means, tideline serve %s shows it", name, name)
}
