package ingest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/eventhash"
	"tideline/shared/ingest/lines"
)

// everyLine lets all lines through to all readers, as if there was no sieve.
var everyLine = lines.NewSieve()

// outcome is all that a text comes to: its readings and events, or the error.
func outcome(t *testing.T, s string, sieved bool) string {
	t.Helper()
	past := newHistory()
	all := newReaders(past.row, past.record)
	if !sieved {
		all.sieve, all.always = everyLine, toAll
	}
	text, err := readWith(all, "x", &Text{past: past}, strings.NewReader(s))
	if err != nil {
		return err.Error()
	}
	var b []byte
	for _, r := range text.All() {
		b = append(r.AppendJSON(b), '\n')
	}
	var strs event.Strings
	h := eventhash.New(&strs)
	if err := text.Emit(&strs, h); err != nil {
		t.Fatal(err)
	}
	notices := 0
	if text.Log != nil {
		notices = len(text.Log.Notices)
	}
	return fmt.Sprintf("%s%x, %d lines, %d notices, %q", b, h.Sum64(), text.Lines, notices, text.Cut)
}

func samePassed(t *testing.T, name, s string) {
	t.Helper()
	if with, without := outcome(t, s, true), outcome(t, s, false); with != without {
		t.Errorf("%s: with the sieve\n%s\nwithout it\n%s", name, with, without)
	}
}

// texts are the texts of the collection, of the testdata and of the wordings.
func texts(t *testing.T) (names []string, all map[string]string) {
	t.Helper()
	all = map[string]string{}
	for name, b := range everyInput(t) {
		if len(b) < 1<<20 && (Recognise(b) == Log || Recognise(b) == JSON) && !IsData(b) {
			all[name] = string(b)
		}
	}
	for _, w := range wordings {
		all[w.kind+"/"+w.name] = w.text
	}
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, all
}

// TestSieve: what a text means and tells is the same whether each line goes to
// all readers or only to those whose marks it holds.
func TestSieve(t *testing.T) {
	names, all := texts(t)
	if len(names) < 40 {
		t.Fatalf("only %d texts", len(names))
	}
	for i, name := range names {
		s := all[name]
		samePassed(t, name, s)
		other := names[(i+7)%len(names)]
		samePassed(t, name+" and "+other, s+"\n"+training(40)+all[other])
		samePassed(t, "interleaved "+name+" and "+other, interleave(s, all[other]))
	}
}

// TestSieveMutated does so for texts cut, shuffled, wrapped and garbled.
func TestSieveMutated(t *testing.T) {
	names, all := texts(t)
	r := rand.New(rand.NewPCG(11, 7))
	for range 1500 {
		name := names[r.IntN(len(names))]
		s := all[name]
		if len(s) > 20000 {
			at := r.IntN(len(s) - 20000)
			s = s[at : at+20000]
		}
		samePassed(t, name, mutate(r, s, all[names[r.IntN(len(names))]]))
		if t.Failed() {
			return
		}
	}
}

func mutate(r *rand.Rand, s, other string) string {
	list := strings.Split(s, "\n")
	for range 1 + r.IntN(4) {
		i := r.IntN(len(list))
		l := list[i]
		at := r.IntN(len(l) + 1)
		switch r.IntN(8) {
		case 0: // wrapped by a terminal
			list[i] = l[:at] + "\n" + l[at:]
		case 1:
			list = append(list[:i], list[min(len(list), i+1+r.IntN(3)):]...)
			if len(list) == 0 {
				list = []string{""}
			}
		case 2:
			j := r.IntN(len(list))
			list[i], list[j] = list[j], list[i]
		case 3:
			list[i] = strings.ToUpper(l)
		case 4:
			list[i] = "rank0 | " + l
		case 5:
			piece := strings.Split(other, "\n")
			list[i] = l + "\n" + piece[r.IntN(len(piece))]
		case 6:
			for k := range list {
				list[k] = "[worker 3] " + list[k]
			}
		case 7:
			if at < len(l) {
				list[i] = l[:at] + string(rune(32+r.IntN(95))) + l[at+1:]
			}
		}
	}
	return strings.Join(list, "\n")
}

func interleave(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for i := range max(len(x), len(y)) {
		if i < len(x) {
			out = append(out, x[i])
		}
		if i < len(y) {
			out = append(out, y[i])
		}
	}
	return strings.Join(out, "\n")
}

// training is the ordinary output of a training loop.
func training(n int) string {
	var b strings.Builder
	for i := range n {
		switch i % 5 {
		case 0:
			fmt.Fprintf(&b, "2024-03-01 12:%02d:%02d,123 INFO trainer: epoch 3 step %d/90000 loss=2.%04d lr=0.00031 grad_norm=0.84 tokens/s=18231\n", i/60%60, i%60, i, i%10000)
		case 1:
			fmt.Fprintf(&b, " %3d/500 [=====>........................] - ETA: 1:12 - loss: 0.6931 - accuracy: 0.5%03d\n", i%500, i%1000)
		case 2:
			b.WriteString("saving checkpoint to /data/runs/model-a/checkpoint and removing the oldest one\n")
		case 3:
			fmt.Fprintf(&b, " 45%%|####5     | %d/500 [01:12<01:28, 3.12it/s, loss=0.42, v_num=3]\n", i%500)
		default:
			b.WriteString("/usr/lib/python3/site-packages/torch/optim/lr_scheduler.py:131: UserWarning: call optimizer.step() before lr_scheduler.step()\n")
		}
	}
	return b.String()
}

// FuzzSieve holds it for any text.
func FuzzSieve(f *testing.F) {
	f.Add("Found device 0 with properties\nfreeMemory: 1.00GiB\ncreated device:GPU:0 with 9 MB memory")
	for _, w := range wordings {
		f.Add(w.text)
		f.Add(w.text + "\n" + training(3) + w.text)
	}
	f.Fuzz(func(t *testing.T, s string) { samePassed(t, "it", s) })
}

// TestReadersAsked: waiting asks those that can wait, and no other can.
func TestReadersAsked(t *testing.T) {
	var can []string
	for f := range reflect.TypeFor[readers]().Fields() {
		if f.Type.Kind() == reflect.Pointer {
			if _, ok := f.Type.MethodByName("Idle"); ok {
				can = append(can, f.Name)
			}
		}
	}
	if want := []string{"bfc", "xla", "torch", "ort", "rmm", "smi", "steps", "place"}; !slices.Equal(can, want) {
		t.Errorf("%q can wait for a line, but %q are asked", can, want)
	}
}

func BenchmarkOpenText(b *testing.B) {
	long := training(20000)
	oom := ""
	for _, w := range wordings {
		if w.name == "same as requested" {
			oom = w.text
		}
	}
	bfc, _ := os.ReadFile("testdata/memory-33-input.txt")
	for _, c := range []struct{ name, text string }{
		{"training", long + oom},
		{"failed first", oom + "\n" + string(bfc) + long},
		{"figures", strings.Repeat("[1370/5000] eta: 0:21:10 lr: 0.000025 loss: 0.4420 (0.4801) time: 0.34 data: 0.002 max mem: 14655\n", 20000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Open("x", strings.NewReader(c.text), Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
