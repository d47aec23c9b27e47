package direct_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tideline/shared/alloc"
	"tideline/shared/alloc/check"
	"tideline/shared/alloc/direct"
	"tideline/shared/golden"
)

func subject(d check.Draw) check.Subject {
	o := direct.Options{}
	if d.Draw(2) == 0 {
		o.Limit = int64(1+d.Draw(1<<12)) * 4096
	}
	so := alloc.SpaceOptions{Granularity: int64(1+d.Draw(2)*15) * direct.Granule}
	if d.Draw(2) == 0 {
		so.Card = alloc.NewCard(1 + int64(d.Draw(32<<20)))
	}
	return check.Subject{
		Rules: check.Rules{Granule: direct.Granule, Limit: o.Limit, Slack: 4096}, Aligned: true,
		New: func(obs alloc.Observer) (alloc.Allocator, error) {
			sub, err := alloc.NewSpace(so)
			if err != nil {
				return nil, err
			}
			o.Observer = obs
			return direct.New(sub, o)
		},
	}
}

func TestRandomLivesObeyTheRules(t *testing.T) {
	for seed := range uint64(200) {
		d := check.Seeded(seed, 400)
		if err := check.Life(d, subject(d)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzLives(f *testing.F) {
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		b := make([]byte, 400)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			t.Skip("long inputs only repeat short ones")
		}
		d := check.Fuzzed(b)
		if err := check.Life(d, subject(d)); err != nil {
			t.Fatal(err)
		}
	})
}

// The footprint of a real log is what is live, rounded, at every instant.
func TestRealLogsHoldWhatIsLive(t *testing.T) {
	for name, column := range map[string]struct{ action, address, size int }{
		"27-rmm-2019-old-columns":      {0, 2, 4},
		"28-rmm-2020s-current-columns": {2, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(golden.Cases(t), name, "rmm.csv"))
			if err != nil {
				t.Fatal(err)
			}
			sub, err := alloc.NewSpace(alloc.SpaceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := direct.New(sub, direct.Options{})
			if err != nil {
				t.Fatal(err)
			}
			live := map[string]alloc.Block{}
			sum, rows := int64(0), 0
			for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
				f := strings.Split(line, ",")
				n, err := strconv.ParseInt(f[column.size], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				round := (n + 255) / 256 * 256
				if strings.EqualFold(f[column.action][:4], "allo") {
					b, ok := a.Allocate(alloc.Request{Bytes: n})
					if !ok {
						t.Fatal("no memory")
					}
					live[f[column.address]] = b
					sum += round
				} else {
					if err := a.Free(live[f[column.address]].Address); err != nil {
						t.Fatal(err)
					}
					sum -= round
				}
				rows++
				if s := a.Stats(); s.Pool != sum || s.InUse != sum || a.Calls() != int64(rows) {
					t.Fatalf("row %d: %+v after %d calls, live are %d", rows, s, a.Calls(), sum)
				}
			}
			if rows < 4 {
				t.Fatal("no rows")
			}
		})
	}
}

func BenchmarkRandom(b *testing.B) {
	// A driver that only counts: what is timed is the allocator.
	a, err := direct.New(counting{}, direct.Options{})
	if err != nil {
		b.Fatal(err)
	}
	check.Bench(b, a, 0, nil)
}

var nextAddress = uint64(1 << 32)

type counting struct{}

func (counting) Take(_, bytes int64) (addr uint64, received int64, ok bool) {
	addr = nextAddress
	nextAddress += uint64(bytes)
	return addr, bytes, true
}
func (counting) Give(uint64, int64) {}
func (counting) Joins() bool        { return false }
