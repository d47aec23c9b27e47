package lines

// Set says which of a sieve's lists a line holds a mark of: bit i for list i.
type Set uint16

// MaxLists is how many lists a sieve tells apart.
const MaxLists = 16

// Sieve tells in one pass over a line which of several readers could care for
// it, each having named the marks that a line of its kind holds. Case of ASCII
// letters does not count, so a sieve lets through more than the marks ask for
// and never less.
//
// It is an automaton that follows all marks at once (Aho and Corasick, 1975): a
// step per byte, however many marks there are.
type Sieve struct {
	class [256]uint8 // of a byte: 0 for those that no mark holds
	shift uint8      // classes a state, as a power of two
	next  []uint16   // by state<<shift + class
	found []Set      // by state: of all marks that end here
}

// NewSieve makes a sieve of at most MaxLists lists. A mark must not be empty;
// marks of more than 65535 bytes in all are left out, which the caller's test
// is to notice: they are fixed text.
func NewSieve(lists ...[]string) *Sieve {
	s := &Sieve{found: make([]Set, 1)}
	s.classify(lists)
	width := 1 << s.shift
	s.next = make([]uint16, width)
	for i, list := range lists {
		for _, m := range list {
			s.add(m, 1<<i)
		}
	}
	s.connect(width)
	return s
}

func (s *Sieve) classify(lists [][]string) {
	classes := uint8(1)
	for _, list := range lists {
		for _, m := range list {
			for _, c := range []byte(m) {
				if c = fold(c); s.class[c] == 0 {
					s.class[c] = classes
					classes++
				}
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		s.class[c] = s.class[fold(c)]
	}
	for 1<<s.shift < int(classes) {
		s.shift++
	}
}

func fold(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// add spells a mark into the tree that the automaton grows from.
func (s *Sieve) add(mark string, bit Set) {
	if len(s.found)+len(mark) > 1<<16 {
		return
	}
	at := 0
	for _, c := range []byte(mark) {
		to := &s.next[at<<s.shift+int(s.class[fold(c)])]
		if *to == 0 {
			*to = uint16(len(s.found))
			s.found = append(s.found, 0)
			s.next = append(s.next, make([]uint16, 1<<s.shift)...)
			to = &s.next[at<<s.shift+int(s.class[fold(c)])]
		}
		at = int(*to)
	}
	s.found[at] |= bit
}

// connect gives every state a way on for every class: where a mark goes on
// otherwise, to the longest beginning of a mark that the text read ends with.
func (s *Sieve) connect(width int) {
	back := make([]uint16, len(s.found))
	queue := make([]uint16, 0, len(s.found))
	for _, to := range s.next[:width] {
		if to != 0 {
			queue = append(queue, to)
		}
	}
	for i := 0; i < len(queue); i++ {
		at := int(queue[i])
		s.found[at] |= s.found[back[at]]
		row, other := s.next[at<<s.shift:][:width], s.next[int(back[at])<<s.shift:][:width]
		for c, to := range row {
			if to == 0 {
				row[c] = other[c]
				continue
			}
			back[to] = other[c]
			queue = append(queue, to)
		}
	}
}

// Of is which lists the line holds marks of.
func (s *Sieve) Of(line string) (set Set) {
	next, found, shift := s.next, s.found, s.shift&15
	at := uint16(0)
	for i := range len(line) {
		at = next[int(at)<<shift+int(s.class[line[i]])]
		set |= found[at]
	}
	return set
}
