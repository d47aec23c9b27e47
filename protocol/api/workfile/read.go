package workfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"tideline/protocol/api"
)

// Bounds on what is read. A workload of a few hundred devices and rules stays
// far below them.
const (
	MaxSize  = 256 << 10 // bytes of text
	maxNodes = 20_000    // visited, aliases followed: bounds "billion laughs"
	maxDepth = 12        // of nesting: bounds aliases that contain themselves
	maxFound = 50        // problems reported
)

// Read reads a workload, fills in nothing, and checks it. With problems the
// workload holds what could be read, for showing; do not run it.
func Read(text []byte, known api.Known) (*api.Workload, api.Problems) {
	w, lines, problems := parse(text)
	if len(lines) > 1 || len(problems) == 0 { // there were fields to check
		problems = append(problems, checked(w, known, lines, problems)...)
		slices.SortStableFunc(problems, func(a, b api.Problem) int { return a.Line - b.Line })
	}
	return w, problems
}

// checked validates what was read, without complaints that only follow from
// what could not be read.
func checked(w *api.Workload, known api.Known, lines lineTable, read api.Problems) api.Problems {
	var out api.Problems
	for _, p := range w.Validate(known) {
		p.Line = lines.of(p.Path)
		follows := slices.ContainsFunc(read, func(r api.Problem) bool {
			return p.Path == r.Path || r.Path == "" || strings.HasPrefix(p.Path, r.Path+".") || r.Line == p.Line ||
				strings.HasPrefix(r.Path, "devices") && strings.HasPrefix(p.Path, "placement")
		})
		if !follows {
			out = append(out, p)
		}
	}
	return out
}

// Parse reads a workload without checking its values against each other.
func Parse(text []byte) (*api.Workload, api.Problems) {
	w, _, problems := parse(text)
	return w, problems
}

func parse(text []byte) (*api.Workload, lineTable, api.Problems) {
	r := reader{w: new(api.Workload), lines: lineTable{"": 1}}
	root, problem := document(text)
	if problem != nil {
		r.problems = api.Problems{*problem}
		return r.w, r.lines, r.problems
	}
	if root.Kind != yaml.MappingNode {
		r.fail("", root, "a workload is a list of fields, such as \"model: lenet5\"; this is "+kindName(root))
		return r.w, r.lines, r.problems
	}
	r.mapping("", root, 0)
	return r.w, r.lines, r.problems
}

// document parses the only document of a text.
func document(text []byte) (root *yaml.Node, problem *api.Problem) {
	if len(text) > MaxSize {
		return nil, &api.Problem{Message: fmt.Sprintf("%d bytes are too many for a workload: at most %d", len(text), MaxSize)}
	}
	// The parser reports its own mistakes by panic in places; a broken file
	// must not end the agent.
	defer func() {
		if p := recover(); p != nil {
			root, problem = nil, &api.Problem{Message: fmt.Sprintf("the YAML reader gave up on this text: %v", p)}
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &api.Problem{Message: "empty: a workload needs at least \"model: NAME\""}
		}
		return nil, syntaxProblem(err)
	}
	var more yaml.Node
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &api.Problem{Line: more.Line, Message: "a second document: a file holds one workload"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxProblem(err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &api.Problem{Message: "empty: a workload needs at least \"model: NAME\""}
	}
	return doc.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntaxProblem(err error) *api.Problem {
	text := err.Error()
	m := yamlLine.FindStringSubmatch(text)
	p := &api.Problem{Message: "not readable as YAML: " + text}
	if m != nil {
		p.Message = "not readable as YAML: " + text[len(m[0]):]
		p.Line, _ = strconv.Atoi(m[1])
	}
	return p
}

// lineTable says where a path was written.
type lineTable map[string]int

// of returns the line of a path or of the nearest thing around it.
func (t lineTable) of(path string) int {
	for path != "" {
		if n, ok := t[path]; ok {
			return n
		}
		path = path[:max(0, strings.LastIndexByte(path, '.'))]
	}
	return t[""]
}

type reader struct {
	w        *api.Workload
	lines    lineTable
	problems api.Problems
	nodes    int
	full     bool // maxNodes or maxFound reached: nothing more is read
}

func (r *reader) fail(path string, at *yaml.Node, message string) {
	if r.full {
		return
	}
	r.problems = append(r.problems, api.Problem{Path: path, Line: at.Line, Message: message})
	r.full = len(r.problems) >= maxFound
}

// enter follows aliases and counts; nil means that n is not to be read.
func (r *reader) enter(path string, n *yaml.Node, depth int) *yaml.Node {
	r.nodes++
	if r.nodes > maxNodes {
		r.fail(path, n, fmt.Sprintf("more than %d values, aliases included", maxNodes))
		r.full = true
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if depth > maxDepth {
		r.fail(path, n, "nested too deeply for a workload")
		return nil
	}
	if r.full {
		return nil
	}
	switch tag := n.ShortTag(); tag {
	case "!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp":
		return n
	default:
		r.fail(path, n, fmt.Sprintf("the tag %q has no meaning in a workload", tag))
		return nil
	}
}

func (r *reader) mapping(path string, n *yaml.Node, depth int) {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !r.full; i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode || key.Value == "" || strings.ContainsAny(key.Value, ".\n") {
			r.fail(path, key, "expected the name of a field, found "+show(key))
			continue
		}
		at := join(path, key.Value)
		if first, twice := seen[key.Value]; twice {
			r.fail(at, key, fmt.Sprintf("given twice, first on line %d: keep one", first))
			continue
		}
		seen[key.Value] = key.Line
		r.lines[at] = key.Line
		if key.Value == "<<" {
			r.fail(at, key, "merge keys are not supported: write the fields out")
			continue
		}
		r.value(at, key, n.Content[i+1], depth+1)
	}
}

// value reads what stands at a path; key is where complaints point.
func (r *reader) value(path string, key, n *yaml.Node, depth int) {
	if n = r.enter(path, n, depth); n == nil {
		return
	}
	shape := shapeOf(path)
	switch n.Kind {
	case yaml.MappingNode:
		if shape != group {
			r.wrongShape(path, key, n, shape)
			return
		}
		if path == "train" { // {} trains, too
			r.set(path, key, "on")
		}
		r.mapping(path, n, depth)
	case yaml.SequenceNode:
		r.sequence(path, key, n, shape, depth)
	case yaml.ScalarNode:
		switch {
		case n.ShortTag() == "!!null": // "field:" with nothing behind it means its default
			if shape == unknownShape {
				r.set(path, key, "")
			}
		case (shape == group && path != "train") || shape == entries:
			r.wrongShape(path, key, n, shape)
		default:
			r.set(path, key, n.Value)
		}
	case yaml.DocumentNode, yaml.AliasNode: // enter has resolved the one, and the parser nests no other
	}
}

func (r *reader) sequence(path string, key, n *yaml.Node, shape shape, depth int) {
	switch shape {
	case texts, numbers:
		parts := make([]string, 0, len(n.Content))
		for _, c := range n.Content {
			if c = r.enter(path, c, depth+1); c == nil {
				return
			}
			if c.Kind != yaml.ScalarNode || shape == numbers && strings.Contains(c.Value, ",") || shape == texts && (c.Value == "" || strings.ContainsAny(c.Value, " \t\r\n")) {
				r.fail(path, c, "expected a list of single values, found "+show(c))
				return
			}
			parts = append(parts, c.Value)
		}
		if shape == texts {
			r.set(path, key, strings.Join(parts, " "))
			return
		}
		r.set(path, key, "["+strings.Join(parts, ",")+"]")
	case entries:
		for i, c := range n.Content {
			at := join(path, strconv.Itoa(i))
			r.lines[at] = c.Line
			c = r.enter(at, c, depth+1)
			if c == nil {
				return
			}
			if c.Kind != yaml.MappingNode || len(c.Content) == 0 {
				r.fail(at, c, "expected fields, such as {"+example(path)+"}, found "+show(c))
				return
			}
			before := len(r.problems)
			r.mapping(at, c, depth+1)
			if len(r.problems) > before {
				r.set(at+"."+firstField(path), c, "") // keeps the numbering of those that follow
			}
		}
	default:
		r.wrongShape(path, key, n, shape)
	}
}

// set hands a value to the workload.
func (r *reader) set(path string, at *yaml.Node, value string) {
	err := r.w.Set(path, value)
	if err == nil || r.full {
		return
	}
	r.fail(path, at, strings.TrimPrefix(err.Error(), path+": "))
}

func (r *reader) wrongShape(path string, key, n *yaml.Node, s shape) {
	switch s {
	case group:
		r.fail(path, key, "expected fields, such as {"+example(path)+"}, found "+show(n))
	case entries:
		r.fail(path, key, "expected a list, such as [{"+example(path)+"}], found "+show(n))
	case single:
		r.fail(path, key, "expected a single value, found "+kindName(n))
	case numbers, texts:
		r.fail(path, key, "expected one value or a list of them, found "+kindName(n))
	case unknownShape:
		r.set(path, key, "") // words the complaint about an unknown field
	}
}
