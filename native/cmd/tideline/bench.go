package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"

	"tideline/native/bench"
)

type benchCmd struct {
	Events  int      `default:"400000" help:"Length of the made-up timeline."`
	Rounds  int      `default:"5" help:"Rounds of each measurement; the fastest counts."`
	Only    string   `placeholder:"REGEXP" help:"Measure only what matches by group or name, and what that is compared with."`
	Goldens string   `placeholder:"FOLDER" type:"path" help:"Folder with recorded traces and published problems (goldens/); default ../shared where it exists."`
	WASM    []string `name:"wasm" sep:"none" hidden:"" help:"The command, word by word, that measures the same tasks as WebAssembly. go run ./build bench sets it."`
	Into    string   `placeholder:"FILE" type:"path" help:"Also write the tables into a Markdown file, between the lines that mark the place."`
	JSON    bool     `name:"json" help:"Print JSON."`
}

// Run measures.
func (b *benchCmd) Run(c *console) error {
	if b.Events < 1000 || b.Rounds < 1 {
		return usage("--events takes at least 1000, --rounds at least 1")
	}
	o := bench.Options{Rounds: b.Rounds, Events: b.Events, Goldens: b.goldens(), WASM: b.WASM}
	if b.Only != "" {
		var err error
		if o.Only, err = regexp.Compile("(?i)" + b.Only); err != nil {
			return usage("--only is no regular expression: %v", err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	lines, err := bench.Run(ctx, o)
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if b.Into != "" {
		if err := writeInto(b.Into, lines); err != nil {
			return err
		}
	}
	if b.JSON {
		return printJSON(c, lines)
	}
	printBench(c, lines)
	return nil
}

// goldens is the folder that was named, or the one beside the checkout.
func (b *benchCmd) goldens() string {
	if b.Goldens != "" {
		return b.Goldens
	}
	beside := filepath.Join("..", "shared")
	if st, err := os.Stat(filepath.Join(beside, "goldens")); err == nil && st.IsDir() {
		return beside
	}
	return ""
}
