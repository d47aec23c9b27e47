package nearest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"model", "mode", "allocator", "allocator_options", "train.optimizer"}
	for word, want := range map[string]string{
		"modee": "mode", "MODE": "mode", "alloc": "allocator", "optimizer": "train.optimizer",
		"allocater": "allocator", "allocator_option": "allocator_options", "quantum": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
