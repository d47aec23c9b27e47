package workfile

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"tideline/protocol/api"
)

// shape is how a field is written.
type shape uint8

const (
	unknownShape shape = iota
	single             // one value
	numbers            // one value or a list of values
	texts              // one word or a list of words
	group              // fields
	entries            // a list of groups
)

// shapes holds the shape of every path, with N for a number. It follows from
// the paths that api knows: what lies in front of ".N" is a list of entries,
// what lies in front of another "." a group.
var shapes = func() map[string]shape {
	m := make(map[string]shape)
	for _, path := range api.Paths() {
		if _, isGroup := m[path]; !isGroup {
			m[path] = single
		}
		for at := parent(path); at != ""; at = parent(at) {
			m[at] = group
			if strings.HasSuffix(at, ".N") {
				at = parent(at)
				m[at] = entries
			}
		}
	}
	for _, path := range []string{"batch", "image", "sequence", "devices.N.logical"} {
		m[path] = numbers
	}
	m["keep"], m["env"], m["devices.N.allocator_options"] = texts, texts, texts
	return m
}()

func parent(path string) string { return path[:max(0, strings.LastIndexByte(path, '.'))] }

// shapeOf looks a path up, its numbers replaced by N.
func shapeOf(path string) shape {
	parts := strings.Split(path, ".")
	for i, p := range parts {
		if p != "" && strings.Trim(p, "0123456789") == "" {
			parts[i] = "N"
		}
	}
	return shapes[strings.Join(parts, ".")]
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// firstField is the field whose presence makes an entry of a list.
func firstField(path string) string {
	if path == "devices" {
		return "kind"
	}
	return "match"
}

// example shows the form of a group or an entry.
func example(path string) string {
	switch path {
	case "devices":
		return "kind: gpu, preset: t4-16g"
	case "placement.rules":
		return `match: "conv2/*", device: "/GPU:0"`
	case "runtime":
		return "autotune: true"
	case "placement":
		return "soft: true"
	case "input":
		return "source: digits, prefetch: auto"
	case "input.map":
		return "parallel: 4, cost: 300us"
	case "input.interleave":
		return "cycle: 4, block: 16"
	}
	return "optimizer: adam"
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a group of fields"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return "a single value"
	case yaml.DocumentNode, yaml.AliasNode: // never handed to people by themselves
	}
	return "an alias"
}

// show names a node for people, a short value itself.
func show(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && len(n.Value) <= 40 {
		return "\"" + n.Value + "\""
	}
	return kindName(n)
}
