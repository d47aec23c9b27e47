package workfile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tideline/protocol/api"
)

// Write writes a workload as YAML, without the fields that mean their
// default. Reading it gives the same workload.
func Write(w *api.Workload) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range w.Fields() {
		if f.Key == "train" {
			child(root, "train", yaml.MappingNode)
			continue
		}
		put(root, strings.Split(f.Key, "."), f.Value)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write workload %q as YAML: %w", w.Name, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write workload %q as YAML: %w", w.Name, err)
	}
	return b.Bytes(), nil
}

// put hangs a value into the tree at its path.
func put(n *yaml.Node, path []string, value string) {
	for i, name := range path[:len(path)-1] {
		kind := yaml.MappingNode
		if _, err := strconv.Atoi(path[i+1]); err == nil {
			kind = yaml.SequenceNode
		}
		n = child(n, name, kind)
	}
	name := path[len(path)-1]
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: name}
	n.Content = append(n.Content, key, valueNode(name, value))
}

// child returns what lies under a name or number of n, making it first.
func child(n *yaml.Node, name string, kind yaml.Kind) *yaml.Node {
	fresh := &yaml.Node{Kind: kind}
	if n.Kind == yaml.SequenceNode {
		// Entries come in order, so a number is an existing entry or the next.
		if i, _ := strconv.Atoi(name); i < len(n.Content) {
			return n.Content[i]
		}
		fresh.Style = yaml.FlowStyle
		n.Content = append(n.Content, fresh)
		return fresh
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	if name == "train" || name == "map" || name == "interleave" || name == "runtime" {
		fresh.Style = yaml.FlowStyle
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, fresh)
	return fresh
}

func valueNode(name, value string) *yaml.Node {
	switch name {
	case "batch", "image", "sequence", "logical":
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for v := range strings.SplitSeq(value, ",") {
			list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
		}
		if name != "logical" && len(list.Content) == 1 {
			return list.Content[0]
		}
		return list
	case "keep", "env", "allocator_options":
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for v := range strings.SplitSeq(value, " ") {
			n := &yaml.Node{}
			n.SetString(v)
			list.Content = append(list.Content, n)
		}
		return list
	case "name", "model", "mode", "precision", "copy_policy", "source", "optimizer", "swap", "kind", "preset", "card", "reserve_rule", "peer", "allocator", "match", "device":
		n := &yaml.Node{}
		n.SetString(value) // quoted where YAML would read something else into it
		return n
	}
	if name == "checkpoint" {
		if _, err := strconv.Atoi(value); err != nil {
			n := &yaml.Node{}
			n.SetString(value)
			return n
		}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value}
}
