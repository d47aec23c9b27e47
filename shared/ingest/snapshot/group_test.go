package snapshot

import (
	"bytes"
	"strings"
	"testing"

	"tideline/protocol/event"
	"tideline/shared/ingest/snapshot/synthetic"
	"tideline/shared/store"
)

// TestGroupsAreThoseWhoHoldMost checks the groups against a count of the
// emitted blocks by op.
func TestGroupsAreThoseWhoHoldMost(t *testing.T) {
	var file bytes.Buffer
	if _, err := synthetic.Write(&file, synthetic.Shape{Requests: 3000}); err != nil {
		t.Fatal(err)
	}
	made, err := Read(&file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]*Snapshot{"made": made}
	for _, id := range caseIDs {
		list[id], _ = readCase(t, id)
	}
	for name, s := range list {
		t.Run(name, func(t *testing.T) { checkGroups(t, tell(t, s, false)) })
	}
}

func checkGroups(t *testing.T, tl *store.Timeline) {
	t.Helper()
	first, last := tl.Span()
	for _, p := range tl.Pools() {
		ofGroup := map[event.Category]event.StringID{}
		groupOf := map[event.StringID]event.Category{}
		for i := range p.Allocs() {
			a := p.Alloc(i)
			if old, ok := groupOf[a.Op]; ok && old != a.Category {
				t.Fatalf("%s is in %v and in %v", tl.Text(a.Op), old, a.Category)
			}
			groupOf[a.Op] = a.Category
			if a.Category == event.Unknown {
				continue
			}
			if op, ok := ofGroup[a.Category]; ok && op != a.Op || p.CategoryName(a.Category) != tl.Text(a.Op) {
				t.Fatalf("%v, called %q, has blocks of %q", a.Category, p.CategoryName(a.Category), tl.Text(a.Op))
			}
			ofGroup[a.Category] = a.Op
		}
		stacks := 0
		for op := range groupOf {
			if tl.Text(op) != "" {
				stacks++
			}
		}
		if len(tl.Pools()) == 1 && len(ofGroup) != min(stacks, event.NumGroups) {
			t.Errorf("%d groups of %d ops", len(ofGroup), stacks)
		}
		// At the peak a group holds what its op does, and with one device no op
		// without a group holds clearly more than one with it: sizes are those
		// asked for, and rounding may swap neighbours.
		pk := p.Peak(first, last+1, 1<<30)
		least, most := int64(1<<62), int64(0)
		for _, x := range pk.Top {
			switch {
			case x.Category != event.Unknown:
				least = min(least, x.Bytes)
				if x.Bytes != pk.ByCategory[x.Category] {
					t.Errorf("%q holds %d, its group %d", tl.Text(x.Op), x.Bytes, pk.ByCategory[x.Category])
				}
			case tl.Text(x.Op) != "":
				most = max(most, x.Bytes)
			}
		}
		if len(tl.Pools()) == 1 && most > least+least/2+1<<20 {
			t.Errorf("an op without a group holds %d, one with a group %d", most, least)
		}
		if name := p.CategoryName(event.Unknown); len(ofGroup) > 0 && name != "other" || strings.HasPrefix(name, "group") {
			t.Errorf("the rest is called %q", name)
		}
	}
}
