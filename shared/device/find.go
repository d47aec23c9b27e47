package device

import (
	"fmt"
	"strconv"
	"strings"
)

// FindOne is the index of the one device that a string such as "GPU:0",
// "/GPU:0" or a full name stands for, as get_memory_info reads it. ValueError:
// it cannot be read, has no type or no id, or matches none or several.
func FindOne(devices []*Logical, s string) (int, error) {
	refuse := func(message string, cause error) (int, error) {
		return 0, &Error{Kind: ValueError, Device: strconv.Quote(s), Setting: "device name", Message: message, Cause: cause}
	}
	bad := func(message string) (int, error) { return refuse(message, nil) }
	n, err := ParseLocal(s)
	if err != nil {
		if n, err = ParseName(s); err != nil {
			return bad("cannot be parsed; write GPU:0, /GPU:0 or a full name")
		}
	}
	if n.Type == "" {
		return bad("names no device type; write GPU:0")
	}
	at := -1
	for i, l := range devices {
		if !n.Matches(l.Name) {
			continue
		}
		if at >= 0 {
			return bad(fmt.Sprintf("matches more than one device: %s and %s", devices[at].Name, l.Name))
		}
		at = i
	}
	if at < 0 {
		names := make([]string, len(devices))
		for i, l := range devices {
			names[i] = l.Name.String()
		}
		return refuse("no matching device; there are "+strings.Join(names, ", "), ErrUnknown)
	}
	return at, nil
}
