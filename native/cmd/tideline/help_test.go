package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestHelpOfEveryVerb: by help VERB as by VERB --help, with an example that can be
// parsed; those that need nothing but a clone are run in one.
func TestHelpOfEveryVerb(t *testing.T) {
	_, all, _ := tideline(t, "help")
	if _, flag, _ := tideline(t, "--help"); all != flag || len(all) < 500 {
		t.Errorf("help says\n%s\n--help\n%s", all, flag)
	}
	var g grammar
	parser, err := kong.New(&g, kong.Vars{"addr": "", "smi": ""})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range parser.Model.Children {
		names = append(names, n.Name)
	}
	if len(names) != len(verbs) {
		t.Errorf("verbs %v, with examples %d", names, len(verbs))
	}
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(examples)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	elsewhere := map[string]bool{"serve": true, "share": true, "open": true, "attach": true, "watch": true, "bench": true}
	for _, v := range verbs {
		code, help, _ := tideline(t, v.name, "--help")
		code2, same, _ := tideline(t, "help", v.name)
		if code != exitDone || code2 != exitDone || help != same || !strings.Contains(help, "Usage: tideline "+v.name) || !strings.Contains(all, "\n  "+v.name+" ") {
			t.Errorf("%s --help says\n%s\nhelp %s\n%s", v.name, help, v.name, same)
		}
		if !strings.Contains(help, "Example: "+v.what+".\n\n    "+v.example+"\n") {
			t.Errorf("%s: no example in\n%s", v.name, help)
		}
		args := strings.Fields(strings.ReplaceAll(v.example, "'", ""))[1:]
		if args[0] != v.name {
			t.Errorf("the example of %s is of %s", v.name, args[0])
		}
		if elsewhere[v.name] {
			var g grammar
			p, err := kong.New(&g, kong.Vars{"addr": "", "smi": ""})
			if err == nil {
				_, err = p.Parse(args)
			}
			if err != nil {
				t.Errorf("%s: %v", v.example, err)
			}
		} else if code, stdout, stderr := tideline(t, args...); code != exitDone {
			t.Errorf("%s: %d %s%s", v.example, code, stdout, stderr)
		}
	}
}

// TestWordsNearAVerb: slips, beginnings and the words of other programs.
func TestWordsNearAVerb(t *testing.T) {
	for word, want := range map[string]string{
		"explian": "explain", "rnu": "run", "shrae": "share", "hlep": "help", "conv": "convert", "Explain": "explain", "compare": "diff", "upload": "share", "rerun": "replay",
	} {
		for _, args := range [][]string{{word}, {word, "x.log"}, {"help", word}} {
			code, stdout, stderr := tideline(t, args...)
			if code != exitUsage || stdout != "" || !strings.Contains(stderr, `did you mean "`+want+`"?`) {
				t.Errorf("%v: %d %s%s", args, code, stdout, stderr)
			}
		}
	}
	for _, args := range [][]string{{"zzzzzz"}, {"help", "zzzzzz"}} {
		if code, _, stderr := tideline(t, args...); code != exitUsage || strings.Contains(stderr, "did you mean") || !strings.Contains(stderr, "Verbs: serve, run") {
			t.Errorf("%v: %d %s", args, code, stderr)
		}
	}
	for other, verb := range other {
		if meant(verb) != "" || meant(other) == "" {
			t.Errorf("%q is said to be %q", other, verb)
		}
	}
}
