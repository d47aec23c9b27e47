// Package smilog reads what nvidia-smi prints: the default screen of every
// layout, the CSV of its queries, and the columns of dmon and pmon.
//
// Fields may say N/A, [Not Supported] or ERR! anywhere; such a figure is
// unknown, not zero. Package analysis/foreign says who holds the memory.
package smilog

import (
	"errors"
	"fmt"
	"io"

	"tideline/shared/ingest/lines"
)

// Report is everything that a text tells in nvidia-smi's words.
type Report struct {
	Screens []*Screen
	Cut     string // a limit of this reader was met
	BadLine int    // first row of a CSV that does not fit its header
	Bad     string
}

// Screen is one state of a machine: a default screen, or what the CSV tables
// of a text say together.
type Screen struct {
	Line      int
	CSV       bool
	Driver    string
	CUDA      string
	GPUs      []GPU
	HasGPUs   bool // a table of devices is there, even if empty
	Processes []Process
	HasTable  bool   // a table of processes is there, even if empty
	Refused   string // why there are no rows: "Not Supported"
	Samples   int    // rows for the first device, when the query repeats
	Time      string
	Monitor   bool // dmon or pmon
	Sized     bool // of these: a column of memory was asked for
	Open      bool // the table of processes does not come to its end
	Nameless  bool // rows that say of no device which one it is
	MIG       []Instance
}

// Instance is a part of a device that is one to programs. Sizes are MiB.
type Instance struct {
	GPU, GI, CI, Device int64
	Used, Total         int64
}

// GPU is one device. Sizes are MiB, -1 when not told.
type GPU struct {
	Index                       int64
	Name                        string
	UUID                        string
	Bus                         string
	Total, Used, Free, Reserved int64
	Util                        int64 // percent
	WDDM                        bool
	First, Peak                 int64   // of Used, over repeated rows
	Past                        []Point // of Used, in order; the newest last
	stride, seen                int
}

// Point is one of a device's repeated rows.
type Point struct {
	Row  int   // counted from 0
	Time int64 // nanoseconds since 1970, -1 when not told
	Used int64 // MiB
}

// past keeps a row; of more than maxPast every second, and so on.
func (g *GPU) past(time, used int64) {
	row := g.seen
	g.seen++
	g.stride = max(1, g.stride)
	if used < 0 || row%g.stride != 0 {
		return
	}
	if len(g.Past) >= maxPast {
		k := 0
		for i := 0; i < len(g.Past); i += 2 {
			g.Past[k] = g.Past[i]
			k++
		}
		g.Past = g.Past[:k]
		g.stride *= 2
	}
	g.Past = append(g.Past, Point{row, time, used})
}

// Process is one row. Used is MiB, -1 when not told.
type Process struct {
	GPU  int64 // index, -1 when not told
	UUID string
	PID  int64
	Type string // C, G, C+G
	Name string
	Used int64
}

// Dead says that the name stands for a process that no longer exists, or that
// cannot be seen from here.
func (p *Process) Dead() bool {
	switch p.Name {
	case "[Not Found]", "Unknown Error", "[Unknown Error]", "<defunct>", "[Insufficient Permissions]", "[No data]", "No data":
		return p.Name != "[Insufficient Permissions]"
	}
	return false
}

// ErrNothing says that the text holds no output of nvidia-smi.
var ErrNothing = errors.New("no output of nvidia-smi in it")

// Bounds of what a text may make the reader hold.
const (
	maxScreens   = 4096
	maxGPUs      = 1024
	maxProcesses = 1 << 14
	maxPast      = 1 << 13 // points of one device
)

// Read reads a text to its end.
func Read(r io.Reader) (*Report, error) {
	p := New()
	if err := lines.Each(r, func(n int, s string) { p.Line(n, s) }); err != nil {
		return p.End(), err
	}
	rep := p.End()
	if len(rep.Screens) == 0 {
		return rep, ErrNothing
	}
	return rep, nil
}

// Parser takes a text line by line.
type Parser struct {
	report *Report
	screen *Screen // the default screen being read
	table  bool    // within its process table
	ruled  bool    // below the rule under that table's heading
	row    *GPU    // whose second row is awaited
	above  string  // a device's first row, where no screen is open
	full   *full   // the long form being read
	csv    *Screen // what the CSV tables tell together
	cols   []column
	apps   bool // the open CSV table lists processes
	mon    []string
	kept   int
}

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{report: &Report{}} }

// Line takes the next line, without its end, and says whether it was read.
func (p *Parser) Line(num int, s string) bool {
	return p.screenLine(num, s) || p.fullLine(num, s) || p.monitorLine(num, s) || p.csvLine(num, s)
}

func (p *Parser) newScreen(num int) *Screen {
	s := &Screen{Line: num}
	if len(p.report.Screens) >= maxScreens {
		p.report.Cut = fmt.Sprintf("more than %d screens: those from line %d on were left out", maxScreens, num)
		return s
	}
	p.report.Screens = append(p.report.Screens, s)
	return s
}

// End closes what is open. Nothing may follow.
func (p *Parser) End() *Report {
	p.endFull()
	keep := p.report.Screens[:0]
	for _, s := range p.report.Screens {
		if s.HasGPUs || s.HasTable || len(s.MIG) > 0 {
			keep = append(keep, s)
		}
	}
	p.report.Screens = keep
	return p.report
}

func (p *Parser) addProcess(s *Screen, x Process) {
	if p.kept >= maxProcesses {
		p.report.Cut = "more processes than the reader keeps"
		return
	}
	p.kept++
	s.Processes = append(s.Processes, x)
}

// gpu finds a device by index, UUID or bus, or adds it.
func (s *Screen) gpu(index int64, uuid, bus string) *GPU {
	for i := range s.GPUs {
		g := &s.GPUs[i]
		if index >= 0 && g.Index == index || index < 0 && (uuid != "" && g.UUID == uuid || uuid == "" && bus != "" && g.Bus == bus) {
			return g
		}
	}
	if index < 0 { // in the order of the text
		index = int64(len(s.GPUs))
	}
	if len(s.GPUs) >= maxGPUs {
		return nil
	}
	s.HasGPUs = true
	s.GPUs = append(s.GPUs, GPU{Index: index, UUID: uuid, Total: -1, Used: -1, Free: -1, Reserved: -1, Util: -1, First: -1, Peak: -1})
	return &s.GPUs[len(s.GPUs)-1]
}
