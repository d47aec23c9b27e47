package torchlog

import (
	"strconv"
	"strings"
)

// Stats are values of memory_stats() that a text prints, by their keys.
type Stats struct {
	Line   int
	Values []Stat
}

// Stat is one of them: a number of bytes or of things, by its key.
type Stat struct {
	Key   string
	Value int64
}

// Get finds a value.
func (s *Stats) Get(key string) (int64, bool) {
	for i := range s.Values {
		if s.Values[i].Key == key {
			return s.Values[i].Value, true
		}
	}
	return 0, false
}

const maxStats = 256

// statsLine reads every "KEY: N" of a printed dictionary of statistics. The
// last value of a key counts.
func (p *Parser) statsLine(num int, s string) bool {
	if !strings.Contains(s, ".all.") && !strings.Contains(s, "_pool.") && !strings.Contains(s, "num_ooms") && !strings.Contains(s, "num_alloc_retries") {
		return false
	}
	took := false
	for s != "" {
		i := strings.IndexAny(s, "abcdefghijklmnopqrstuvwxyz")
		if i < 0 {
			break
		}
		s = s[i:]
		j := 0
		for j < len(s) && (s[j] >= 'a' && s[j] <= 'z' || s[j] == '_' || s[j] == '.' || s[j] >= '0' && s[j] <= '9') {
			j++
		}
		key, rest := s[:j], strings.TrimLeft(s[j:], "'\" \t:,=")
		s = s[j:]
		if !isStat(key) {
			continue
		}
		k := 0
		for k < len(rest) && rest[k] >= '0' && rest[k] <= '9' {
			k++
		}
		if n, err := strconv.ParseInt(rest[:k], 10, 64); err == nil {
			p.stat(num, key, n)
			took = true
		}
	}
	return took
}

func isStat(key string) bool {
	switch key {
	case "num_ooms", "num_alloc_retries", "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size":
		return true
	}
	if strings.Count(key, ".") != 2 && !strings.HasPrefix(key, "oversize_") {
		return false
	}
	for _, end := range []string{".current", ".peak", ".allocated", ".freed"} {
		if strings.HasSuffix(key, end) {
			return true
		}
	}
	return false
}

func (p *Parser) stat(num int, key string, n int64) {
	if p.report.Stats == nil {
		p.report.Stats = &Stats{Line: num}
	}
	st := p.report.Stats
	for i := range st.Values {
		if st.Values[i].Key == key {
			st.Values[i].Value = n
			return
		}
	}
	if len(st.Values) < maxStats {
		st.Values = append(st.Values, Stat{key, n})
	}
}
