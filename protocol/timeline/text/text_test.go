package text_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"tideline/protocol/block"
	"tideline/protocol/event"
	"tideline/protocol/synthetic"
	"tideline/protocol/timeline"
	"tideline/protocol/timeline/text"
)

// resolved is an event with its strings by text, comparable between tables.
type resolved struct {
	event            event.Event
	op, tensor, text string
}

func resolve(e event.Event, s *event.Strings) resolved {
	r := resolved{e, s.At(e.Op), s.At(e.Tensor), s.At(e.Text)}
	r.event.Op, r.event.Tensor, r.event.Text = 0, 0, 0
	return r
}

func read(in string) (events []resolved, err error) {
	var s event.Strings
	err = text.Read(strings.NewReader(in), &s, event.SinkFunc(func(e *event.Event) {
		events = append(events, resolve(*e, &s))
	}))
	return events, err
}

func requireSame(t *testing.T, got, want []resolved) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events came back of %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("event %d came back as\n%+v\nnot\n%+v", i, got[i], want[i])
		}
	}
}

func TestBinaryToTextAndBackIsTheSame(t *testing.T) {
	var file bytes.Buffer
	w := timeline.NewWriter(&file, timeline.Options{Block: block.Options{Events: 500}})
	var want []resolved
	synthetic.Generate(synthetic.Options{Events: 5000, Dynamic: true}, w.Strings(), event.SinkFunc(func(e *event.Event) {
		want = append(want, resolve(*e, w.Strings()))
		w.Emit(e)
	}))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := timeline.NewStream(&file)
	if err != nil {
		t.Fatal(err)
	}
	var first, second, back bytes.Buffer
	if err := text.Write(&first, s); err != nil {
		t.Fatal(err)
	}
	got, err := read(first.String())
	if err != nil {
		t.Fatal(err)
	}
	requireSame(t, got, want)

	w = timeline.NewWriter(&back, timeline.Options{})
	if err := text.Read(bytes.NewReader(first.Bytes()), w.Strings(), w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = timeline.NewStream(&back); err != nil {
		t.Fatal(err)
	}
	if err := text.Write(&second, s); err != nil {
		t.Fatal(err)
	}
	if first.String() != second.String() {
		t.Error("the text of the second timeline differs")
	}
}

func TestAnyEventComesBackAsItWas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "plain/name:0", "two words", "line\nbreak", "\xff\x00", `"quoted"`, "a=b", "# no remark", "ünïcode", " "}
	var s event.Strings
	for _, v := range texts {
		s.ID(v)
	}
	some := func(n uint64) uint64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return r.Uint64() >> r.IntN(64) % n
	}
	var out bytes.Buffer
	w := text.NewWriter(&out, &s)
	var want []resolved
	for range 20_000 {
		e := event.Event{
			Time: int64(r.Uint64()), Address: some(1 << 63), Size: int64(some(1<<63)) - 5, Requested: -int64(some(1 << 62)),
			ID: some(1 << 63), Op: event.StringID(r.IntN(len(texts))), Tensor: event.StringID(r.IntN(len(texts))),
			Text: event.StringID(r.IntN(len(texts))), Step: int32(some(1<<32)) - 1,
			Device: event.DeviceID(some(1 << 16)), Peer: event.DeviceID(some(1 << 16)), Allocator: event.AllocatorID(some(1 << 16)),
			Kind: event.Kind(r.IntN(event.NumKinds + 3)), Category: event.Category(some(256)), Stream: event.StreamID(some(256)),
			Cause: uint8(some(256)), Flags: event.Flags(some(256)),
		}
		want = append(want, resolve(e, &s))
		w.Emit(&e)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := read(out.String())
	if err != nil {
		t.Fatal(err)
	}
	requireSame(t, got, want)
}

func TestLinesReadAsPeopleWriteThem(t *testing.T) {
	var s event.Strings
	for _, c := range []struct {
		event event.Event
		want  string
	}{
		{event.Event{Kind: event.StepBegin, Size: 32}, "0 step-begin size=32 step=0"},
		{
			event.Event{Time: 1500, Kind: event.Alloc, Device: 1, Address: 0x100, Size: 512, Requested: 400, Op: s.ID("a/MatMul"), Category: event.OptimizerState, Step: -1},
			`1500 alloc address=0x100 category="optimizer state" device=1 op=a/MatMul requested=400 size=512`,
		},
		{event.Event{Kind: event.Metric, Op: s.ID("loss"), Size: 0x3FD3333333333333, Step: 7}, "0 metric op=loss step=7 value=0.3"},
		{
			event.Event{Kind: event.TransferBegin, Peer: 1, Size: 9, Flags: event.Pinned | event.Modelled, Cause: uint8(event.CauseInput), Step: -1},
			"0 transfer-begin cause=input flags=pinned+modelled peer=1 size=9",
		},
		{event.Event{Kind: event.OpBegin, Category: event.OpBackward, Step: -1}, "0 op-begin part=backward"},
		{event.Event{Kind: event.OutOfMemory, Cause: uint8(event.OOMFragmented), Step: -1}, "0 out-of-memory cause=fragmented"},
		{event.Event{Kind: 200, Category: 99, Step: -1}, "0 kind-200 category=category-99"},
	} {
		if got := text.Line(&c.event, &s); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestErrorsNameTheLine(t *testing.T) {
	const head = "# tideline text 1\n# a remark\n0 step-begin\n"
	for _, c := range []struct{ in, want string }{
		{"", "not a tideline timeline: it is empty"},
		{"time,size\n", "line 1: not a tideline timeline"},
		{"# tideline text 2\n", "line 1: newer version: the text has version 2, this reader knows up to 1"},
		{head + "soon alloc", `line 4: "soon" is not a time`},
		{head + "5", `line 4: "" is not a kind`},
		{head + "5 malloc", `line 4: "malloc" is not a kind`},
		{head + "5 alloc sise=3", `line 4: there is no field "sise"`},
		{head + "5 alloc size", `line 4: "size" is not a field`},
		{head + "5 alloc size=3 size=3", "line 4: field size stands twice"},
		{head + "5 alloc size=three", `line 4: field size: "three"`},
		{head + "5 alloc device=70000", `line 4: field device: "70000"`},
		{head + "5 alloc op=\"open", "line 4: field op: the quoted text does not end"},
		{head + "5 alloc op=\"a\"b", "line 4: field op: a space is missing"},
		{head + "5 alloc category=gold", `line 4: field category: "gold"`},
		{head + "5 log flags=loud", `line 4: field flags: "loud": no such flag`},
	} {
		_, err := read(c.in)
		if !strings.HasPrefix(fmt.Sprint(err), c.want) {
			t.Errorf("%q: %v, want %s", c.in, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("# tideline text 1\n0 alloc size=3 op=\"a b\" category=activation flags=pinned+flag-7\n")
	f.Add("# tideline text 1\n-5 metric value=NaN step=0\n7 kind-99 cause=cause-4 part=part-9\n")
	f.Add("# tideline text 1\n5 out-of-memory cause=oom-77 address=0x10 requested=-1\n# x\n\n 6 end")
	f.Fuzz(func(t *testing.T, in string) {
		var s event.Strings
		var out bytes.Buffer
		var want []resolved
		w := text.NewWriter(&out, &s)
		err := text.Read(strings.NewReader(in), &s, event.SinkFunc(func(e *event.Event) {
			want = append(want, resolve(*e, &s))
			w.Emit(e)
		}))
		if err != nil {
			return
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		got, err := read(out.String())
		if err != nil {
			t.Fatalf("what was written does not read: %v\n%s", err, out.String())
		}
		requireSame(t, got, want)
	})
}
