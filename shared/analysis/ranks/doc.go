// Package ranks puts the files of one program side by side that ran on many
// cards: what each held at its peak and at its end, its largest hole, whether a
// request failed, and in words which of them differ from the others and by whose
// memory.
//
// A file's rank is read from its name alone, for no format tells it. Files are
// told apart by their main pool, the one that the page's bar speaks of; where a
// file tells nothing of an allocator, its figures are unknown and not 0. How two
// files differ in detail is store.Compare's to say.
package ranks
