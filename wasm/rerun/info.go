package rerun

import (
	"strconv"
	"strings"

	"tideline/protocol/api"
	"tideline/protocol/event"
	"tideline/shared/alloc/kinds"
	"tideline/shared/device"
	"tideline/shared/zoo"
)

// Info is what the page offers to choose from: models with their layers and
// usual sizes, cards, allocators, environment variables and demos, numbered from 0.
func (s *Session) Info() string {
	var f event.Fields
	put := func(list string, i int, name, value string) {
		f = append(f, event.Field{Key: list + "." + strconv.Itoa(i) + "." + name, Value: value})
	}
	for i, m := range zoo.Models() {
		put("models", i, "name", m.Name)
		put("models", i, "title", m.Title)
		put("models", i, "layers", strings.Join(layers(m.Name), " "))
		put("models", i, "kind", m.Kind.String())
		if m.Image.Default > 0 {
			put("models", i, "image", strconv.Itoa(m.Image.Default))
		}
		if m.Sequence.Default > 0 {
			put("models", i, "sequence", strconv.Itoa(m.Sequence.Default))
		}
	}
	n := 0
	for _, list := range [][]device.Preset{device.Presets(), device.TPUs()} {
		for i := range list {
			put("presets", n, "name", list[i].Name)
			put("presets", n, "title", one(list[i].Title))
			put("presets", n, "kind", strings.ToLower(list[i].Type))
			n++
		}
	}
	for i, k := range kinds.All() {
		put("allocators", i, "name", k.Name)
		put("allocators", i, "text", one(k.Doc))
		var options []string
		for _, o := range k.Options {
			options = append(options, o.Name+"="+o.Default)
		}
		put("allocators", i, "options", strings.Join(options, " "))
	}
	put("env", 0, "names", strings.Join(api.EnvNames, " "))
	for i, d := range demos {
		put("demos", i, "id", d.id)
		put("demos", i, "title", d.title)
		put("demos", i, "text", d.text)
		put("demos", i, "fields", strings.ReplaceAll(d.fields, "\n", "\t"))
	}
	return f.Encode()
}

// layerNames are the layers of each model, "block*3" for block1 to block3:
// building all models to look them up would hold up the page for a second. A
// test holds them to the zoo.
var layerNames = map[string]string{
	"mlp":            "dense*2 logits",
	"mlp-128":        "dense1 logits",
	"mlp-8":          "dense1 logits",
	"conv-2":         "conv*2 logits",
	"lenet5":         "conv*2 dense*2 logits",
	"vgg16":          "block*5 fc*2 logits",
	"resnet18":       "stem block*8 logits",
	"resnet50":       "stem block*16 logits",
	"resnet50-torch": "stem block*16 logits",
	"resnet50-v1.5":  "stem block*16 logits",
	"unet":           "down*4 bottom up4 up3 up2 up1 logits",
	"vit-b16":        "embeddings block*12 norm logits",
	"bert-2layer":    "embeddings layer*2 pooler classifier",
	"bert-base":      "embeddings layer*12 pooler classifier",
	"bert-large":     "embeddings layer*24 pooler classifier",
	"bert-base-tf1":  "embeddings layer*12 pooler classifier",
	"bert-large-tf1": "embeddings layer*24 pooler classifier",
	"gpt2":           "embeddings block*12 norm",
	"gpt2-medium":    "embeddings block*24 norm",
	"gpt2-large":     "embeddings block*36 norm",
	"gpt2-xl":        "embeddings block*48 norm",
	"lstm":           "embedding lstm logits",
}

// layers are the first parts of the names of a model's variables, which is
// what placement rules are written for.
func layers(model string) (out []string) {
	for name := range strings.FieldsSeq(layerNames[model]) {
		base, count, many := strings.Cut(name, "*")
		if !many {
			out = append(out, name)
			continue
		}
		n, _ := strconv.Atoi(count) // of the table above
		for i := range n {
			out = append(out, base+strconv.Itoa(i+1))
		}
	}
	return out
}
