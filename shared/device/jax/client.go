package jax

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// The environment variables.
const (
	Fraction    = "XLA_CLIENT_MEM_FRACTION"
	OldFraction = "XLA_PYTHON_CLIENT_MEM_FRACTION" // the same, deprecated
	Preallocate = "XLA_PYTHON_CLIENT_PREALLOCATE"
	Allocator   = "XLA_PYTHON_CLIENT_ALLOCATOR"
	// Unified is TensorFlow's too.
	Unified = "TF_FORCE_UNIFIED_MEMORY"
)

// Variables are those that are JAX's alone.
func Variables() []string { return []string{Allocator, Fraction, OldFraction, Preallocate} }

// Part is the part of a card that is taken unless a variable says another.
const Part = 0.75

// Of the allocator of the host's staging memory.
const (
	HostName  = "xla_gpu_host_bfc"
	HostLimit = int64(64) << 30
)

// kinds are the allocators by their names there, with ours; "" where there is
// none here.
var kinds = [][2]string{
	{"default", "bfc"}, {"bfc", "bfc"}, {"platform", "direct"}, {"cuda_async", "async"}, {"vmm", ""},
}

// Client is what a process's variables come to.
type Client struct {
	Kind     string  // the allocator by its name here: bfc, direct, async
	Part     float64 // of the card; above 1 only with unified memory
	Growth   bool    // regions as they are needed, instead of the limit at once
	Unified  bool    // memory that pages to the host
	Explicit bool    // one of JAX's own variables was set
}

// Env looks up an environment variable.
type Env func(name string) (value string, ok bool)

// Error is a variable that JAX, or this model of it, cannot take.
type Error struct {
	Variable string
	Value    string
	Want     string
}

// Error names the variable, its value and what was expected.
func (e *Error) Error() string {
	return e.Variable + " is " + strconv.Quote(e.Value) + ", expected " + e.Want
}

// Read reads the variables as JAX does: an empty one counts as not set, and an
// allocator's name may be in any case.
func Read(env Env) (Client, error) {
	c := Client{Kind: "bfc", Part: Part}
	get := func(name string) string {
		v, _ := env(name)
		c.Explicit = c.Explicit || v != "" && slices.Contains(Variables(), name)
		return v
	}
	if v := get(Allocator); v != "" {
		i := slices.IndexFunc(kinds, func(k [2]string) bool { return k[0] == strings.ToLower(v) })
		if i < 0 {
			return c, &Error{Allocator, v, "one of " + names()}
		}
		if c.Kind = kinds[i][1]; c.Kind == "" {
			return c, &Error{Allocator, v, "another one: there is no model of it here"}
		}
	}
	// XLA reads this one itself, with a reader of its own.
	v, _ := env(Unified)
	c.Unified = v == "1" || strings.EqualFold(v, "true")
	name, f := Fraction, get(Fraction)
	if old := get(OldFraction); old != "" {
		if f != "" {
			return c, &Error{OldFraction, old, "to be left out beside " + Fraction + ", which replaces it: JAX refuses both"}
		}
		name, f = OldFraction, old
	}
	if f != "" {
		var err error
		if c.Part, err = part(name, f, c.Unified); err != nil {
			return c, err
		}
	}
	if c.Unified {
		c.Part = max(1, c.Part)
	}
	// Only these three spellings switch it off: FALSE leaves it on.
	c.Growth = slices.Contains([]string{"false", "False", "0"}, get(Preallocate))
	return c, nil
}

// names are the allocators' names there.
func names() string {
	list := make([]string, len(kinds))
	for i, k := range kinds {
		list[i] = k[0]
	}
	return strings.Join(list, ", ")
}

// beyond this many times the card a part is a mistake, and a limit no number.
const beyond = 1000

func part(name, text string, unified bool) (float64, error) {
	if strings.HasSuffix(text, "+") {
		return 0, &Error{name, text, "a part without +: a pool that grows beyond it is not modelled"}
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(f > 0 && f <= beyond):
		return 0, &Error{name, text, "a part of the card, such as .75"}
	case f > 1 && !unified:
		return 0, &Error{name, text, "at most 1: more than the card has needs " + Unified + "=1"}
	}
	return f, nil
}

// Limit is the most bytes that the process takes of a card with so many in all.
func (c *Client) Limit(total int64) int64 { return int64(float64(total) * c.Part) }

// Raise is the part, in whole hundredths, that makes a pool of at least want
// bytes where the default makes one of limit bytes. ok is false where that is
// more than most of the card: the driver and the libraries need the rest.
func Raise(limit, want int64) (hundredths int, ok bool) {
	if limit <= 0 || want <= 0 {
		return 0, false
	}
	n := math.Ceil(100 * Part * float64(want) / float64(limit))
	return int(min(n, 1000)), n <= most
}

// most is the largest part worth advising, in hundredths.
const most = 95
