package bench

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"
	"testing"

	"tideline/shared/golden"
)

func TestEveryReaderReadsItsFile(t *testing.T) {
	list := append(made(&Options{Events: 2000}), repeated(golden.Cases(t))...)
	for i := range list {
		x := &list[i]
		if strings.Contains(x.name, "00,000 requests") && !strings.HasSuffix(x.name, "protocol 5") {
			continue // like the others, and they take long to make
		}
		run := x.task()
		if err := run.Prepare(); err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if err := run.measure(); err != nil || run.N < 20 {
			t.Errorf("%s, %d of %s: %v", x.name, run.N, x.per, err)
		}
		if note := run.note(); !strings.Contains(note, "MB/s") || !strings.Contains(note, "peak") {
			t.Errorf("%s: note %q", x.name, note)
		}
	}
}

func TestReadersWithoutRecordedFilesSayWhatIsMissing(t *testing.T) {
	lines, err := Run(context.Background(), Options{Rounds: 1, Events: 2000, Only: regexp.MustCompile("^our own timeline|texts, profiles")})
	if err != nil || len(lines) != 2 || lines[0].Per != "event" || lines[0].Nanos <= 0 || lines[1].Note != noGoldens {
		t.Errorf("%v, %+v", err, lines)
	}
}

// A reader that keeps half of what it reads has a peak of that, and one that
// holds all of it in between has the peak of that.
func TestThePeakIsOfWhatIsAlive(t *testing.T) {
	file := make([]byte, 8<<20)
	half := func(r io.Reader) (any, error) {
		kept := make([]byte, len(file)/2)
		_, err := io.ReadFull(r, kept)
		_, _ = io.Copy(io.Discard, r)
		return kept, err
	}
	between := func(r io.Reader) (any, error) {
		all := bytes.NewBuffer(make([]byte, 0, len(file)+bytes.MinRead))
		_, err := all.ReadFrom(r)
		return all.Len(), err
	}
	for name, c := range map[string]struct {
		read func(io.Reader) (any, error)
		want int64
	}{"half": {half, 4 << 20}, "all in between": {between, 8 << 20}} {
		got, err := peakOf(file, c.read)
		if err != nil || got < c.want-c.want/16 || got > c.want+c.want/16 {
			t.Errorf("%s: peak %d, want about %d; %v", name, got, c.want, err)
		}
	}
}
