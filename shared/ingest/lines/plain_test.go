package lines

import (
	"strings"
	"testing"
)

// What a page made of a text is the text again, whichever way it was copied.
func TestPagesArePlain(t *testing.T) {
	const text = "| 0  N/A |  14MiB / 20MiB | a>>b <node> & \"c\" 'd' |"
	for name, s := range map[string]string{
		"as it is":     text,
		"fixed blanks": strings.ReplaceAll(text, " ", "\u00a0"),
		"entities":     strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;", " ", "&nbsp;").Replace(text),
	} {
		for _, end := range []string{"\n", "\r\n", "\r", ""} {
			if got := all(t, s+end); len(got) != 1 || got[0] != text {
				t.Errorf("%s, ended by %q: %q", name, end, got)
			}
		}
	}
	// An entity of an entity is one that was meant.
	if got := all(t, "&amp;gt;"); got[0] != "&gt;" {
		t.Errorf("%q", got)
	}
}
