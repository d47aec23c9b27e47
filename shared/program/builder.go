package program

// defs is the table of op definitions, filled by the op files.
var defs = map[Op]*Def{}

// Builder makes a Program node by node.
type Builder struct {
	p Program
}
