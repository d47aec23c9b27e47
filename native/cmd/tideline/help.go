package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"tideline/protocol/nearest"
)

type helpCmd struct {
	Verb string `arg:"" optional:"" help:"Verb to say it of; all of them otherwise."`
}

// Run shows the help of a verb, or of all.
func (h *helpCmd) Run(ctx context.Context, c *console) error {
	args := []string{"--help"}
	if h.Verb != "" {
		if is := meant(h.Verb); is != "" {
			return usage("%q is no verb%s", h.Verb, is)
		}
		args = []string{h.Verb, "--help"}
	}
	if code := execute(ctx, args, c); code != exitDone {
		return errSaid
	}
	return nil
}

// verbs are the verbs with an example each, which begin with "tideline": real ones
// of a clone where they can be, run by a test.
var verbs = []struct{ name, what, example string }{
	{"serve", "The page, with a PyTorch snapshot opened in it", "tideline serve examples/files/llm-step.pickle.gz"},
	{"run", "A small training run, written as a timeline", "tideline run examples/demo.yaml -o demo.tideline"},
	{"validate", "A workload that is right is printed with all defaults", "tideline validate examples/demo.yaml"},
	{"explain", "Why a request failed, of a log of TensorFlow", "tideline explain examples/files/cifar-2023.log"},
	{"replay", "What run wrote, with all of the card taken at once", "tideline replay demo.tideline --set devices.0.growth=false"},
	{"fit", "The largest batch on a T4", "tideline fit examples/demo.yaml --device t4-16g"},
	{"plan", "The lowest plan, with its proof", "tideline plan examples/buffers.csv --minimize"},
	{"diff", "Two snapshots of PyTorch", "tideline diff examples/files/small-model.pickle examples/files/llm-step.pickle.gz"},
	{"convert", "A snapshot as a timeline, with what it means and without names", "tideline convert examples/files/small-model.pickle small.tideline --redact"},
	{"share", "A link to a timeline without names, for a day", "tideline share demo.tideline --redact --expires 24h --to https://HOST"},
	{"open", "What was shared, as a file", "tideline open 'https://HOST/#share=ID.KEY' -o shared.tideline"},
	{"attach", "Three seconds of a program that called start_server(6009)", "tideline attach tf://localhost:6009 --for 3s --explain"},
	{"watch", "The cards for a minute, as a timeline", "tideline watch --for 1m -o cards.tideline"},
	{"devices", "Every card with its memory", "tideline devices"},
	{"bench", "The allocator's speeds alone", "tideline bench --only bfc"},
	{"version", "What this is", "tideline version"},
	{"help", "How convert is called", "tideline help convert"},
}

// withExamples adds each verb's example to its help.
func withExamples(parser *kong.Kong) {
	for _, n := range parser.Model.Children {
		for _, v := range verbs {
			if v.name == n.Name {
				n.Detail = "Example: " + v.what + ".\n\n    " + v.example
			}
		}
	}
}

// other are words of other programs for what a verb of ours does.
var other = map[string]string{
	"analyse": "explain", "analyze": "explain", "report": "explain", "why": "explain",
	"compare": "diff", "export": "convert", "import": "convert", "redact": "convert",
	"view": "serve", "show": "serve", "page": "serve", "ui": "serve",
	"rerun": "replay", "simulate": "replay", "upload": "share", "download": "open",
	"check": "validate", "profile": "attach", "monitor": "watch", "cards": "devices", "usage": "help",
}

// meant is the rest of the sentence that says that a word is no verb: the one that
// was meant, or all; "" for a verb.
func meant(word string) string {
	names := make([]string, len(verbs))
	for i, v := range verbs {
		if names[i] = v.name; v.name == word {
			return ""
		}
	}
	near := other[strings.ToLower(word)]
	for _, n := range names {
		if near == "" && turned(strings.ToLower(word), n) {
			near = n
		}
	}
	if near == "" {
		near = nearest.Word(word, names)
	}
	if near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ". Verbs: " + strings.Join(names, ", ")
}

// helpFor is the command that helps who mistook how a verb is called.
func helpFor(args []string) string {
	if len(args) > 0 && meant(args[0]) == "" {
		return "tideline " + args[0] + " --help"
	}
	return "tideline help"
}

// turned says whether two neighbouring letters of a word changed places, the
// commonest slip, which counts as two where letters are counted.
func turned(word, of string) bool {
	if len(word) != len(of) {
		return false
	}
	for i := range len(of) - 1 {
		if word[:i] == of[:i] && word[i] == of[i+1] && word[i+1] == of[i] && word[i+2:] == of[i+2:] {
			return true
		}
	}
	return false
}
