// Package text is the text form of a timeline: one event a line with named
// fields, for people, for diff and for writing a timeline by hand.
//
//	# tideline text 1
//	0 device-facts device=1 text="kind=gpu\n"
//	1500 alloc address=0x100000000 allocator=1 category=activation device=1 op=dense/MatMul requested=1000 size=1024 step=0 tensor=dense/MatMul:0
//	2500 free address=0x100000000 allocator=1 device=1 size=1024 step=0
//
// A line is the time in nanoseconds, the kind, and the fields that are not
// zero in alphabetical order; step is left out where it is NoStep, and written
// even when 0. Words stand for numbers where there are words. A string stands
// bare when it has nothing but letters, digits and _./:@+-, and otherwise as a
// Go string literal. Lines that begin with # are remarks; the first must be
// the one above.
//
// The form is lossless: reading what was written gives the same events, with
// strings equal by text; their ids may be numbered anew. It keeps no blocks
// and no sequence numbers.
package text
