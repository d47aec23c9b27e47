package program

import (
	"errors"
	"fmt"
)

// ErrInvalid is wrapped by every error of Validate that is not about shapes.
var ErrInvalid = errors.New("invalid program")

// Validate checks what every executor relies on: ids in range, values made
// before they are used, names unique, types and shapes as the ops infer them.
func (p *Program) Validate() error {
	if err := p.validateTensors(); err != nil {
		return err
	}
	made := make([]bool, len(p.Values))
	for _, v := range p.Inputs {
		if !p.hasValue(v) || p.Values[v].Producer != None {
			return fmt.Errorf("program %s: %w: input %d is not a value without a producer", p.Name, ErrInvalid, v)
		}
		made[v] = true
	}
	seen := make(map[string]bool, len(p.Nodes))
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if seen[n.Name] {
			return fmt.Errorf("program %s: %w: two nodes are named %q", p.Name, ErrInvalid, n.Name)
		}
		seen[n.Name] = true
		if err := p.validateNode(NodeID(i), made); err != nil {
			return err
		}
	}
	for v := range made {
		if !made[v] {
			return fmt.Errorf("program %s: %w: nothing makes value %d, %q", p.Name, ErrInvalid, v, p.Values[v].Name)
		}
	}
	for _, f := range p.Fetches {
		if !p.hasValue(f.Value) {
			return fmt.Errorf("program %s: %w: fetch %q is of value %d, which does not exist", p.Name, ErrInvalid, f.Name, f.Value)
		}
	}
	return nil
}

// maxElements bounds a tensor, so that sizes in bytes and sums of them do not
// overflow.
const maxElements = 1 << 48

// sound says whether a tensor of this type and shape can exist.
func sound(d DType, s Shape) bool {
	n := int64(1)
	for _, e := range s {
		if e < 0 || (e > 0 && n > maxElements/e) {
			return false
		}
		n *= max(1, e)
	}
	return d < numDTypes
}

// validateTensors checks variables and values by themselves.
func (p *Program) validateTensors() error {
	for i := range p.Variables {
		if v := &p.Variables[i]; !sound(v.DType, v.Shape) || v.Init.Kind > InitConstant {
			return fmt.Errorf("variable %s: %w: type %d, shape %s, first value of kind %d", v.Name, ErrInvalid, v.DType, v.Shape, v.Init.Kind)
		}
	}
	for i := range p.Values {
		v := &p.Values[i]
		if !sound(v.DType, v.Shape) || v.Role > RoleTemporary {
			return fmt.Errorf("value %s: %w: type %d, shape %s, role %d", v.Name, ErrInvalid, v.DType, v.Shape, v.Role)
		}
		if v.Producer == None && v.Variable != None {
			return fmt.Errorf("value %s: %w: an input holds no variable, it names %d", v.Name, ErrInvalid, v.Variable)
		}
	}
	return nil
}

func (p *Program) hasValue(v ValueID) bool { return v >= 0 && int(v) < len(p.Values) }

func (p *Program) validateNode(id NodeID, made []bool) error {
	n := &p.Nodes[id]
	for i, v := range n.Inputs {
		if !p.hasValue(v) || !made[v] {
			return fmt.Errorf("node %s: %w: input %d, value %d, is not made before it", n.Name, ErrInvalid, i, v)
		}
	}
	for _, c := range n.Control {
		if c < 0 || c >= id {
			return fmt.Errorf("node %s: %w: control edge from node %d, which does not come before it", n.Name, ErrInvalid, c)
		}
	}
	if n.Of != None && (n.Of < 0 || n.Of >= id) {
		return fmt.Errorf("node %s: %w: backward of node %d, which does not come before it", n.Name, ErrInvalid, n.Of)
	}
	def, err := Lookup(n.Op)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	if n.Phase > Update || (n.Attrs.Guarded && !def.Stateful) || n.Attrs.Padding > Same {
		return fmt.Errorf("node %s: %w: phase %d, guarded %t, padding %d", n.Name, ErrInvalid, n.Phase, n.Attrs.Guarded, n.Attrs.Padding)
	}
	specs, err := def.Infer(p, n)
	if err != nil {
		return err
	}
	if len(specs) != len(n.Outputs) {
		return fmt.Errorf("node %s: %w: %d outputs, %s has %d", n.Name, ErrInvalid, len(n.Outputs), n.Op, len(specs))
	}
	for i, v := range n.Outputs {
		if !p.hasValue(v) || made[v] {
			return fmt.Errorf("node %s: %w: output %d, value %d, does not exist or is made twice", n.Name, ErrInvalid, i, v)
		}
		x := &p.Values[v]
		if x.Producer != id || x.Index != i || x.DType != specs[i].DType || !x.Shape.Equal(specs[i].Shape) {
			return fmt.Errorf("node %s: %w: output %d is recorded as %s%s of node %d, %s gives %s%s",
				n.Name, ErrInvalid, i, x.DType, x.Shape, x.Producer, n.Op, specs[i].DType, specs[i].Shape)
		}
		if want := holder(n); x.Variable != want {
			return fmt.Errorf("node %s: %w: output %d holds variable %d, should hold %d", n.Name, ErrInvalid, i, x.Variable, want)
		}
		made[v] = true
	}
	return nil
}

// holder is the variable whose buffer a node's output is.
func holder(n *Node) VariableID {
	if n.Op == OpVariable {
		return n.Attrs.Variable
	}
	return None
}
