package rerun

import (
	"strconv"
	"strings"

	"tideline/protocol/event"
	"tideline/shared/device"
	"tideline/shared/zoo"
)

// Info is what the page offers to choose from: models with their layers, cards
// and demos, numbered from 0.
func (s *Session) Info() string {
	var f event.Fields
	put := func(list string, i int, name, value string) {
		f = append(f, event.Field{Key: list + "." + strconv.Itoa(i) + "." + name, Value: value})
	}
	for i, m := range zoo.Models() {
		put("models", i, "name", m.Name)
		put("models", i, "title", m.Title)
		put("models", i, "layers", strings.Join(layers(m.Name), " "))
	}
	presets := device.Presets()
	for i := range presets {
		put("presets", i, "name", presets[i].Name)
		put("presets", i, "title", one(presets[i].Title))
	}
	for i, d := range demos {
		put("demos", i, "id", d.id)
		put("demos", i, "title", d.title)
		put("demos", i, "text", d.text)
		put("demos", i, "fields", strings.ReplaceAll(d.fields, "\n", "\t"))
	}
	return f.Encode()
}

// layers are the first parts of the names of a model's variables, which is
// what placement rules are written for.
func layers(model string) (out []string) {
	p, err := zoo.Program(model, zoo.Options{Batch: 1})
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for i := range p.Variables {
		name, _, _ := strings.Cut(p.Variables[i].Name, "/")
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}
