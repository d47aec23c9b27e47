package reading

import (
	"strings"
	"testing"
)

func TestPhrasesAreNoIdentifiers(t *testing.T) {
	for verdict := range phrases {
		if p := Phrase(verdict); p == "" || strings.Contains(p, "_") || strings.ToUpper(p[:1]) != p[:1] || strings.HasSuffix(p, ".") {
			t.Errorf("%s: %q", verdict, p)
		}
	}
	for verdict, want := range map[string]string{"full": "Full", "fragmented": "Fragmented", "some_new_one": "Some new one", "": ""} {
		if got := Phrase(verdict); got != want {
			t.Errorf("%q: %q, want %q", verdict, got, want)
		}
	}
}
