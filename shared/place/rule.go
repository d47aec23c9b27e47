package place

import (
	"slices"
	"strconv"
	"strings"

	"tideline/shared/device"
	"tideline/shared/program"
)

// Rule puts the ops whose names match a pattern on a device. In Match, *
// stands for any text. The first rule that matches decides.
type Rule struct {
	Match  string
	Device string
}

func find(rules []Rule, name string) (Rule, bool) {
	for _, r := range rules {
		if Match(r.Match, name) {
			return r, true
		}
	}
	return Rule{}, false
}

// Match says whether a name fits a pattern in which * stands for any text.
func Match(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}

// CheckRules looks for rules without effect on a program. One that matches no
// op, or only ops that earlier rules have decided on, is a warning. Two that
// match the same ops and name different devices are an error: their order
// means nothing but that one of them is a mistake.
func CheckRules(p *program.Program, rules []Rule) (warnings []string, err error) {
	matched := make([][]bool, len(rules))
	taken := make([]bool, len(p.Nodes))
	for i, r := range rules {
		matched[i] = make([]bool, len(p.Nodes))
		some, fresh := false, false
		for n := range p.Nodes {
			if Match(r.Match, p.Nodes[n].Name) {
				matched[i][n], some = true, true
				fresh = fresh || !taken[n]
				taken[n] = true
			}
		}
		who := "placement rule " + strconv.Itoa(i) + " (" + quote(r.Match) + " on " + r.Device + ")"
		if !some {
			warnings = append(warnings, who+" matches no op of "+p.Name+": look the names up in the list of ops")
			continue
		}
		for j := range i {
			if rules[j].Device != r.Device && slices.Equal(matched[i], matched[j]) {
				return warnings, &device.Error{
					Kind: device.InvalidArgument, Device: r.Device, Cause: ErrPlacement,
					Message: who + " and rule " + strconv.Itoa(j) + " (" + quote(rules[j].Match) + " on " + rules[j].Device +
						") match the same ops and disagree: remove one of the two",
				}
			}
		}
		if !fresh {
			warnings = append(warnings, who+" has no effect: earlier rules decide on all ops that it matches")
		}
	}
	return warnings, nil
}

func quote(s string) string { return strconv.Quote(s) }
