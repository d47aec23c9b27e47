package bfc

import (
	"math"
	"strconv"
)

// AppendHumanBytes appends n as upstream's HumanReadableNumBytes writes it:
// whole bytes below 1 KiB, one decimal for KiB, two above. The unit is found
// by integer division, so that 1073741568 is 1024.00MiB.
func AppendHumanBytes(b []byte, n int64) []byte {
	if n == math.MinInt64 {
		return append(b, "-8.00EiB"...)
	}
	if n < 0 {
		b = append(b, '-')
		n = -n
	}
	if n < 1024 {
		return append(strconv.AppendInt(b, n, 10), 'B')
	}
	const units = "KMGTPE"
	u := 0
	for ; n >= 1<<20; n /= 1024 {
		u++
	}
	decimals := 2
	if u == 0 {
		decimals = 1
	}
	b = strconv.AppendFloat(b, float64(n)/1024, 'f', decimals, 64)
	return append(b, units[u], 'i', 'B')
}

// HumanBytes is AppendHumanBytes as a string.
func HumanBytes(n int64) string { return string(AppendHumanBytes(nil, n)) }
