// Package place decides on which device each op of a program runs, and says
// why, as TensorFlow does: Decide for graphs (placer.cc, colocation_graph.cc)
// and for eager execution (eager/placement_utils.cc).
//
// A graph's nodes form groups: an op that writes a variable belongs to it, and
// so does what asks for it by Node.Colocate. A group has one list of
// candidates, the devices that all its kernels and wishes allow, best first;
// its nodes take the first, except for generators, which follow their
// consumers, and Shape, which follows its input. Wishes come from the user's
// rules, then from the program itself, then from the rule of the forward op
// whose gradient a node belongs to. Eager execution knows no groups: state
// decides, then the wish, then the order of devices.
//
// With soft placement a wish that cannot be met is dropped and the reason says
// so; without, it is an error that names op, device, and the kernels there
// are.
//
// It moves no data: what has to be copied between devices follows from the
// decisions and is the executor's part.
package place
