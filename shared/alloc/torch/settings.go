package torch

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Backend says which allocator serves CUDA memory.
type Backend uint8

// The backends.
const (
	Native Backend = iota
	MallocAsync
)

// String is the backend's word in a settings string.
func (b Backend) String() string {
	if b == MallocAsync {
		return "cudaMallocAsync"
	}
	return "native"
}

// Settings are what PYTORCH_ALLOC_CONF sets. The zero value is the default of
// every one of them.
type Settings struct {
	MaxSplit            int64                // max_split_size_mb in bytes; 0 means no limit
	MaxNonSplitRounding int64                // max_non_split_rounding_mb in bytes; 0 means the large segment's
	GarbageCollection   float64              // garbage_collection_threshold, in (0, 1); 0 is off
	Divisions           [divisionSlots]int64 // roundup_power2_divisions from 1 MiB to 32 GiB
	Expandable          bool                 // expandable_segments
	LargeSegment        int64                // large_segment_size_mb in bytes; 0 means 20 MiB
	Fraction            float64              // per_process_memory_fraction, in (0, 1], read by New; 0 and 1 mean no limit
	Backend             Backend              // backend
	Preempt             bool                 // throw_on_cudamalloc_oom
	Reserve             Reserve              // expandable_segments_reserve

	// These are read and kept; they change no address.

	ReleaseLock        bool  // release_lock_on_cudamalloc
	HostRegister       bool  // pinned_use_cuda_host_register
	RegisterThreads    int64 // pinned_num_register_threads; 0 means 1
	BackgroundThreads  bool  // pinned_use_background_threads
	PinnedReserve      int64 // pinned_reserve_segment_size_mb in bytes
	GraphCaptureReuses bool  // graph_capture_record_stream_reuse
	PinnedCatchAll     bool  // pinned_free_catch_all
	PinnedMaxRound     Most  // pinned_max_round_threshold_mb
	PinnedMaxCached    Most  // pinned_max_cached_size_mb
	// ReserveByClass is the list of expandable_segments_reserve_by_class, without
	// blanks. A program tags its streams with classes, which no record tells.
	ReserveByClass string
}

// Most is a limit that may be 0, which is not the same as none.
type Most struct {
	Bytes int64
	Set   bool
}

const (
	unlimited          = math.MaxInt64
	mib                = 1 << 20
	maxRegisterThreads = 128
	maxMegabytes       = math.MaxInt64 / mib
)

// SettingError is a part of a settings string that says nothing useful.
type SettingError struct {
	Option string // as written; empty when the text has no option there
	Value  string // as written
	Want   string // what was expected
}

// Error names the option, the value and what was expected.
func (e *SettingError) Error() string {
	if e.Option == "" {
		return fmt.Sprintf("allocator settings: found %q, expected %s", e.Value, e.Want)
	}
	return fmt.Sprintf("allocator settings: %s has the value %q, expected %s", e.Option, e.Value, e.Want)
}

// SettingsVariables are the environment variables that hold a settings string,
// the one that wins first.
func SettingsVariables() []string { return []string{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"} }

// options lists every option with its parser, in the order of the help text.
var options = []struct {
	name string
	set  func(s *Settings, p *parser) error
}{
	{"max_split_size_mb", func(s *Settings, p *parser) error {
		return p.megabytes(&s.MaxSplit, 1, "an integer, at least large_segment_size_mb (20)")
	}},
	{"max_non_split_rounding_mb", func(s *Settings, p *parser) error {
		return p.megabytes(&s.MaxNonSplitRounding, 1, "an integer, at least large_segment_size_mb (20)")
	}},
	{"garbage_collection_threshold", parseThreshold},
	{"roundup_power2_divisions", parseDivisions},
	{"expandable_segments", func(s *Settings, p *parser) error { return p.truth(&s.Expandable) }},
	{"large_segment_size_mb", func(s *Settings, p *parser) error {
		return p.megabytes(&s.LargeSegment, OwnSegment/mib+1, "an integer above 10, at most max_split_size_mb")
	}},
	{"per_process_memory_fraction", parseFraction},
	{"backend", parseBackend},
	{"release_lock_on_cudamalloc", func(s *Settings, p *parser) error { return p.truth(&s.ReleaseLock) }},
	{"pinned_use_cuda_host_register", func(s *Settings, p *parser) error { return p.truth(&s.HostRegister) }},
	{"pinned_num_register_threads", parseThreads},
	{"pinned_use_background_threads", func(s *Settings, p *parser) error { return p.truth(&s.BackgroundThreads) }},
	{"pinned_reserve_segment_size_mb", func(s *Settings, p *parser) error {
		return p.megabytes(&s.PinnedReserve, 1, "an integer of at least 1")
	}},
	{"graph_capture_record_stream_reuse", func(s *Settings, p *parser) error { return p.truth(&s.GraphCaptureReuses) }},
	{"throw_on_cudamalloc_oom", func(s *Settings, p *parser) error { return p.truth(&s.Preempt) }},
	{"expandable_segments_reserve", func(s *Settings, p *parser) error { return p.reserve(&s.Reserve) }},
	{"expandable_segments_reserve_by_class", parseReserves},
	{"pinned_free_catch_all", func(s *Settings, p *parser) error { return p.truth(&s.PinnedCatchAll) }},
	{"pinned_max_round_threshold_mb", func(s *Settings, p *parser) error { return p.most(&s.PinnedMaxRound) }},
	{"pinned_max_cached_size_mb", func(s *Settings, p *parser) error { return p.most(&s.PinnedMaxCached) }},
}

// OptionNames are the options that ParseSettings knows.
func OptionNames() []string {
	names := make([]string, len(options))
	for i := range options {
		names[i] = options[i].name
	}
	return names
}

// ParseSettings reads a settings string: options separated by commas, each
// key:value, blanks ignored. The text may be empty. Where an option is given
// twice the later one holds.
func ParseSettings(text string) (Settings, error) {
	var s Settings
	p := &parser{tokens: tokens(text)}
	for p.more() {
		if err := p.option(&s); err != nil {
			return Settings{}, err
		}
	}
	if err := s.Validate(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

// Validate finds what contradicts itself or the allocator's rules.
func (s *Settings) Validate() error {
	switch {
	case s.MaxSplit != 0 && s.MaxSplit < s.largeSegment():
		return &SettingError{
			"max_split_size_mb", strconv.FormatInt(s.MaxSplit/mib, 10),
			fmt.Sprintf("at least the large segment size, %d", s.largeSegment()/mib),
		}
	case s.LargeSegment != 0 && (s.LargeSegment <= OwnSegment || s.LargeSegment%Granule != 0):
		return &SettingError{"large_segment_size_mb", strconv.FormatInt(s.LargeSegment/mib, 10), "above 10"}
	case s.MaxSplit%Granule != 0:
		return &SettingError{"max_split_size_mb", strconv.FormatInt(s.MaxSplit, 10) + " bytes", "a multiple of 512 bytes"}
	case s.MaxNonSplitRounding != 0 && s.MaxNonSplitRounding < s.largeSegment():
		return &SettingError{
			"max_non_split_rounding_mb", strconv.FormatInt(s.MaxNonSplitRounding/mib, 10),
			fmt.Sprintf("at least the large segment size, %d", s.largeSegment()/mib),
		}
	case !(s.GarbageCollection >= 0 && s.GarbageCollection < 1):
		return &SettingError{"garbage_collection_threshold", strconv.FormatFloat(s.GarbageCollection, 'g', -1, 64), "above 0 and below 1"}
	case !s.Reserve.valid():
		return &SettingError{"expandable_segments_reserve", s.Reserve.String(), wantReserve}
	case !(s.Fraction >= 0 && s.Fraction <= 1):
		return &SettingError{"per_process_memory_fraction", strconv.FormatFloat(s.Fraction, 'g', -1, 64), "above 0 and at most 1"}
	}
	for _, d := range s.Divisions {
		if d != 0 && !isDivision(d) {
			return &SettingError{"roundup_power2_divisions", strconv.FormatInt(d, 10), "0 or a power of two"}
		}
	}
	return nil
}

func isPowerOfTwo(n int64) bool { return n > 0 && n&(n-1) == 0 }

// isDivision: upstream reads a C int.
func isDivision(n int64) bool { return isPowerOfTwo(n) && n <= math.MaxInt32 }

// parser walks through the tokens of a settings string.
type parser struct {
	tokens []string
	at     int
	name   string // the option being read, for errors
}

// tokens cuts the text at its punctuation and drops the blanks.
func tokens(text string) []string {
	var out []string
	var word []byte
	flush := func() {
		if len(word) > 0 {
			out = append(out, string(word))
			word = word[:0]
		}
	}
	for i := range len(text) {
		switch c := text[i]; c {
		case ',', ':', '[', ']':
			flush()
			out = append(out, text[i:i+1])
		case ' ', '\t', '\n', '\r':
		default:
			word = append(word, c)
		}
	}
	flush()
	return out
}

func (p *parser) more() bool { return p.at < len(p.tokens) }

func (p *parser) peek() string {
	if !p.more() {
		return ""
	}
	return p.tokens[p.at]
}

func (p *parser) next() string {
	t := p.peek()
	p.at++
	return t
}

func (p *parser) wrong(value, want string) error {
	return &SettingError{Option: p.name, Value: value, Want: want}
}

func (p *parser) expect(mark string) error {
	if t := p.next(); t != mark {
		return p.wrong(t, strconv.Quote(mark))
	}
	return nil
}

// option reads one key:value and the comma behind it.
func (p *parser) option(s *Settings) error {
	key := p.next()
	p.name = ""
	for i := range options {
		// ROCm builds spell two of them with hip.
		if options[i].name == strings.Replace(key, "hip", "cuda", 1) {
			p.name = key
			if err := p.expect(":"); err != nil {
				return err
			}
			if err := options[i].set(s, p); err != nil {
				return err
			}
			break
		}
	}
	if p.name == "" {
		return p.wrong(key, "one of the options "+strings.Join(OptionNames(), ", "))
	}
	if p.more() {
		if t := p.next(); t != "," {
			return p.wrong(t, "a comma and the next option after its value")
		}
	}
	return nil
}

func (p *parser) integer(want string) (int64, error) {
	t := p.next()
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil || n < 0 {
		return 0, p.wrong(t, want)
	}
	return n, nil
}

func (p *parser) megabytes(to *int64, least int64, want string) error {
	t := p.peek()
	n, err := p.integer(want)
	if err != nil {
		return err
	}
	if n < least {
		return p.wrong(t, want)
	}
	*to = min(n, maxMegabytes) * mib
	return nil
}

func (p *parser) most(to *Most) error {
	to.Set = true
	return p.megabytes(&to.Bytes, 0, "an integer of at least 0")
}

func (p *parser) truth(to *bool) error {
	switch t := p.next(); t {
	case "True":
		*to = true
	case "False":
		*to = false
	default:
		return p.wrong(t, "True or False")
	}
	return nil
}

func parseThreshold(s *Settings, p *parser) error {
	t := p.next()
	x, err := strconv.ParseFloat(t, 64)
	if err != nil || !(x > 0 && x < 1) {
		return p.wrong(t, "a number above 0 and below 1")
	}
	s.GarbageCollection = x
	return nil
}

func parseFraction(s *Settings, p *parser) error {
	t := p.next()
	x, err := strconv.ParseFloat(t, 64)
	if err != nil || !(x > 0 && x <= 1) {
		return p.wrong(t, "a number above 0 and at most 1")
	}
	s.Fraction = x
	return nil
}

func parseBackend(s *Settings, p *parser) error {
	switch t := p.next(); t {
	case "native":
		s.Backend = Native
	case "cudaMallocAsync", "hipMallocAsync":
		s.Backend = MallocAsync
	default:
		return p.wrong(t, "native or cudaMallocAsync")
	}
	return nil
}

func parseThreads(s *Settings, p *parser) error {
	const want = "a power of two, at most 128"
	t := p.peek()
	n, err := p.integer(want)
	if err != nil {
		return err
	}
	if !isPowerOfTwo(n) || n > maxRegisterThreads {
		return p.wrong(t, want)
	}
	s.RegisterThreads = n
	return nil
}

func parseDivisions(s *Settings, p *parser) error {
	if p.peek() == "[" {
		return parseDivisionList(s, p)
	}
	const want = "a power of two, or a list such as [256:1,512:2,>:4]"
	t := p.peek()
	n, err := p.integer(want)
	if err != nil {
		return err
	}
	if !isDivision(n) {
		return p.wrong(t, want)
	}
	for i := range s.Divisions {
		s.Divisions[i] = n
	}
	return nil
}

// parseDivisionList reads [SIZE:N,…,>:N]. The first size named also sets all
// below it; > sets all above the last one named. A slot that the list does not
// reach keeps what it had.
func parseDivisionList(s *Settings, p *parser) error {
	p.next()
	last, first := 0, true
	for p.peek() != "]" {
		size := p.next()
		slot, err := p.divisionSlot(size)
		if err != nil {
			return err
		}
		if err := p.expect(":"); err != nil {
			return err
		}
		t := p.peek()
		n, err := p.integer("0 or a power of two for " + size)
		if err != nil {
			return err
		}
		if n != 0 && !isDivision(n) {
			return p.wrong(t, "0 or a power of two for "+size)
		}
		switch {
		case slot < 0:
			for i := last + 1; i < divisionSlots; i++ {
				s.Divisions[i] = n
			}
		case first:
			for i := range slot + 1 {
				s.Divisions[i] = n
			}
			first, last = false, slot
		default:
			s.Divisions[slot], last = n, slot
		}
		if t := p.peek(); t == "," {
			p.next()
		} else if t != "]" {
			return p.wrong(t, "a comma or ] after "+size+":"+strconv.FormatInt(n, 10))
		}
	}
	return p.expect("]")
}

// divisionSlot is the slot of a size in MiB, or -1 for the sign >.
func (p *parser) divisionSlot(t string) (int, error) {
	if t == ">" {
		return -1, nil
	}
	n, err := strconv.ParseInt(t, 10, 64)
	if err != nil || !isPowerOfTwo(n) {
		return 0, p.wrong(t, "a size in MiB that is a power of two, or >")
	}
	slot := 0
	for n > 1 {
		n >>= 1
		slot++
	}
	return min(slot, divisionSlots-1), nil
}
