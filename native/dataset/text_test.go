package dataset

import (
	"math"
	"testing"

	"tideline/shared/program"
	"tideline/shared/zoo"
)

func training(tb testing.TB) Data {
	tb.Helper()
	d, err := Training()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// What the tables say about the text must be what it is.
func TestTextHasTheEntropyThatIsSaid(t *testing.T) {
	counts := map[[2]int64]float64{}
	of := map[int64]float64{}
	const elements, length = 1400, 100
	for e := range int32(elements) {
		x := textOf(e, 10_000, 1)
		was := x.next()
		for range length {
			now := x.next()
			if now < 0 || now >= Alphabet {
				t.Fatalf("token %d", now)
			}
			counts[[2]int64{was, now}]++
			of[was]++
			was = now
		}
	}
	entropy, unigram := 0.0, 0.0
	for pair, n := range counts {
		entropy -= n / (elements * length) * math.Log(n/of[pair[0]])
	}
	for _, n := range of {
		unigram -= n / (elements * length) * math.Log(n/(elements*length))
	}
	if math.Abs(entropy-Entropy) > 0.01 {
		t.Errorf("the next token has an entropy of %.4f nats given the last, want %.4f", entropy, Entropy)
	}
	if unigram < 2*Entropy {
		t.Errorf("the next token has an entropy of %.4f nats, want much more than given the last", unigram)
	}
}

func TestLabelsAreTheNextTokens(t *testing.T) {
	b, err := zoo.Build("lstm", zoo.Options{Batch: 3, Sequence: 9})
	if err != nil {
		t.Fatal(err)
	}
	d := training(t).For(b.Inputs)
	tokens, labels := make([]int64, 14), make([]int64, 27)
	elements := []int32{4, 900, 4}
	for i, dst := range [][]int64{tokens, labels} {
		if err := d.Fill(elements, i, &b.Program.Values[b.Program.Inputs[i]], bytesOf(dst)); err != nil {
			t.Fatal(err)
		}
	}
	ids := ints32(bytesOf(tokens))
	for s := range 3 {
		for i := range 8 {
			if int64(ids[s*9+i+1]) != labels[s*9+i] {
				t.Errorf("sample %d: token %d is %d, the label before it %d", s, i+1, ids[s*9+i+1], labels[s*9+i])
			}
		}
	}
	for i := range 9 {
		if ids[i] != ids[18+i] {
			t.Error("the same element has two texts")
			break
		}
	}
}

// The texts of two classes must be as different as a model needs to tell them
// apart: counting pairs of tokens is enough.
func TestTextsTellTheirClass(t *testing.T) {
	b, err := zoo.Build("bert-2layer", zoo.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := training(t).For(b.Inputs)
	tensor := &b.Program.Values[b.Program.Inputs[0]]
	n := int(tensor.Shape[1])
	buf := make([]int64, (n+1)/2)
	right, perClass := 0, [2]int{}
	for e := range int32(200) {
		if err := d.Fill([]int32{e}, 0, tensor, bytesOf(buf)); err != nil {
			t.Fatal(err)
		}
		ids := ints32(bytesOf(buf))[:n]
		fits := [2]int{}
		for class := range uint64(2) {
			for i := range n - 1 {
				for which := range uint64(4) {
					if follow(class, uint64(ids[i]), which, Alphabet) == uint64(ids[i+1]) {
						fits[class]++
						break
					}
				}
			}
		}
		label := d.label(e)
		perClass[label]++
		if fits[label] > fits[1-label] {
			right++
		}
	}
	if right < 198 || perClass[0] < 70 || perClass[1] < 70 {
		t.Errorf("%d of 200 texts fit their class, which are %v", right, perClass)
	}
}

// Every model of the zoo can be fed, with digits and with noise, within what
// it says of its inputs.
func TestEveryModelCanBeFed(t *testing.T) {
	for _, m := range zoo.Models() {
		opt := zoo.Options{Batch: 2}
		if m.Image.Default > 0 {
			opt.Image = max(m.Image.Min, 32)
		}
		if m.Sequence.Default > 0 {
			opt.Sequence = max(m.Sequence.Min, 6)
		}
		b, err := zoo.Build(m.Name, opt)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []Data{training(t).For(b.Inputs), Synthetic(100).For(b.Inputs)} {
			for i, in := range b.Inputs {
				v := &b.Program.Values[b.Program.Inputs[i]]
				buf := make([]int64, (v.Bytes()+7)/8)
				if err := d.Fill([]int32{3, 77}, i, v, bytesOf(buf)); err != nil {
					t.Errorf("%s: %v", m.Name, err)
					continue
				}
				seen := map[int64]bool{}
				for k := range int(v.Shape.Elements()) {
					var id int64
					switch v.DType {
					case program.Int32:
						id = int64(ints32(bytesOf(buf))[k])
					case program.Int64:
						id = ints(bytesOf(buf))[k]
					default:
						id = int64(1000 * floats(bytesOf(buf))[k])
						if x := floats(bytesOf(buf))[k]; x < -1 || x > 2 {
							t.Fatalf("%s: %s has %v", m.Name, in.Name, x)
						}
						seen[id] = true
						continue
					}
					if id < 0 || id >= in.Below {
						t.Fatalf("%s: %s has %d, must be below %d", m.Name, in.Name, id, in.Below)
					}
					seen[id] = true
				}
				if i == 0 && len(seen) < 3 {
					t.Errorf("%s: %s are all alike: %v", m.Name, in.Name, seen)
				}
			}
		}
	}
}

func TestChannelsAreAlike(t *testing.T) {
	d := training(t)
	grey, colour := make([]float32, 20*20), make([]float32, 20*20*3)
	for _, x := range [][]float32{grey, colour} {
		if _, err := d.Map(5, x, 20); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range colour {
		if v != grey[i/3] {
			t.Fatalf("pixel %d, channel %d is %v, want %v", i/3, i%3, v, grey[i/3])
		}
	}
}

// The ink of a digit has its class, the ground around it class 0.
func TestPixelsHaveClasses(t *testing.T) {
	b, err := zoo.Build("unet", zoo.Options{Batch: 1, Image: 32})
	if err != nil {
		t.Fatal(err)
	}
	d := training(t).For(b.Inputs)
	image, class := make([]float32, 32*32), make([]int64, 32*32)
	if _, err := d.Map(0, image, 32); err != nil {
		t.Fatal(err)
	}
	if err := d.Fill([]int32{0}, 1, &b.Program.Values[b.Program.Inputs[1]], bytesOf(class)); err != nil {
		t.Fatal(err)
	}
	ink := 0
	for i, c := range class {
		if bright := image[i] > level(Levels/2); bright != (c == 1) {
			t.Fatalf("pixel %d of brightness %v has class %d", i, image[i], c)
		}
		ink += int(c)
	}
	if ink < 100 || ink > 600 {
		t.Errorf("%d of 1024 pixels are ink", ink)
	}
}
