package shard

// Layer is a layer of a transformer, with what goes through it at once.
type Layer struct {
	Sequence, Batch, Width, Heads int64
}

// Recipe is how a layer's activations are divided, or computed again.
type Recipe uint8

// The recipes.
const (
	Plain          Recipe = iota
	Tensor                // tensor parallelism
	TensorSequence        // and the rest divided along the sequence
	Selective             // both, and the core of attention computed again
	Full                  // all but the layer's input computed again
	recipes
)

// Recipes are all of them.
func Recipes() []Recipe {
	list := make([]Recipe, recipes)
	for i := range list {
		list[i] = Recipe(i)
	}
	return list
}

// String says the recipe in words.
func (r Recipe) String() string {
	return [...]string{
		"as they are", "tensor parallel", "tensor and sequence parallel", "both, attention computed again", "all computed again",
	}[r]
}

// Divides says whether the recipe needs several devices.
func (r Recipe) Divides() bool { return r != Plain && r != Full }

// Kept is the bytes that a layer keeps on each of so many devices for its
// backward pass, where a number has 16 bits and a mask of dropout 8.
func (l Layer) Kept(r Recipe, devices int64) int64 {
	t := float64(max(1, devices))
	sbh := float64(l.Sequence) * float64(l.Batch) * float64(l.Width)
	scores := 5 * float64(l.Heads) * float64(l.Sequence) / float64(max(1, l.Width))
	var each float64 // bytes of a token and unit
	switch r {
	case Plain:
		each = 34 + scores
	case Tensor:
		each = 10 + 24/t + scores/t
	case TensorSequence:
		each = (34 + scores) / t
	case Selective:
		each = 34 / t
	default:
		each = 2
	}
	return int64(sbh * each)
}
