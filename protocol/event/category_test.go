package event

import "testing"

func TestGroupsAreNamedByTheFactsOfTheirAllocator(t *testing.T) {
	if NumCategories > 16 {
		t.Errorf("%d categories, an address map has room for 16", NumCategories)
	}
	f := Fields{{"name", "GPU_0_torch"}, {GroupKey(0), "forward model.py:41"}}
	for _, c := range []struct {
		category Category
		facts    Fields
		name     string
		plain    Category
	}{
		{Group1, f, "forward model.py:41", Unknown},
		{Group2, f, "group 2", Unknown},
		{Group6, nil, "group 6", Unknown},
		{Unknown, f, "other", Unknown},
		{Unknown, nil, "unknown", Unknown},
		{Output, f, "output", Output},
		{99, f, "category-99", 99},
	} {
		if name, plain := c.category.In(c.facts), c.category.Plain(); name != c.name || plain != c.plain {
			t.Errorf("%v is called %q and is %v, not %q and %v", c.category, name, plain, c.name, c.plain)
		}
		if back, ok := ParseCategory(c.category.String()); ok != (int(c.category) < NumCategories) || ok && back != c.category {
			t.Errorf("%v is read as %v, %v", c.category, back, ok)
		}
	}
	for key, want := range map[string]bool{"group.1": true, "group.6": true, "group.7": false, "group.": false, "name": false} {
		if IsGroupKey(key) != want {
			t.Errorf("%q is the key of a group: %v", key, !want)
		}
	}
}
