package dataset

import "math"

// The text that language models train on is made, not read: a walk over a few
// tokens, each of which is followed by one of four others, with probabilities
// of 1/2, 1/4, 1/8 and 1/8. What can be learned of it is known: no model's loss
// per token falls below Entropy for long, and one that knows only how often
// each token comes stays above it by far.

const (
	// Alphabet is the number of different tokens in the text, where a model's
	// vocabulary has so many.
	Alphabet = 64
	// Entropy is that of the next token given the last, in nats: 7/4 bits.
	Entropy = 1.75 * math.Ln2
)

// text is the walk of one element. Texts of different classes follow different
// tables, so that a class can be told from its text.
type text struct {
	state    uint64
	class    int64
	alphabet uint64
	token    uint64
}

// textOf begins the text of an element for a model with the given vocabulary.
// classes is that of the labels, 1 when the next token is what is asked for.
func textOf(element int32, vocabulary, classes int64) text {
	t := text{state: mix(uint64(element) ^ 0x7465_7874), alphabet: uint64(max(1, min(vocabulary, Alphabet)))}
	t.class = int64(t.draw() % uint64(max(1, classes)))
	t.token = t.draw() % t.alphabet
	return t
}

func (t *text) draw() uint64 {
	t.state += golden
	return mix(t.state)
}

// next gives the token and goes on.
func (t *text) next() int64 {
	was := t.token
	follower := [8]uint64{0, 0, 0, 0, 1, 1, 2, 3}[t.draw()>>61]
	t.token = follow(uint64(t.class), was, follower, t.alphabet)
	return int64(was)
}

// follow is the table: the followers of a token are neighbours of a place that
// depends on the token, so that they are four different ones.
func follow(class, token, which, alphabet uint64) uint64 {
	return (mix(class*Alphabet+token+1) + which*which + which) % alphabet
}

const golden = 0x9e3779b97f4a7c15

// mix is splitmix64's output function.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
