package bfc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/bfc"
)

// A script is lines "command … [-> answer]"; see testdata/checklist/README.md.
type script struct {
	t      *testing.T
	line   string
	o      bfc.Options
	space  alloc.SpaceOptions
	base   uint64
	a      *bfc.Allocator
	c      alloc.Counter
	blocks map[string]alloc.Block

	asks, given []string
	records     []string
	waits       int
	slept       int64
	later       string // freed during the next wait
	laterAt     int64
}

func (s *script) RegionTaken(addr uint64, asked, received int64) {
	s.asks = append(s.asks, strconv.FormatInt(asked, 10))
}

func (s *script) RegionRefused(asked int64) {
	s.asks = append(s.asks, "!"+strconv.FormatInt(asked, 10))
}

func (s *script) RegionGiven(addr uint64, bytes int64) {
	s.given = append(s.given, fmt.Sprintf("%x+%d", addr-s.base, bytes))
}

func (s *script) Wait(nanos int64) int64 {
	s.waits++
	if s.later != "" && s.laterAt < nanos {
		if err := s.a.Free(s.blocks[s.later].Address); err != nil {
			s.t.Errorf("%s: %v", s.line, err)
		}
		s.later = ""
		nanos = s.laterAt
	}
	s.slept += nanos
	return nanos
}

func (s *script) Log(_ alloc.Severity, text string) {
	s.records = append(s.records, strings.Split(text, "\n")...)
}

func (s *script) Op() string { return "op" }

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/checklist/*.txt")
	if err != nil || len(files) < 15 {
		t.Fatalf("only %d scripts found, error %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			runScript(t, f, string(text))
		})
	}
}

func runScript(t *testing.T, file, text string) {
	t.Helper()
	s := &script{t: t, base: 0x7f0000000000}
	s.space = alloc.SpaceOptions{Base: s.base, Alignment: 2 << 20}
	s.o.NoRetry = true
	s.blocks = map[string]alloc.Block{}
	answers := 0
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		s.line = fmt.Sprintf("%s:%d: %s", file, n+1, line)
		command, want, answered := strings.Cut(line, "->")
		got := s.do(strings.Fields(command))
		want = strings.TrimSpace(want)
		if answered {
			answers++
		}
		if answered && got != want || !answered && got != "" {
			t.Errorf("%s: got %q", s.line, got)
		}
	}
	if answers == 0 {
		t.Errorf("%s expects nothing", file)
	}
}

func (s *script) start() {
	if s.a != nil {
		return
	}
	sub, err := alloc.NewSpace(s.space)
	if err != nil {
		s.t.Fatalf("%s: %v", s.line, err)
	}
	s.o.Observer = s
	if s.a, err = bfc.New(sub, s.o); err != nil {
		s.t.Fatalf("%s: %v", s.line, err)
	}
}

func (s *script) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		s.t.Fatalf("%s: %v", s.line, err)
	}
	return n
}

func (s *script) do(f []string) string {
	if f[0] == "set" {
		s.set(f[1:])
		return ""
	}
	if f[0] == "anew" {
		// Another allocator, on another card.
		s.a, s.asks, s.given, s.c = nil, nil, nil, alloc.Counter{}
		s.o = bfc.Options{NoRetry: true}
		s.space = alloc.SpaceOptions{Base: s.base, Alignment: 2 << 20}
		s.set(f[1:])
		return ""
	}
	if f[0] == "new" { // only whether the options are accepted
		sub, err := alloc.NewSpace(s.space)
		if err == nil {
			_, err = bfc.New(sub, s.o)
		}
		return fmt.Sprint(err)
	}
	s.start()
	if err := s.a.Check(); err != nil {
		s.t.Errorf("before %s: %v", s.line, err)
	}
	return s.act(f)
}

func (s *script) set(pairs []string) {
	for _, p := range pairs {
		key, value, _ := strings.Cut(p, "=")
		on := value == "" || value == "on"
		switch key {
		case "limit":
			s.o.Limit = s.number(value)
		case "growth":
			s.o.Growth = on
		case "gc":
			s.o.GarbageCollection = on
		case "retry":
			s.o.NoRetry = !on
		case "classic":
			s.o.Profile = bfc.Classic
		case "joins":
			s.space.Joins = on
		case "capacity":
			s.space.Card = alloc.NewCard(s.number(value))
		case "partition":
			s.o.Partition.On = true
			if value == "gen1" {
				s.o.Partition.Generation = bfc.Gen1
			}
		case "upper":
			s.o.Partition.Upper = policy(value)
		case "lower":
			s.o.Partition.Lower = policy(value)
		default:
			s.t.Fatalf("%s: no setting %q", s.line, key)
		}
	}
}

func policy(text string) (p bfc.EndPolicy) {
	if strings.Contains(text, "exact") {
		p.Split = bfc.SplitExact
	}
	if strings.Contains(text, "descending") {
		p.Order = bfc.Descending
	}
	return p
}

func (s *script) act(f []string) string {
	switch f[0] {
	case "alloc":
		return s.alloc(f[1], s.number(f[2]), f[3:])
	case "free":
		for _, name := range f[1:] {
			b, ok := s.blocks[name]
			if !ok {
				s.t.Fatalf("%s: no block %s", s.line, name)
			}
			if err := s.a.Free(b.Address); err != nil {
				return err.Error()
			}
		}
	case "freelater":
		s.later, s.laterAt = f[1], s.number(f[2])
	case "count":
		if err := s.a.SetCounter(&s.c); err != nil {
			return err.Error()
		}
	case "nocount":
		if err := s.a.SetCounter(nil); err != nil {
			return err.Error()
		}
	case "frontier":
		s.a.SetSafeFrontier(uint64(s.number(f[1])))
	case "asks":
		return drain(&s.asks)
	case "given":
		return drain(&s.given)
	case "waits":
		return fmt.Sprintf("%d %d", s.waits, s.slept)
	case "dumps":
		n := 0
		for _, r := range s.records {
			if strings.HasPrefix(r, "BFCAllocator dump for") {
				n++
			}
		}
		return strconv.Itoa(n)
	case "says":
		want := strings.Join(f[1:], " ")
		for _, r := range s.records {
			if strings.Join(strings.Fields(r), " ") == want {
				return "yes"
			}
		}
		return "no"
	case "handle":
		return s.handle(f[1])
	case "chunks":
		return s.chunks()
	case "stat":
		return s.stat(f[1])
	case "clear":
		s.a.ClearStats()
	default:
		s.t.Fatalf("%s: no command %q", s.line, f[0])
	}
	return ""
}

func drain(list *[]string) string {
	out := strings.Join(*list, " ")
	*list = nil
	return out
}

func (s *script) alloc(name string, bytes int64, rest []string) string {
	r, end := alloc.Request{Bytes: bytes}, alloc.Lower
	for _, x := range rest {
		key, value, _ := strings.Cut(x, "=")
		switch key {
		case "align":
			r.Alignment = s.number(value)
		case "by":
			r.FreedBy = func() uint64 { return uint64(s.number(value)) }
		case "upper":
			end = alloc.Upper
		case "noretry":
			r.NoRetry = true
		default:
			s.t.Fatalf("%s: no attribute %q", s.line, key)
		}
	}
	b, ok := s.a.AllocateFrom(end, r)
	s.blocks[name] = b
	if !ok {
		return "nil"
	}
	return fmt.Sprintf("%x %d #%d", b.Address-s.base, b.Size, b.ID)
}

func (s *script) handle(name string) string {
	for _, r := range s.a.Map().Regions {
		for _, c := range r.Chunks {
			if c.Address == s.blocks[name].Address {
				return strconv.FormatUint(c.Handle, 10)
			}
		}
	}
	return "none"
}

func (s *script) chunks() string {
	var out []string
	for _, r := range s.a.Map().Regions {
		for _, c := range r.Chunks {
			kind := "f"
			if c.InUse() {
				kind = "u"
			}
			if c.Tag != "lower" {
				kind += "(" + c.Tag + ")"
			}
			out = append(out, fmt.Sprintf("%x:%d:%s", c.Address-s.base, c.Size, kind))
		}
	}
	return strings.Join(out, " ")
}

func (s *script) stat(name string) string {
	st := s.a.Stats()
	n, ok := map[string]int64{
		"num": st.NumAllocs, "inuse": st.InUse, "peak": st.PeakInUse, "largest": st.LargestAlloc,
		"pool": st.Pool, "peakpool": st.PeakPool, "next": st.NextRegion, "largestfree": st.LargestFree,
		"waited": st.WaitNanos, "unreachable": s.a.Waste().Unreachable, "internal": s.a.Waste().Internal,
		"external": s.a.Waste().External,
	}[name]
	if name == "fragmentation" {
		return strconv.FormatFloat(st.Fragmentation(), 'f', 6, 64)
	}
	if !ok {
		s.t.Fatalf("%s: no figure %q", s.line, name)
	}
	return strconv.FormatInt(n, 10)
}
