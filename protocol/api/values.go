package api

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"tideline/protocol/event"
)

func itoa(n int) string { return strconv.Itoa(n) }

// quote shows a value to people; a long one is cut, so that an error about a
// hostile file stays readable.
func quote(s string) string {
	const most = 60
	if len(s) > most {
		s = s[:most] + "…"
	}
	return strconv.Quote(s)
}

func formatInt(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// parseCount reads a whole number of at least least.
func parseCount(s string, least int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if errors.Is(err, strconv.ErrRange) {
		return 0, errors.New(quote(s) + " is too large, or too small, for any number here")
	}
	if err != nil || n < least {
		return 0, errors.New(quote(s) + " is not a whole number of at least " + itoa(least))
	}
	return n, nil
}

// formatBytes writes n exactly, with the largest unit that divides it.
func formatBytes(n int64) string {
	units := [...]string{"", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for i < len(units)-1 && n != 0 && n%1024 == 0 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + units[i]
}

func formatSize(n int64) string {
	if n == 0 {
		return ""
	}
	return formatBytes(n)
}

// parseSize reads bytes with or without a unit; zero means nothing here that a
// missing field does not mean, so it is refused where least is 1.
func parseSize(s string, least int64) (int64, error) {
	n, err := event.ParseBytes(s)
	if err != nil {
		return 0, err
	}
	if n < least {
		return 0, errors.New(quote(s) + " is too small: expected at least " + event.FormatBytes(least))
	}
	return n, nil
}

func formatDuration(nanos int64) string {
	if nanos == 0 {
		return ""
	}
	return strings.ReplaceAll(time.Duration(nanos).String(), "µ", "u")
}

func parseDuration(s string) (int64, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return 0, errors.New(quote(s) + " is not a duration: write a number with a unit, such as 300us, 2ms or 1s")
	}
	if d < 0 {
		return 0, errors.New(quote(s) + " is negative: a duration is at least 0s")
	}
	return int64(d), nil
}

func formatBool(b bool) string {
	if b {
		return "true"
	}
	return ""
}

func parseBool(s string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "on", "yes":
		return true, nil
	case "false", "off", "no":
		return false, nil
	}
	return false, errors.New(quote(s) + " is neither true nor false")
}

func formatFloat(f float64) string {
	if f == 0 {
		return ""
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func parseRate(s string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return 0, errors.New(quote(s) + " is not a number above 0")
	}
	return f, nil
}

// splitList takes "32,48", "[32, 48]" and "" apart.
func splitList(s string) []string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		s = s[1 : len(s)-1]
	}
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// parseWords takes "a b", "[a, b]" and "" apart: words hold no blanks, but may
// hold a comma that no blank follows. Brackets in words are for those who say
// that they may stand there.
func parseWords(s string, brackets bool) ([]string, error) {
	s = strings.TrimSpace(s)
	listed := strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]")
	if listed {
		s = s[1 : len(s)-1]
	}
	list := strings.Fields(s)
	if len(list) > MaxListed {
		return nil, errors.New(itoa(len(list)) + " entries are more than the " + itoa(MaxListed) + " that a list may have")
	}
	if listed {
		for i := range list {
			list[i] = strings.TrimSuffix(list[i], ",")
		}
	}
	for _, w := range list {
		if w == "" {
			return nil, errors.New("an empty entry: remove the comma")
		}
		if !brackets && strings.ContainsAny(w, "[]") {
			return nil, errors.New(quote(w) + ": a bracket has no meaning here, it only encloses the list")
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}

// parseList reads a list with one reader for every entry.
func parseList[T any](s string, parse func(string) (T, error)) ([]T, error) {
	parts := splitList(s)
	if len(parts) > MaxListed {
		return nil, errors.New(itoa(len(parts)) + " entries are more than the " + itoa(MaxListed) + " that a list may have")
	}
	out := make([]T, 0, len(parts))
	for _, p := range parts {
		v, err := parse(p)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func formatList[T any](list []T, format func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = format(v)
	}
	return strings.Join(parts, ",")
}
