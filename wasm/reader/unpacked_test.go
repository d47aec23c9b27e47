package reader

import (
	"strings"
	"testing"
)

// TestUnpackedByTheBrowser: a packed file means and tells the same whether the
// reader unpacks it or is fed what comes out of it.
func TestUnpackedByTheBrowser(t *testing.T) {
	var s, plain Session
	all := files(t)
	all["twice"] = packed([]byte("a"))
	all["nothing"] = []byte("a line about nothing\n")
	all["empty"] = nil
	all["binary"] = []byte("\x00\x01\x02\x03")
	for name, file := range all {
		if strings.HasSuffix(name, ".gz") {
			continue
		}
		want := read(t, &plain, name, packed(file), 1<<16)
		state := s.StartUnpacked(name)
		rest := file
		for state == Hungry {
			n := min(60000, len(rest))
			state = s.Feed(rest[:n], n == len(rest))
			rest = rest[n:]
		}
		if state == Failed {
			if said := string(s.Answer()); want.err == nil || said != want.err.Error() {
				t.Errorf("%s: %s, want %v", name, said, want.err)
			}
			continue
		}
		known, pieces := string(s.Answer()), []byte(nil)
		for state = s.Work(); state == Full || state == Told; state = s.Work() {
			pieces = append(pieces, s.Drain()...)
			if state == Told {
				break
			}
		}
		sum, events := hash(t, pieces)
		if known != want.known || string(s.Answer()) != want.told || sum != want.sum || events != want.events || !strings.Contains(known, `"gzip":true`) {
			t.Errorf("%s: %s, %d events (%x), want %s, %d events (%x); %v", name, known, events, sum, want.known, want.events, want.sum, want.err)
		}
	}
}
