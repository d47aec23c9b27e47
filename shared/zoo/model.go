package zoo

import (
	"fmt"
	"strings"

	"tideline/shared/program"
)

// Kind is what a model reads: input 0 of its program.
type Kind uint8

// The kinds. Labels, input 1, are int64 always: [n] a class for each sample;
// [n,h,w] one for each pixel; [n,s] for each token the one that comes next.
const (
	Images   Kind = iota // float32 [n,side,side,channels], from 0 to 1
	Features             // float32 [n,f], from 0 to 1
	Tokens               // int32 [n,s], each below the vocabulary
)

// String is the kind's name.
func (k Kind) String() string { return [...]string{"images", "features", "tokens"}[k] }

// Task is what a model is trained to do.
type Task uint8

// The tasks.
const (
	Classify       Task = iota // name each sample's class
	ClassifyPixels             // name each pixel's class
	NextToken                  // foretell each token from those before it
)

// String is the task in words.
func (t Task) String() string {
	return [...]string{"classification", "classification of pixels", "next token"}[t]
}

// Range is what an extent may be.
type Range struct {
	Default, Min, Max int
	Multiple          int // 0: of anything
}

// Of gives n, or the default for 0, or an error that names field and says what
// would do.
func (r Range) Of(model, field string, n int) (int, error) {
	switch {
	case n == 0:
		return r.Default, nil
	case r.Default == 0:
		return 0, fmt.Errorf("%s %d: %s has none to choose: leave it out", field, n, model)
	case n < r.Min || n > r.Max:
		return 0, fmt.Errorf("%s %d: %s takes %d to %d", field, n, model, r.Min, r.Max)
	case r.Multiple > 1 && n%r.Multiple != 0:
		below := n - n%r.Multiple
		if below+r.Multiple > r.Max {
			below -= r.Multiple
		}
		return 0, fmt.Errorf("%s %d: %s takes multiples of %d, such as %d or %d", field, n, model, r.Multiple, below, below+r.Multiple)
	}
	return n, nil
}

// Model describes an entry of the zoo.
type Model struct {
	Name  string // what workloads write
	Title string // what pages show
	Kind  Kind
	Task  Task

	Image      Range // side in pixels, for Images
	Channels   int   // of an image
	Features   int   // numbers of a sample, for Features
	Sequence   Range // tokens of a sample, for Tokens
	Vocabulary int   // number of different tokens, for Tokens
	Classes    Range // that the head tells apart; zero for NextToken, where it is the vocabulary

	Blocks Blocks // of a transformer

	layers func(n *net, x program.ValueID) (logits program.ValueID)
}

// Blocks are a transformer's equal layers; none for other models.
type Blocks struct {
	Count, Width, Heads int
	Patch               int // side in pixels of what is a token, for Images
}

// Tokens are how many one sample has that is so long or has such a side.
func (b Blocks) Tokens(extent int) int {
	if b.Patch == 0 {
		return extent
	}
	return (extent/b.Patch)*(extent/b.Patch) + 1
}

// Models lists the zoo in the order in which it is shown.
func Models() []Model { return append([]Model(nil), zoo...) }

// Names lists the names that Find knows, in the order of Models.
func Names() []string {
	names := make([]string, len(zoo))
	for i := range zoo {
		names[i] = zoo[i].Name
	}
	return names
}

// Find gives the model of this name, or an error that lists those there are.
func Find(name string) (*Model, error) {
	for i := range zoo {
		if zoo[i].Name == name {
			m := zoo[i]
			return &m, nil
		}
	}
	return nil, fmt.Errorf("model %q is not in the zoo: choose one of %s", name, strings.Join(Names(), ", "))
}

// The extents that models share.
var (
	digits   = Range{Default: 10, Min: 2, Max: 100_000}
	imagenet = Range{Default: 1000, Min: 2, Max: 100_000}
	two      = Range{Default: 2, Min: 1, Max: 100_000}
	photo    = Range{Default: 224, Min: 32, Max: 1024}
)

// zoo is the table. The largest image and sequence keep a step's description,
// not its memory, within what a browser can hold.
var zoo = []Model{
	{Name: "mlp", Title: "MLP 784-512-512-10", Image: Range{28, 1, 256, 0}, Channels: 1, Classes: digits, layers: perceptron(512, 512)},
	{Name: "mlp-128", Title: "MLP 784-128-10", Image: Range{28, 1, 256, 0}, Channels: 1, Classes: digits, layers: perceptron(128)},
	{Name: "mlp-8", Title: "MLP 8-16-4", Kind: Features, Features: 8, Classes: Range{4, 2, 100_000, 0}, layers: perceptron(16)},
	{Name: "conv-2", Title: "Two convolutions", Image: Range{8, 4, 256, 0}, Channels: 1, Classes: digits, layers: conv2},
	{Name: "lenet5", Title: "LeNet-5", Image: Range{32, 16, 256, 0}, Channels: 1, Classes: digits, layers: lenet5},
	{Name: "vgg16", Title: "VGG-16", Image: photo, Channels: 3, Classes: imagenet, layers: vgg16},
	{Name: "resnet18", Title: "ResNet-18", Image: photo, Channels: 3, Classes: imagenet, layers: resnet{blocks: [4]int{2, 2, 2, 2}, basic: true}.layers},
	{Name: "resnet50", Title: "ResNet-50", Image: photo, Channels: 3, Classes: imagenet, layers: resnet{blocks: resnet50, bias: true}.layers},
	{Name: "resnet50-torch", Title: "ResNet-50 without convolution biases", Image: photo, Channels: 3, Classes: imagenet, layers: resnet{blocks: resnet50}.layers},
	{Name: "resnet50-v1.5", Title: "ResNet-50 v1.5", Image: photo, Channels: 3, Classes: imagenet, layers: resnet{blocks: resnet50, late: true}.layers},
	{Name: "unet", Title: "U-Net", Task: ClassifyPixels, Image: Range{512, 16, 1024, 16}, Channels: 1, Classes: two, layers: unet},
	{Name: "vit-b16", Title: "ViT-B/16", Image: Range{224, 16, 1024, 16}, Channels: 3, Classes: imagenet, Blocks: Blocks{12, 768, 12, 16}, layers: transformer{layers: 12, width: 768, heads: 12}.vision},
	bert("bert-2layer", "BERT, 2 layers", transformer{layers: 2, width: 128, heads: 2, positions: 128, longGelu: true}, 1000, 32),
	bert("bert-base", "BERT-base", bertBase, 30522, 128),
	bert("bert-large", "BERT-large", bertLarge, 30522, 128),
	bert("bert-base-tf1", "BERT-base of simple ops", bertBase.simple(), 30522, 128),
	bert("bert-large-tf1", "BERT-large of simple ops", bertLarge.simple(), 30522, 128),
	gpt2("gpt2", "GPT-2", 12, 768, 12),
	gpt2("gpt2-medium", "GPT-2 medium", 24, 1024, 16),
	gpt2("gpt2-large", "GPT-2 large", 36, 1280, 20),
	gpt2("gpt2-xl", "GPT-2 XL", 48, 1600, 25),
	{Name: "lstm", Title: "LSTM language model", Kind: Tokens, Task: NextToken, Sequence: Range{35, 1, 512, 0}, Vocabulary: 10_000, layers: lstm},
}

var (
	resnet50  = [4]int{3, 4, 6, 3}
	bertBase  = transformer{layers: 12, width: 768, heads: 12, positions: 512, longGelu: true}
	bertLarge = transformer{layers: 24, width: 1024, heads: 16, positions: 512, longGelu: true}
)

func bert(name, title string, t transformer, vocabulary, sequence int) Model {
	return Model{
		Name: name, Title: title, Kind: Tokens, Sequence: Range{Default: sequence, Min: 1, Max: t.positions},
		Vocabulary: vocabulary, Classes: two, Blocks: t.blocks(), layers: t.encoder,
	}
}

func gpt2(name, title string, layers, width, heads int) Model {
	t := transformer{layers: layers, width: int64(width), heads: int64(heads), positions: 1024}
	return Model{
		Name: name, Title: title, Kind: Tokens, Task: NextToken, Sequence: Range{Default: 1024, Min: 1, Max: 1024},
		Vocabulary: 50257, Blocks: t.blocks(), layers: t.decoder,
	}
}
