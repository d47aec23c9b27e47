package event

// Strings is a run's string table: append-only, id 0 is the empty string.
// The zero value is ready to use. It is not safe for concurrent use.
type Strings struct {
	list []string
	ids  map[string]StringID
}

// ID returns the id of s, adding it when it is new.
func (t *Strings) ID(s string) StringID {
	if s == "" {
		return 0
	}
	if id, ok := t.ids[s]; ok {
		return id
	}
	if t.ids == nil {
		t.ids = make(map[string]StringID)
	}
	return t.add(s)
}

// Append adds s under the next id even if the table has it already, as a
// reader must to keep the writer's numbering.
func (t *Strings) Append(s string) StringID {
	if t.ids == nil {
		t.ids = make(map[string]StringID)
	}
	return t.add(s)
}

func (t *Strings) add(s string) StringID {
	if len(t.list) == 0 {
		t.list = append(t.list, "")
	}
	id := StringID(len(t.list))
	t.list = append(t.list, s)
	if _, dup := t.ids[s]; !dup {
		t.ids[s] = id
	}
	return id
}

// At returns the string of an id, and "" for one that the table lacks.
func (t *Strings) At(id StringID) string {
	if int(id) < len(t.list) {
		return t.list[id]
	}
	return ""
}

// Len is one more than the highest id in use; 1 for an empty table.
func (t *Strings) Len() int { return max(1, len(t.list)) }
