package ui

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (s Share) word() string {
	if s == ShareNo {
		return "no"
	}
	return string(s)
}

func trueFalse(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// tabIndex is that of a tab: only the chosen one is reached by the Tab key,
// the others by arrows.
func tabIndex(on bool) string {
	if on {
		return "0"
	}
	return "-1"
}
