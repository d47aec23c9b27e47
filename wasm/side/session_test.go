package side

import (
	"bytes"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/protocol/timeline"
	"tideline/shared/ingest"
	"tideline/shared/ingest/snapshot/synthetic"
)

// recorded is a snapshot's timeline.
func recorded(t *testing.T, seed uint64, most int64) []byte {
	t.Helper()
	var file, out bytes.Buffer
	if _, err := synthetic.Write(&file, synthetic.Shape{Requests: 2000, Live: 100, Seed: seed, Most: most}); err != nil {
		t.Fatal(err)
	}
	in, err := ingest.Open("x", &file, ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	strs := new(event.Strings)
	w := timeline.NewWriter(&out, timeline.Options{Strings: strs})
	if err := in.Emit(strs, w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func fields(t *testing.T, text string) event.Fields {
	t.Helper()
	f, err := event.ParseFields(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return f
}

func TestSession(t *testing.T) {
	var s Session
	feed := func(file []byte, piece int) error {
		s.Begin()
		for at := 0; at < len(file); at += piece {
			end := min(at+piece, len(file))
			if err := s.Feed(bytes.Clone(file[at:end]), end == len(file)); err != nil {
				return err
			}
		}
		return nil
	}
	var whole string
	for i, most := range []int64{8 << 20, 8 << 20, 16 << 20} {
		file := recorded(t, 7, most)
		if err := feed(file, 1000); err != nil {
			t.Fatal(err)
		}
		whole = s.End([]string{"rank_10.pickle", "rank_2.pickle", "rank_3.pickle"}[i], "", "", [4]string{})
	}
	f := fields(t, whole)
	if f.Text("rows.0.label") != "rank 2" || f.Text("rows.1.label") != "rank 3" || f.Text("rows.2.name") != "rank_10.pickle" || f.Text("ranked") != "yes" {
		t.Errorf("the order is\n%s", whole)
	}
	if f.Int("rows.0.peak") == 0 || f.Int("rows.0.peak") != f.Int("rows.2.peak") || f.Int("rows.0.beside") != 0 || f.Text("rows.0.bad") != "" ||
		f.Int("rows.1.beside") != f.Int("rows.1.peak")-f.Int("rows.0.peak") || f.Text("rows.1.bad") != "yes" {
		t.Errorf("the figures are\n%s", whole)
	}
	if !strings.HasPrefix(f.Text("words.0"), "Rank 3 peaks at ") {
		t.Errorf("the words are %q", f.Text("words.0"))
	}
	if err := feed(recorded(t, 7, 32<<20), 1<<20); err != nil {
		t.Fatal(err)
	}
	f = fields(t, s.End("rank_0.pickle", "", "it ends early", [4]string{}))
	if f.Text("rows.0.beside") != "" || f.Int("rows.0.peak") == 0 || f.Text("rows.0.says") != "Not all of it was read: it ends early" {
		t.Errorf("of a cut file: %v", f)
	}
	// Not a timeline, and a file that the reader refused: a row each.
	err := feed([]byte("no timeline at all, by no means"), 7)
	if err == nil {
		t.Fatal("a text is taken for a timeline")
	}
	f = fields(t, s.Unread("rank_4.pickle", "the file\nends"))
	if f.Text("rows.3.label") != "rank 4" || f.Text("rows.3.says") != "Cannot be read: the file ends" || f.Text("rows.3.peak") != "" || f.Text("rows.3.bad") != "yes" {
		t.Errorf("%v", f)
	}
	if err := feed(recorded(t, 1, 8<<20), 5000); err != nil {
		t.Errorf("after one that is none: %v", err)
	}
}

// TestMessages: of texts without a timeline what their messages tell counts.
func TestMessages(t *testing.T) {
	var s Session
	var none bytes.Buffer
	if err := timeline.NewWriter(&none, timeline.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	var answer string
	for i, inUse := range []string{"1000", "1001", "", "2000"} {
		s.Begin()
		if err := s.Feed(none.Bytes(), true); err != nil {
			t.Fatal(err)
		}
		answer = s.End("rank"+string(rune('0'+i)), "Full", "", [4]string{"", inUse, "3000", "7"})
	}
	f := fields(t, answer)
	if f.Int("rows.0.peak") != 1000 || f.Int("rows.0.reserved") != 3000 || f.Int("rows.1.end") != 1001 || f.Text("rows.2.peak") != "" || f.Text("rows.2.reserved") != "" || f.Int("rows.3.hole") != 7 || f.Text("rows.2.hole") != "" || f.Int("rows.3.beside") != 999 {
		t.Errorf("%s", answer)
	}
}

func TestRanked(t *testing.T) {
	if !Ranked("rank0.log\nrank1.log\nrank2.log") || Ranked("smi.txt\nlog.txt\nx.txt") || Ranked("rank0.log\nrank0.txt") {
		t.Error("ranks are not told from their names")
	}
}
