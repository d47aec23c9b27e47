package pipeline

// Source walks over the elements, epoch after epoch.
type Source struct {
	elements, epochs int
	first            int
	index, epoch     int
}

// NewSource makes the source of a pipeline.
func NewSource(s *Settings) *Source {
	return &Source{elements: s.Elements, epochs: s.Epochs, first: s.First}
}

// Next gives the next element and its epoch; ok is false at the end.
func (s *Source) Next() (index int32, epoch int, ok bool) {
	if s.elements == 0 {
		return 0, 0, false
	}
	if s.index == s.elements {
		s.index, s.epoch = 0, s.epoch+1
	}
	if s.epochs > 0 && s.epoch >= s.epochs {
		return 0, 0, false
	}
	i := s.first + s.index
	s.index++
	return int32(i), s.epoch, true
}

// Sizes gives the batch sizes of a pipeline in turn.
type Sizes struct {
	sizes []int
	left  int // batches to come; -1: no limit
	next  int
}

// NewSizes makes the sizes of a pipeline's batches.
func NewSizes(s *Settings) *Sizes {
	z := &Sizes{sizes: s.Batch, left: s.Batches}
	if s.Batches == 0 {
		z.left = -1
	}
	return z
}

// Next is the next batch's size, 0 when there is none.
func (z *Sizes) Next() int {
	if z.left == 0 {
		return 0
	}
	if z.left > 0 {
		z.left--
	}
	n := z.sizes[z.next]
	z.next = (z.next + 1) % len(z.sizes)
	return n
}
