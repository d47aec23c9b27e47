package share

import (
	"fmt"
	"net/url"
	"strings"
)

// A Link is what one person sends to another. Everything behind the # stays
// in the browser: a service that serves the page learns the id when the
// content is fetched, and the key never.
type Link struct {
	Base string // of the service and its page, without a slash at the end
	ID   string
	Key  string // as in the link; empty when the file is not sealed
}

// fragment is the field of the page's fragment that names a share.
const fragment = "share"

// String is the link as it is sent: BASE/#share=ID.KEY.
func (l Link) String() string {
	s := l.Base + "/#" + fragment + "=" + l.ID
	if l.Key != "" {
		s += "." + l.Key
	}
	return s
}

// Public is the link without its key, for logs and messages.
func (l Link) Public() string { return Link{Base: l.Base, ID: l.ID}.String() }

// ParseLink reads a link. It checks the id, not the key: package seal does.
func ParseLink(text string) (Link, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return Link{}, fmt.Errorf("this is not a link to a share: one looks like https://HOST/#%s=ID.KEY", fragment)
	}
	field := ""
	for part := range strings.SplitSeq(u.Fragment, "&") {
		if v, ok := strings.CutPrefix(part, fragment+"="); ok {
			field = v
		}
	}
	if field == "" {
		return Link{}, fmt.Errorf("the link ends before its share: behind %s belongs #%s=ID.KEY; copy it again, whole, in quotation marks if a shell reads it", u.Host, fragment)
	}
	id, key, dot := strings.Cut(field, ".")
	if err := CheckID(id); err != nil {
		return Link{}, err
	}
	if dot && key == "" {
		return Link{}, fmt.Errorf("the link ends before its key: copy it again, whole")
	}
	return Link{Base: u.Scheme + "://" + u.Host + strings.TrimSuffix(u.EscapedPath(), "/"), ID: id, Key: key}, nil
}
