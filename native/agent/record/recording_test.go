package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
)

// generate gives n made-up events to a recording, cutting blocks now and then
// as the clock would.
func generate(r *Recording, s *event.Strings, n int) int {
	k := 0
	return synthetic.Generate(synthetic.Options{Events: n, Seed: 1, Dynamic: true}, s, event.SinkFunc(func(e *event.Event) {
		r.Emit(e)
		if k++; k%1777 == 0 {
			r.due.Store(true)
		}
	}))
}

func decode(t *testing.T, b []byte, dec *block.Decoder, into []event.Event) []event.Event {
	t.Helper()
	for len(b) > 0 {
		frame, n, err := block.Next(b)
		if err != nil {
			t.Fatal(err)
		}
		if into, err = dec.Decode(frame, into); err != nil {
			t.Fatal(err)
		}
		b = b[n:]
	}
	return into
}

// readFile reads all events of a timeline in memory.
func readFile(t *testing.T, r io.Reader) ([]event.Event, *timeline.Stream) {
	t.Helper()
	s, err := timeline.NewStream(r)
	if err != nil {
		t.Fatal(err)
	}
	var all []event.Event
	for {
		all, err = s.Next(all)
		if errors.Is(err, io.EOF) {
			return all, s
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadersFollowARecordingFromAnywhere(t *testing.T) {
	var s event.Strings
	mem := new(Memory)
	r := New(mem, &s, false)
	var wg sync.WaitGroup
	got := make([][]event.Event, 4)
	for i := range got {
		wg.Go(func() {
			// Each reader joins at a block of its own.
			st := r.State()
			for len(st.Blocks) <= 2*i {
				<-st.Changed
				st = r.State()
			}
			at := 2 * i
			head, err := r.Catchup(nil, at)
			if err != nil {
				t.Error(err)
				return
			}
			dec := block.NewDecoder()
			got[i] = decode(t, head, dec, got[i])
			for {
				for ; at < len(st.Blocks); at++ {
					f, err := r.Frame(at, nil)
					if err != nil {
						t.Error(err)
						return
					}
					got[i] = decode(t, f, dec, got[i])
				}
				if st.Finished && at == len(st.Blocks) {
					return
				}
				<-st.Changed
				st = r.State()
			}
		})
	}
	n := generate(r, &s, 30_000)
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	all, stream := readFile(t, bytes.NewReader(mem.b))
	if len(all) != n || !stream.Complete() || len(stream.Damage()) > 0 {
		t.Fatalf("file has %d of %d events, complete %v, damage %v", len(all), n, stream.Complete(), stream.Damage())
	}
	for i, events := range got {
		want := all[r.State().Blocks[2*i].First:]
		if len(events) != len(want) {
			t.Fatalf("reader %d got %d events, want %d", i, len(events), len(want))
		}
		for k := range want {
			if events[k] != want[k] {
				t.Fatalf("reader %d, event %d: %+v, want %+v", i, k, events[k], want[k])
			}
		}
	}
}

func TestEveryPrefixOfAFileOpens(t *testing.T) {
	var s event.Strings
	mem := new(Memory)
	r := New(mem, &s, true)
	n := generate(r, &s, 20_000)
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	blocks := r.State().Blocks
	for i, e := range blocks {
		for _, cut := range []int64{e.Offset, e.Offset + 1, e.Offset + e.Size/2, e.Offset + e.Size - 1} {
			all, _ := readFile(t, bytes.NewReader(mem.b[:cut]))
			all = slices.DeleteFunc(all, func(e event.Event) bool { return e.Kind == event.Lost }) // what the reader says of the cut
			if uint64(len(all)) != e.First {
				t.Fatalf("cut in block %d: %d events, want %d", i, len(all), e.First)
			}
		}
	}
	if o, err := Open(bytes.NewReader(mem.b), int64(len(mem.b)), nil); err != nil || o.State().Events != uint64(n) {
		t.Errorf("open: %v", err)
	}
}

// full is a disk with room for so many bytes.
type full struct {
	Memory
	room atomic.Int64
}

var errFull = errors.New("no space left on device")

func (d *full) WriteAt(p []byte, off int64) (int, error) {
	fits := min(int64(len(p)), max(0, d.room.Load()-off))
	n, err := d.Memory.WriteAt(p[:fits], off)
	if err == nil && n < len(p) {
		err = errFull
	}
	return n, err
}

func TestAFullDiskStopsTheRecordingNotTheRun(t *testing.T) {
	for _, room := range []int64{0, 5, 30_000, 60_001} {
		for _, later := range []bool{false, true} {
			t.Run(fmt.Sprintf("room %d, freed later %v", room, later), func(t *testing.T) {
				var s event.Strings
				disk := new(full)
				disk.room.Store(room)
				r := New(disk, &s, false)
				n := 2 // the last two, below
				synthetic.Generate(synthetic.Options{Events: 30_000, Seed: 1}, &s, event.SinkFunc(func(e *event.Event) {
					if e.Kind != event.End {
						r.Emit(e)
						n++
					}
				}))
				r.due.Store(true)
				r.Poll()
				st := r.State()
				for !errors.Is(st.Failure, errFull) {
					<-st.Changed // the writer is beside the run
					st = r.State()
				}
				r.Emit(&event.Event{Kind: event.Annotation, Step: event.NoStep, Time: 1 << 50})
				r.Emit(&event.Event{Kind: event.End, Step: event.NoStep, Time: 1 << 50, Text: s.ID("how it ended")})
				if later {
					disk.room.Store(1 << 30)
				}
				err := r.Finish()
				st = r.State()
				if !errors.Is(err, errFull) || st.Lost == 0 {
					t.Fatalf("failure %v, lost %d", st.Failure, st.Lost)
				}
				// Those who watch are told.
				var seen []event.Event
				dec := block.NewDecoder()
				for i := range st.Blocks {
					f, err := r.Frame(i, nil)
					if err != nil {
						t.Fatal(err)
					}
					seen = decode(t, f, dec, seen)
				}
				end, lost, log := seen[len(seen)-1], seen[len(seen)-2], seen[len(seen)-3]
				if end.Kind != event.End || lost.Kind != event.Lost || log.Kind != event.Log {
					t.Fatalf("last words are %v, %v, %v", log.Kind, lost.Kind, end.Kind)
				}
				if !strings.Contains(dec.Strings().At(lost.Text), errFull.Error()) || !strings.Contains(dec.Strings().At(log.Text), "run goes on") || dec.Strings().At(end.Text) != "how it ended" {
					t.Errorf("texts: %q, %q", dec.Strings().At(lost.Text), dec.Strings().At(log.Text)+dec.Strings().At(end.Text))
				}
				if recorded := len(seen) - 3; recorded+int(lost.Size)+1 != n {
					t.Errorf("%d recorded + %d lost + end is not %d", recorded, lost.Size, n)
				}
				// The file holds whole blocks, and with room all that was seen.
				if len(disk.b) == 0 && !later {
					return
				}
				all, stream := readFile(t, bytes.NewReader(disk.b))
				if len(stream.Damage()) > 0 || later && len(all) != len(seen) {
					t.Errorf("file has %d events of %d, damage %v", len(all), len(seen), stream.Damage())
				}
			})
		}
	}
}

func TestPollCutsWhatHasWaited(t *testing.T) {
	var s event.Strings
	r := New(new(Memory), &s, false)
	defer r.Finish()
	e := event.Event{Kind: event.Annotation, Step: event.NoStep}
	r.Emit(&e)
	if n := r.State().Events; n != 0 {
		t.Fatalf("%d events visible at once", n)
	}
	st := r.State()
	r.due.Store(true)
	r.Poll()
	<-st.Changed
	if n := r.State().Events; n != 1 {
		t.Errorf("%d events visible after the poll", n)
	}
}

func TestCreateRefusesOrReplaces(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.tideline")
	for i, tt := range []struct{ replace, ok bool }{{false, true}, {false, false}, {true, true}} {
		f, err := Create(name, tt.replace)
		if (err == nil) != tt.ok {
			t.Errorf("try %d: %v", i, err)
		}
		if err == nil {
			f.Close()
		} else if !errors.Is(err, os.ErrExist) {
			t.Errorf("error %v does not say that the file exists", err)
		}
	}
}

func TestOpenedCatchupGivesAllStringsBefore(t *testing.T) {
	var s event.Strings
	mem := new(Memory)
	r := New(mem, &s, false)
	generate(r, &s, 20_000)
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	o, err := Open(mem, int64(len(mem.b)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range o.State().Blocks {
		a, err := o.Catchup(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Catchup(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Fatalf("block %d: an opened file and the recording give different strings", i)
		}
		f, err := o.Frame(i, nil)
		if err != nil {
			t.Fatal(err)
		}
		dec := block.NewDecoder()
		decode(t, f, dec, decode(t, a, dec, nil))
	}
}

// What recording adds to the run itself: its goroutine's share, as long as the
// writer keeps up, which is let do so outside of the measured time.
func BenchmarkEmit(b *testing.B) {
	r, events := benchRecording(b)
	b.ReportAllocs()
	const burst = batchEvents * (batches - 2)
	b.ResetTimer()
	for i := range b.N {
		if i%burst == 0 {
			b.StopTimer()
			for len(r.empty) < batches-1 {
				runtime.Gosched()
			}
			b.StartTimer()
		}
		r.Emit(&events[i%len(events)])
	}
}

// Recording as a whole: what the writer does beside the run included.
func BenchmarkRecord(b *testing.B) {
	r, events := benchRecording(b)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		r.Emit(&events[i%len(events)])
	}
	if err := r.Finish(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.State().Bytes)/float64(b.N), "B/event")
}

func benchRecording(b *testing.B) (*Recording, []event.Event) {
	b.Helper()
	var s event.Strings
	var events []event.Event
	synthetic.Generate(synthetic.Options{Events: 200_000, Seed: 1}, &s, event.SinkFunc(func(e *event.Event) { events = append(events, *e) }))
	f, err := Create(filepath.Join(b.TempDir(), "bench.tideline"), false)
	if err != nil {
		b.Fatal(err)
	}
	r := New(&rewind{File: f}, &s, false)
	b.Cleanup(func() {
		if err := r.Finish(); err != nil {
			b.Error(err)
		}
		f.Close()
	})
	return r, events
}

// rewind writes over the same 64 MiB of a file, so that a benchmark does not
// fill the disk.
type rewind struct{ File }

func (w *rewind) WriteAt(p []byte, off int64) (int, error) { return w.File.WriteAt(p, off%(64<<20)) }
func (w *rewind) Truncate(int64) error                     { return nil }
