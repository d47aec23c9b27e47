// Package place decides on which device each op of a program runs, and says
// why. The order of reasons: state stays with its variable; the user's rules;
// what the program itself asks for; the first GPU that has a kernel; the CPU.
// With soft placement a wish that cannot be met is dropped and the reason says
// so; without, it is an error.
//
// It moves no data: what has to be copied between devices follows from the
// decisions and is the executor's part.
package place
