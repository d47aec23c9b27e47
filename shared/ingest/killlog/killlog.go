// Package killlog reads how a program ended that could say nothing itself, or
// nothing with figures: the kernel's lines when it kills for lack of host memory,
// a shell's "Killed", and vLLM's refusal to begin without room for its cache.
package killlog

import (
	"strings"

	"tideline/shared/ingest/lines"
)

// Kill is one process that the kernel killed.
type Kill struct {
	Line    int
	PID     int64  // -1 when not told
	Name    string // "" when not told
	Bytes   int64  // of its own that were in memory; -1 when not told
	Limited bool   // a control group's limit, not the machine's memory, was met
}

// Report is what a text tells of ends.
type Report struct {
	Kills []Kill
	Cut   bool // more kills were told than are kept
	Shell int  // line of a shell's "Killed"; 0 for none
	Cache int  // line of vLLM's message; 0 for none
}

const maxKills = 64

// Marks are what a line holds, one of them at least, that the parser reads. The
// case of letters does not count.
func Marks() []string { return []string{"killed", "of memory: kill", "for the cache blocks"} }

// Parser takes a text line by line.
type Parser struct{ rep Report }

// New is a parser that has seen nothing.
func New() *Parser { return &Parser{} }

// End gives what was read. Nothing may follow.
func (p *Parser) End() *Report { return &p.rep }

// Line takes the next line, without its end, and says whether it was read.
func (p *Parser) Line(num int, s string) bool {
	switch k, ok := kill(s); {
	case ok && len(p.rep.Kills) < maxKills:
		k.Line = num
		p.rep.Kills = append(p.rep.Kills, k)
	case ok:
		p.rep.Cut = true
	case strings.Contains(s, "No available memory for the cache blocks"):
		if p.rep.Cache == 0 {
			p.rep.Cache = num
		}
	case shell(s):
		if p.rep.Shell == 0 {
			p.rep.Shell = num
		}
	default:
		return false
	}
	return true
}

// kill reads "Memory cgroup out of memory: Killed process 4242 (python)
// total-vm:…kB, anon-rss:16512344kB, …", with or without the group, and the
// older "Kill process".
func kill(s string) (Kill, bool) {
	at := strings.Index(s, "ut of memory: Kill")
	if at < 0 {
		return Kill{}, false
	}
	k := Kill{PID: -1, Bytes: -1, Limited: strings.Contains(s[:at], "cgroup")}
	_, rest, ok := strings.Cut(s[at:], "process ")
	if !ok {
		return k, true
	}
	digits, rest, found := lines.Digits(rest)
	if n, fits := lines.Int(digits, found); fits {
		k.PID = n
	}
	if name, ok := lines.Between(rest, "(", ")"); ok && len(name) < 64 {
		k.Name = name
	}
	if n, ok := lines.Int(lines.NumberAfter(rest, "anon-rss:")); ok && n < 1<<40 {
		k.Bytes = n << 10
	}
	return k, true
}

// shell is "Killed" alone, or behind the script, the line and the process as
// shells print it: "run.sh: line 3:  4242 Killed   python train.py".
func shell(s string) bool {
	t := strings.TrimSpace(s)
	if t == "Killed" || t == "zsh: killed" || strings.HasPrefix(t, "zsh: killed ") {
		return true
	}
	before, _, ok := strings.Cut(t, " Killed")
	_, process, numbered := strings.Cut(before, ": line ")
	return ok && numbered && strings.Contains(process, ":")
}
