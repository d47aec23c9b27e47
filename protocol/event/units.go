package event

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// FormatBytes writes n in IEC units with two decimals, as people read memory:
// 1536 is "1.50 KiB". Whole bytes below 1 KiB keep no decimals.
func FormatBytes(n int64) string {
	if n > -1024 && n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, i := float64(n), -1
	for i < len(units)-1 && (f >= 1024 || f <= -1024) {
		f /= 1024
		i++
	}
	return strconv.FormatFloat(f, 'f', 2, 64) + " " + units[i]
}

var units = []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// ParseBytes reads "4GiB", "4 GiB", "512 MB", "1.5GiB" or plain bytes. IEC
// units are powers of 1024; kB, MB, GB and TB are powers of 1000.
func ParseBytes(s string) (int64, error) {
	t := strings.TrimSpace(s)
	end := strings.LastIndexAny(t, "0123456789.") + 1
	num, unit := t[:end], strings.TrimSpace(t[end:])
	scale, ok := unitScale(unit)
	if num == "" || !ok {
		return 0, fmt.Errorf("%q is not a size: write a number of bytes, or one with a unit such as 512MiB or 4GiB", s)
	}
	if n, err := strconv.ParseInt(num, 10, 64); err == nil {
		if n > math.MaxInt64/scale || n < math.MinInt64/scale {
			return 0, fmt.Errorf("%q is more bytes than 63 bits hold", s)
		}
		return n * scale, nil
	} else if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is more bytes than 63 bits hold", s)
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f*float64(scale)) >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size: write a number of bytes, or one with a unit such as 512MiB or 4GiB", s)
	}
	return int64(f * float64(scale)), nil
}

func unitScale(u string) (int64, bool) {
	switch u {
	case "", "B":
		return 1, true
	case "kB", "KB":
		return 1e3, true
	case "MB":
		return 1e6, true
	case "GB":
		return 1e9, true
	case "TB":
		return 1e12, true
	}
	for i, name := range units {
		if u == name {
			return 1 << (10 * (i + 1)), true
		}
	}
	return 0, false
}
