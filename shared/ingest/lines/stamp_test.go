package lines

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestStampsAreTheClocks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 2000 {
		want := time.Unix(r.Int64N(6e9), r.Int64N(1000)*1e6).UTC()
		for _, form := range []string{"2006-01-02 15:04:05.000", "2006/01/02T15:04:05,000 INFO", "rank 3: 2006/01/02 15:04:05.000, 41 MiB"} {
			if got, ok := FindStamp(want.Format(form)); !ok || got != want.UnixNano() {
				t.Fatalf("%s: %d, %v, want %d", want.Format(form), got, ok, want.UnixNano())
			}
		}
	}
	for _, s := range []string{"", "2024-03-01", "2024-13-01 00:00:00", "2024-03-01 24:00:00", "12024-03-01 12:00:00", "0024-03-01 12:00:00", "9999-03-01 12:00:00", "1969-12-31 23:59:59"} {
		if n, ok := FindStamp(s); ok {
			t.Errorf("%q is %d", s, n)
		}
	}
}
